package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RefundOnTests {

    private static boolean covers(int status, String... texts) {
        return RefundOn.of(List.of(texts)).covers(status, false);
    }

    @Test
    void coversStatusesAndClasses() {
        assertThat(IntStream.range(0, 1000).filter(status -> covers(status, "404", "5xx")))
                .containsExactlyElementsOf(IntStream.concat(IntStream.of(404), IntStream.range(500, 600))
                        .boxed()
                        .toList());
        assertThat(covers(201, "2XX")).isTrue();
    }

    @Test
    void anExclusionNarrowsTheIncludedPaths() {
        assertThat(covers(404, "!404", "4xx")).isFalse();
        assertThat(covers(403, "!404", "4xx")).isTrue();
        assertThat(covers(200, "!404", "4xx")).isFalse();
    }

    @Test
    void exclusionsAloneAreOfEverything() {
        assertThat(covers(401, "!401", "!5xx")).isFalse();
        assertThat(covers(500, "!401", "!5xx")).isFalse();
        assertThat(covers(200, "!401", "!5xx")).isTrue();
        assertThat(covers(429, "!401", "!5xx")).isTrue();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "!",
                "40",
                "4x",
                "xx",
                "600",
                "099",
                "6xx",
                "0xx",
                "!!401",
                "401 ",
                "-10",
                "٤٠١",
                "+40",
                "!authenticated",
                "Authenticated"
            })
    void anyOtherTextIsRejected(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RefundOn.of(List.of(text)))
                .withMessage(
                        "refund-on must be 'authenticated' or list statuses such as 404, 5xx or \"!401\", but was '"
                                + text + "'");
    }

    @Test
    void authenticatedLooksAtNoStatus() {
        RefundOn refundOn = RefundOn.of(List.of("authenticated"));
        assertThat(refundOn.covers(500, true)).isTrue();
        assertThat(refundOn.covers(200, false)).isFalse();
        assertThat(RefundOn.of(List.of("404")).covers(200, true)).isFalse();
        assertThat(refundOn.onlyExcludes()).isFalse();
        assertThat(RefundOn.of(List.of("!401", "!403")).onlyExcludes()).isTrue();
        assertThat(RefundOn.of(List.of("4xx", "!401")).onlyExcludes()).isFalse();
    }

    @Test
    void authenticatedStandsAlone() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RefundOn.of(List.of("authenticated", "5xx")))
                .withMessage(
                        "refund-on must be either 'authenticated' alone or a list of statuses, but was [authenticated, 5xx]");
    }

    @Test
    void somethingMustBeLeft() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RefundOn.of(List.of("404", "!4xx")))
                .withMessage("refund-on must leave a status, but excludes all: [404, !4xx]");
    }
}
