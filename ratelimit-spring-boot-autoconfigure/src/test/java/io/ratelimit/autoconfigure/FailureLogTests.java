package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.key.FailureListener;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

@ExtendWith(OutputCaptureExtension.class)
class FailureLogTests {

    private final ManualTimeSource time = new ManualTimeSource();
    private final FailureListener log = PolicyLog.failures(time);

    @Test
    void aPolicyHasOneLineInTenSeconds(CapturedOutput output) {
        log.failed("one", "its cost, which counted as 1", "below 1");
        log.failed("one", "its condition, so it applied", "neither true nor false");
        log.failed("two", "its cost, which counted as 1", "below 1");
        time.advance(Duration.ofNanos(9_999_999_999L));
        log.failed("one", "its tier, so the policy's own rate applied", "below 1");
        log.failed("one", "its condition, so it applied", "neither true nor false");
        time.advance(Duration.ofNanos(1));

        assertThat(lines(output))
                .containsExactly(
                        "WARN Throttle policy 'one' could not determine its cost, which counted as 1 (below 1), for its first"
                                + " request",
                        "WARN Throttle policy 'two' could not determine its cost, which counted as 1 (below 1), for its first"
                                + " request",
                        "WARN Throttle policy 'one' could not determine its condition, so it applied (neither true nor"
                                + " false), for 3 requests in the last 10 s");
    }

    private static List<String> lines(CapturedOutput output) {
        return output.getOut()
                .lines()
                .filter(line -> line.contains("FailureLog"))
                .map(line -> line.replaceFirst("^\\S+\\s+(\\S+) .*? : ", "$1 "))
                .toList();
    }
}
