package io.ratelimit.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class FiguresTests {

    private static final Path RESULTS = Path.of("RESULTS.md");
    private static final Pattern TYPED =
            Pattern.compile("(?<![\\d,.])(?!1 )[\\d,.]+ (ns|µs|nanoseconds|microseconds|calls/s)\\b");

    static Iterable<Path> pages() throws Exception {
        return Figures.pages(Path.of(".."));
    }

    @ParameterizedTest
    @MethodSource("pages")
    void aPageHasTheFiguresOfTheResults(Path page) throws Exception {
        String text = Files.readString(page);

        assertThat(Figures.of(RESULTS).in(text)).isEqualTo(text);
        assertThat(text.lines())
                .as("a comment at the beginning of a line ends the paragraph")
                .noneMatch(line -> line.startsWith("<!--="));
    }

    @ParameterizedTest
    @MethodSource("pages")
    void noTimeIsTypedByHand(Path page) throws Exception {
        assertThat(Figures.MARKED.matcher(Files.readString(page)).replaceAll("…"))
                .doesNotContainPattern(TYPED);
    }

    @Test
    void thePictureOfSharesHasTheFiguresOfTheResults() throws Exception {
        assertThat(SharesPicture.of(Figures.of(RESULTS)))
                .isEqualTo(Files.readString(Path.of("../docs/images/shares-served.svg")));
    }

    @Test
    void theComparisonHasFigures() throws Exception {
        assertThat(Figures.MARKED
                        .matcher(Files.readString(Path.of("../docs/comparison.md")))
                        .results())
                .hasSizeGreaterThan(20);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "HTTP; without; to no limits        | 1.00 ×",
                "HTTP; without; CPU µs a request; whole | 31",
                "HTTP; without; requests a second; two  | 46,000"
            })
    void aFigureReplacesWhatStandsBetweenTheMarkers(String marker, String figure) throws Exception {
        assertThat(figures().in("a <!--= " + marker + " -->0 ns<!--/--> b"))
                .isEqualTo("a <!--= " + marker + " -->" + figure + "<!--/--> b");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "HTTPS; without; to no limits | RESULTS.md has no cell 'HTTPS; without; to no limits'",
                "HTTP; with; to no limits     | RESULTS.md has no cell 'HTTP; with; to no limits'",
                "HTTP; without; ns            | RESULTS.md has no cell 'HTTP; without; ns'",
                "HTTP; without                | 'HTTP; without' must be 'heading; row; column'",
                "HTTP; without; requests a second; three | A rounding must be 'whole' or 'two', but was 'three'"
            })
    void aMarkerThatNamesNoCellFails(String marker, String message) throws Exception {
        Figures figures = figures();

        assertThatIllegalArgumentException()
                .isThrownBy(() -> figures.in("<!--= " + marker + " -->1<!--/-->"))
                .withMessage(message);
    }

    private static Figures figures() throws Exception {
        Path file = Files.createTempFile("RESULTS", ".md");
        try {
            Files.writeString(file, """
                    # Results

                    A machine

                    ## HTTP

                    | variant | CPU µs a request | ± | to no limits | requests a second |
                    |---|---|---|---|---|
                    | without | 30.6 | 0.8 | 1.00 × | 45692 |

                    ## Start-up

                    | variant | ms |
                    |---|---|
                    | with | 1658 |
                    """);
            return Figures.of(file);
        } finally {
            Files.delete(file);
        }
    }
}
