package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RejectionBodyTests {

    @ParameterizedTest
    @CsvSource({
        "PT0.5S, a second",
        "PT1S, a second",
        "PT1.5S, 2 seconds",
        "PT60S, 60 seconds",
        "PT61S, 2 minutes",
        "PT1H, 60 minutes",
        "PT1H1S, 2 hours",
        "PT24H, 24 hours",
        "PT24H1S, 2 days",
        "P3D, 3 days"
    })
    void aPageNamesTheWaitInItsLargestUnit(Duration wait, String text) {
        assertThat(RejectionBody.PAGE.content("Too Many Requests", "detail", wait.toNanos()))
                .contains("Please try again in " + text + ".");
    }

    @ParameterizedTest
    @CsvSource({"0", "-1"})
    void aPageWithoutAWaitNamesNone(long nanos) {
        assertThat(RejectionBody.PAGE.content("Too Many Requests", "detail", nanos))
                .doesNotContain("try again");
    }
}
