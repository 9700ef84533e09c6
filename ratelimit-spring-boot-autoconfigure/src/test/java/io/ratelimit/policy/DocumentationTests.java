package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.autoconfigure.CapturedStart;
import io.ratelimit.autoconfigure.YamlApplication;
import io.ratelimit.policy.RateLimitProperties.Policy;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/**
 * Tries the examples of the documentation. An application starts with each block of {@code yaml}, and a block of
 * {@code log} after it is what it logs; with {@code yaml fails} it doesn't, and the block after it is the report. A block of
 * {@code properties} after it means the same.
 */
class DocumentationTests extends CapturedStart {

    private static final Path ROOT = Path.of("..");
    private static final Path REFERENCE = ROOT.resolve("docs/configuration.md");
    private static final Path EXAMPLES = ROOT.resolve("docs/examples.md");
    private static final Pattern BLOCK = Pattern.compile("(?ms)^```(\\w+(?: \\w+)?)$\\R(.*?)^```$");
    private static final Pattern HEADING = Pattern.compile("(?m)^## (.*)$");
    private static final Pattern ANY_HEADING = Pattern.compile("(?m)^#+ (.*)$");
    private static final Pattern LINK = Pattern.compile("\\]\\((?!https?:)([^)#\\s]*)(?:#([^)\\s]+))?\\)");
    private static final Pattern VERSION =
            Pattern.compile("[-:>](\\d+\\.\\d+\\.\\d+(?:-SNAPSHOT)?)(?:</version>|\"\\)|\\.jar)");
    private static final Pattern ROW = Pattern.compile("(?m)^\\| `([a-z-]+)` \\|");

    @TestFactory
    Stream<DynamicTest> theExamplesWork() throws IOException {
        List<DynamicTest> tests = new ArrayList<>();
        for (Path page : pages()) {
            tests.addAll(examples(page));
        }
        assertThat(tests).isNotEmpty();
        return tests.stream();
    }

    private static List<Path> pages() throws IOException {
        try (Stream<Path> pages = Files.list(REFERENCE.getParent())) {
            return Stream.concat(Stream.of(ROOT.resolve("README.md")), pages)
                    .filter(page -> page.toString().endsWith(".md") && Files.exists(page))
                    .sorted()
                    .toList();
        }
    }

    @Test
    void theReferenceHasEveryPropertyInItsOrder() throws IOException {
        String reference = Files.readString(REFERENCE);

        assertThat(rows(reference, "## The application", "## A policy"))
                .isEqualTo(PolicyNames.namesOf(RateLimitProperties.class));
        assertThat(rows(reference, "## A policy", "## Details of a policy"))
                .isEqualTo(PolicyNames.namesOf(Policy.class));
    }

    @Test
    void everyPropertyHasAnExample() throws IOException {
        String examples =
                String.join("\n", blocks(EXAMPLES).stream().map(Block::text).toList());

        assertThat(PolicyNames.namesOf(Policy.class)).allMatch(property -> Pattern.compile("\\b" + property + ": ?")
                .matcher(examples)
                .find());
    }

    @Test
    void theReadmeNamesTheStarterAsItsPomDoes() throws IOException {
        String pom = Files.readString(ROOT.resolve("ratelimit-spring-boot-starter/pom.xml"));
        String group = element("groupId", pom);
        String version = element("revision", Files.readString(ROOT.resolve("pom.xml")));
        String artifact = element("artifactId", pom.substring(pom.indexOf("</parent>")));
        List<Block> blocks = blocks(ROOT.resolve("README.md"));

        assertThat(blocks)
                .filteredOn(block -> block.language().equals("xml"))
                .singleElement()
                .satisfies(block -> {
                    assertThat(element("groupId", block.text())).isEqualTo(group);
                    assertThat(element("artifactId", block.text())).isEqualTo(artifact);
                    assertThat(element("version", block.text())).isEqualTo(version);
                });
        assertThat(blocks)
                .filteredOn(block -> block.language().equals("kotlin"))
                .extracting(Block::text)
                .containsExactly("implementation(\"" + group + ":" + artifact + ":" + version + "\")\n");
    }

    @Test
    void everyPageNamesTheVersionOfTheBuild() throws IOException {
        String version = element("revision", Files.readString(ROOT.resolve("pom.xml")));
        for (Path page : pages()) {
            assertThat(VERSION.matcher(Files.readString(page)).results())
                    .as("%s", page)
                    .allMatch(named -> named.group(1).equals(version));
        }
    }

    @Test
    void theReadmeIsShort() throws IOException {
        assertThat(Files.readString(ROOT.resolve("README.md")).split("\\s+")).hasSizeLessThanOrEqualTo(900);
    }

    @Test
    void everyPageNamesTheNextAndALongOneHasATableOfContents() throws IOException {
        for (Path page : pages()) {
            String text = Files.readString(page);
            if (page.endsWith("README.md")) {
                continue;
            }
            assertThat(text.lines()).as("%s", page).anyMatch(line -> line.startsWith("Next: "));
            List<String> headings = HEADING.matcher(BLOCK.matcher(text).replaceAll(""))
                    .results()
                    .map(heading -> heading.group(1))
                    .toList();
            if (text.split("\\s+").length > 800 && !headings.isEmpty()) {
                String contents = text.substring(0, text.indexOf("\n## "));
                assertThat(headings)
                        .as("%s", page)
                        .allMatch(heading -> contents.contains("](#" + anchor(heading) + ")"));
            }
        }
    }

