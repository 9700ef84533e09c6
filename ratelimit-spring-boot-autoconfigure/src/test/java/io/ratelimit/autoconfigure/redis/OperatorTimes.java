package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.function.Supplier;

/** How long the actuator's operations take while Redis doesn't answer, and {@code ratelimit.redis.timeout} is ten seconds. */
final class OperatorTimes {

    private static final Duration ABOUT_A_SECOND = Duration.ofMillis(1_800);

    private OperatorTimes() {}

    /** Returns the answer to an operation that takes about a second at most. A busy machine may delay some attempts. */
    static HttpResponse<String> answerWithinASecond(Supplier<HttpResponse<String>> operation) {
        for (int attempt = 1; true; attempt++) {
            long began = System.nanoTime();
            HttpResponse<String> answer = operation.get();
            Duration time = Duration.ofNanos(System.nanoTime() - began);
            if (time.compareTo(ABOUT_A_SECOND) < 0) {
                return answer;
            }
            assertThat(attempt).as("attempts, the last one in %s", time).isLessThan(5);
        }
    }
}
