package io.ratelimit.migration;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A page of {@code docs/migrating}. Each of its blocks is labelled with a language and {@code before} or {@code after}, and
 * belongs to the heading above it.
 */
record MigrationPage(Path file) {

    static final Path DIRECTORY = Path.of("../docs/migrating");
    private static final Pattern PART = Pattern.compile("(?ms)^#+ (.*?)$|^```(\\S+) ?(\\w*)$\\R(.*?)^```$");

    record Block(String heading, String language, String label, String text) {}

    static MigrationPage of(String name) {
        return new MigrationPage(DIRECTORY.resolve(name + ".md"));
    }

    static List<MigrationPage> all() {
        try (Stream<Path> files = Files.list(DIRECTORY)) {
            return files.sorted().map(MigrationPage::new).toList();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    /** Returns the configuration, in whatever language, that the page has below a heading. */
    String before(String heading) {
        return configuration(heading, "before");
    }

    /** Returns our configuration below a heading. */
    String after(String heading) {
        return configuration(heading, "after");
    }

    private String configuration(String heading, String label) {
        List<Block> found = blocks().stream()
                .filter(block -> block.heading().equals(heading)
                        && block.label().equals(label)
                        && !block.language().equals("java"))
                .toList();
        if (found.size() != 1) {
            throw new AssertionError("%s has %d configurations '%s' below '%s'"
                    .formatted(file.getFileName(), found.size(), label, heading));
        }
        return found.get(0).text();
    }

    List<Block> blocks() {
        List<Block> blocks = new ArrayList<>();
        String heading = "";
        Matcher part = PART.matcher(text());
        while (part.find()) {
            if (part.group(1) != null) {
                heading = part.group(1);
            } else {
                blocks.add(new Block(heading, part.group(2), part.group(3), part.group(4)));
            }
        }
        return blocks;
    }

    private String text() {
        try {
            return Files.readString(file);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }
}