    @Test
    void everyLinkLeadsToAFileAndAHeading() throws IOException {
        try (Stream<Path> files = Files.walk(ROOT.resolve("docs"))) {
            for (Path page : Stream.concat(files, Stream.of(ROOT.resolve("README.md"), ROOT.resolve("CONTRIBUTING.md")))
                    .filter(file -> file.toString().endsWith(".md"))
                    .toList()) {
                for (MatchResult link :
                        LINK.matcher(withoutCode(page)).results().toList()) {
                    Path target = link.group(1).isEmpty() ? page : page.resolveSibling(link.group(1));
                    assertThat(target).as("%s: %s", page, link.group()).exists();
                    if (link.group(2) != null && target.toString().endsWith(".md")) {
                        assertThat(headings(target))
                                .as("%s: %s", page, link.group())
                                .contains(link.group(2));
                    }
                }
            }
        }
    }

    private static List<String> headings(Path page) throws IOException {
        return ANY_HEADING
                .matcher(withoutCode(page))
                .results()
                .map(heading -> anchor(heading.group(1)))
                .toList();
    }

    private static String withoutCode(Path page) throws IOException {
        return Files.readString(page).replaceAll("(?ms)^```.*?^```", "");
    }

    /** Returns the anchor that GitHub gives a heading. */
    private static String anchor(String heading) {
        return heading.toLowerCase(Locale.ROOT).replaceAll("[^\\w\\- ]", "").replace(' ', '-');
    }

    @Test
    void noPageHasTheMarkersOfAMergeConflict() throws IOException {
        try (Stream<Path> pages = Files.walk(ROOT.resolve("docs"))) {
            List<Path> checked = Stream.concat(
                            pages,
                            Stream.of("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
                                    .map(ROOT::resolve))
                    .filter(page -> page.toString().endsWith(".md"))
                    .toList();
            for (Path page : checked) {
                assertThat(Files.readAllLines(page))
                        .as("%s", page)
                        .noneMatch(line -> line.matches("(<{7}|={7}|>{7})( .*)?"));
            }
        }
    }

    /** Returns the text of the first element of the name. */
    private static String element(String name, String xml) {
        return xml.substring(xml.indexOf("<" + name + ">") + name.length() + 2, xml.indexOf("</" + name + ">"));
    }

    private static List<String> rows(String text, String from, String to) {
        String section = text.substring(text.indexOf("\n" + from), text.indexOf("\n" + to));
        return ROW.matcher(section).results().map(row -> row.group(1)).toList();
    }

    private List<DynamicTest> examples(Path file) throws IOException {
        List<Block> blocks = blocks(file);
        List<DynamicTest> tests = new ArrayList<>();
        for (int i = 0; i < blocks.size(); i++) {
            Block block = blocks.get(i);
            Block next = i + 1 < blocks.size() ? blocks.get(i + 1) : new Block(0, "", "");
            if (block.language().equals("properties")) {
                Block yaml = blocks.get(i - 1);
                tests.add(DynamicTest.dynamicTest(
                        file.getFileName() + ", line " + block.line(), () -> compare(yaml, block)));
            }
            if (block.language().startsWith("yaml")) {
                tests.add(DynamicTest.dynamicTest(
                        file.getFileName() + ", line " + block.line(), () -> tryOut(block, next)));
            }
        }
        return tests;
    }

    private void compare(Block yaml, Block properties) throws IOException {
        assertThat(yaml.language()).isEqualTo("yaml");
        Path other = Files.createDirectories(directory.resolve("properties"));
        try (var expected = application(directory, yaml.text()).start();
                var actual =
                        application(other, "").withProperties(properties.text()).start()) {
            assertThat(actual.getBean(RateLimitProperties.class))
                    .usingRecursiveComparison()
                    .isEqualTo(expected.getBean(RateLimitProperties.class));
        }
    }

    private static YamlApplication application(Path directory, String yaml) {
        return new YamlApplication(directory, yaml).withWeb(YamlApplication.OnTomcat.class);
    }

    private void tryOut(Block block, Block next) {
        assertThat(block.text()).as("an example that can be copied").matches("(?s)(ratelimit|management|spring)[.:].*");
        YamlApplication application = application(directory, block.text());
        if (block.language().equals("yaml fails")) {
            assertThat(next.text().strip()).isEqualTo(application.failure(output));
            return;
        }
        List<String> log = application.log(output);
        if (next.language().equals("log")) {
            assertThat(next.text().lines()).containsExactlyElementsOf(log);
        }
    }

    private static List<Block> blocks(Path file) throws IOException {
        String text = Files.readString(file);
        return BLOCK.matcher(text)
                .results()
                .map(found -> new Block(
                        (int) text.substring(0, found.start()).lines().count() + 1, found.group(1), found.group(2)))
                .toList();
    }

    private record Block(int line, String language, String text) {}
}
