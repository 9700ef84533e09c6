package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Long sentences and cells of the documentation. Code counts as one word, and a link as its text. */
class DocumentationEnglishTests {

    private static final Path ROOT = Path.of("..");
    private static final Pattern UNITS = Pattern.compile("\\n\\s*\\n|\\n(?=\\s*[-*] |\\s*\\d+\\. |\\||#)");
    private static final Pattern SENTENCES = Pattern.compile("(?<=[.!?])[\"')*]*\\s+(?=[A-Z\"'(*0-9])");
    private static final int LONG_SENTENCE = 25;
    private static final int LONG_CELL = 60;

    private final List<String> cells = new ArrayList<>();
    private final List<String> texts = new ArrayList<>();

    DocumentationEnglishTests() throws IOException {
        try (Stream<Path> pages = Files.walk(ROOT.resolve("docs"))) {
            for (Path page : Stream.concat(Stream.of(ROOT.resolve("README.md")), pages)
                    .filter(file -> file.toString().endsWith(".md"))
                    .toList()) {
                read(Files.readString(page));
            }
        }
    }

    private void read(String page) {
        String prose = page.replaceAll("(?ms)^```.*?^```", "\n\n")
                .replaceAll("<!--.*?-->|</?\\w+[^>]*>", "")
                .replaceAll("!?\\[([^\\]]*)\\]\\([^)]*\\)", "$1")
                .replaceAll("`[^`\\n]*`", "X");
        for (String unit : UNITS.split(prose)) {
            if (unit.strip().startsWith("|")) {
                cells.addAll(List.of(unit.split("\\|")));
            } else if (!unit.strip().startsWith("#")) {
                texts.add(unit.strip().replaceFirst("^([-*]|\\d+\\.) ", ""));
            }
        }
    }

    private static int words(String text) {
        return text.isBlank() ? 0 : text.strip().split("\\s+").length;
    }

    @Test
    void noCellIsLong() {
        assertThat(cells).hasSizeGreaterThan(1000).noneMatch(cell -> words(cell) > LONG_CELL);
    }

    @Test
    void fewSentencesAreLong() {
        List<String> sentences = Stream.concat(cells.stream(), texts.stream())
                .flatMap(SENTENCES::splitAsStream)
                .filter(sentence -> !sentence.isBlank())
                .toList();

        assertThat(sentences).hasSizeGreaterThan(3000);
        assertThat(sentences)
                .filteredOn(sentence -> words(sentence) > LONG_SENTENCE)
                .hasSizeLessThanOrEqualTo(60);
    }
}
