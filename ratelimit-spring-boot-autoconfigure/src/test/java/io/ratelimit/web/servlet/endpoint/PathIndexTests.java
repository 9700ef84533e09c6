package io.ratelimit.web.servlet.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.server.PathContainer;
import org.springframework.web.util.UriUtils;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;
import org.springframework.web.util.pattern.PatternParseException;

/** The index must find exactly the patterns that match, and try few others. */
@Tag("slow")
class PathIndexTests {

    private static final List<String> WORDS = List.of("a", "b", "ab", "A", "7", "x.txt", "\u00e9", "\u0130", "i", "s");
    private static final List<String> WILDCARDS = List.of(
            "{v%d}",
            "{v%d}",
            "*",
            "{v%d:\\d+}",
            "{v%d:[a-z]{1,2}}",
            "a*",
            "?",
            "?b",
            "*.txt",
            "{v%d}-{w%<d}",
            "{v%d}{w%<d}",
            "*{v%d}",
            "{v%d:.*}{w%<d:.*}",
            "{v%d}.txt",
            "**a");
    private static final List<String> SENT = List.of(
            "a", "b", "ab", "A", "7", "x.txt", "%C3%A9", "%C4%B0", "%C4%B1", "%C5%BF", "i", "I", "", "", ";v=1",
            "a;b=c", "%61", "a%2fb", "a-b", "aa");

    private static int matched;

    private SplittableRandom random = new SplittableRandom();
    private int variables;

    @RepeatedTest(500)
    void findsThePatternsThatMatch(RepetitionInfo run) {
        random = new SplittableRandom(run.getCurrentRepetition());
        List<PathPattern> patterns = patterns();
        PathIndex<PathPattern> index = new PathIndex<>();
        patterns.forEach(pattern -> index.add(pattern, pattern));
        for (int i = 0; i < 100; i++) {
            PathContainer path = PathContainer.parsePath(path());
            List<PathPattern> expected =
                    patterns.stream().filter(pattern -> pattern.matches(path)).toList();
            matched += expected.size();
            assertThat(found(index, EndpointIndexTests.requestPath(path)))
                    .as("seed %d, request %d, %s", run.getCurrentRepetition(), i, path.value())
                    .containsExactlyInAnyOrderElementsOf(expected);
            assertThat(found(index, RequestPath.of(path)))
                    .as("seed %d, request %d, %s, parsed", run.getCurrentRepetition(), i, path.value())
                    .containsExactlyInAnyOrderElementsOf(expected);
        }
    }

    @AfterAll
    static void patternsMatched() {
        assertThat(matched).isGreaterThan(10_000);
    }

    private List<PathPattern> patterns() {
        PathPatternParser parser = new PathPatternParser();
        parser.setCaseSensitive(random.nextInt(3) > 0);
        return Stream.generate(this::pattern)
                .limit(random.nextInt(1, 40))
                .distinct()
                .map(parser::parse)
                .toList();
    }

    private String pattern() {
        int length = random.nextInt(5);
        if (length == 0) {
            return pick(List.of("", "/", "/**", "/{*rest}", "/**/a", "/{*rest}/a/b"));
        }
        String segments =
                IntStream.range(0, length).mapToObj(i -> "/" + segment()).collect(Collectors.joining());
        return segments + pick(List.of("", "", "", "", "/**", "/{*rest}", "/"));
    }

    private String segment() {
        return random.nextBoolean() ? pick(WORDS) : pick(WILDCARDS).formatted(variables++);
    }

    private String path() {
        return IntStream.range(0, random.nextInt(6))
                        .mapToObj(i -> "/" + pick(SENT))
                        .collect(Collectors.joining())
                + pick(List.of("", "", "", "/", "//"));
    }

    private <T> T pick(List<T> list) {
        return list.get(random.nextInt(list.size()));
    }

    private static <T> List<T> found(PathIndex<T> index, RequestPath path) {
        List<T> found = new ArrayList<>();
        index.candidates(path, candidate -> {
            if (candidate.matches(path)) {
                found.add(candidate.value());
            }
        });
        return found;
    }

    /** Only letters with another case equal other letters, so the rest of Unicode must find itself alone. */
    @Test
    void foldsEachLetterOfUnicodeAsSpringComparesIt() {
        PathPatternParser anyCase = new PathPatternParser();
        anyCase.setCaseSensitive(false);
        int[] letters = IntStream.rangeClosed(0, Character.MAX_CODE_POINT)
                .filter(c -> Character.toLowerCase(c) != c || Character.toUpperCase(c) != c)
                .flatMap(c -> IntStream.of(c, Character.toLowerCase(c), Character.toUpperCase(c)))
                .distinct()
                .toArray();
        int[] others = IntStream.range(0x80, Character.MIN_SURROGATE)
                .filter(c -> Arrays.stream(letters).noneMatch(letter -> letter == c))
                .toArray();
        List<PathPattern> cased = Arrays.stream(letters)
                .mapToObj(c -> anyCase.parse("/log" + Character.toString(c) + "n"))
                .toList();
        PathIndex<PathPattern> index = new PathIndex<>();
        cased.forEach(pattern -> index.add(pattern, pattern));
        for (int c : letters) {
            PathContainer path = encoded("/log" + Character.toString(c) + "n");
            assertThat(found(index, RequestPath.of(path)))
                    .as("U+%04X", c)
                    .containsExactlyInAnyOrderElementsOf(cased.stream()
                            .filter(pattern -> pattern.matches(path))
                            .toList());
        }
        PathIndex<Integer> rest = new PathIndex<>();
        for (int c : others) {
            rest.add(anyCase.parse("/log" + Character.toString(c) + "n"), c);
        }
        for (int c : others) {
            RequestPath path = RequestPath.of(encoded("/log" + Character.toString(c) + "n"));
            assertThat(found(rest, path)).containsExactly(c);
            assertThat(found(index, path)).as("U+%04X", c).isEmpty();
        }
    }

    private static PathContainer encoded(String path) {
        return PathContainer.parsePath(UriUtils.encodePath(path, StandardCharsets.UTF_8));
    }

    @ParameterizedTest
    @ValueSource(strings = {"/%d/items", "/items/%d/**", "/{tenant}/%d", "/{tenant}/*/%d/{id}", "/a/{b}-{c}/%d"})
    void triesOnlyThePatternOfThePathAmongAThousand(String form) {
        PathIndex<Integer> index = new PathIndex<>();
        for (int i = 0; i < 1000; i++) {
            index.add(PathPatternParser.defaultInstance.parse(form.formatted(i)), i);
        }
        List<Integer> tried = new ArrayList<>();
        String path = form.formatted(517).replaceAll("\\{\\w+}|\\*+", "x");
        index.candidates(RequestPath.plain(path), candidate -> tried.add(candidate.value()));
        assertThat(tried).containsExactly(517);
    }

    @Test
    void springHasNoPatternsWithSeveralSegmentsInTheMiddle() {
        assertThatThrownBy(() -> PathPatternParser.defaultInstance.parse("/a/**/b"))
                .isInstanceOf(PatternParseException.class);
    }
}
