package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** How long the actuator's operations take while Redis doesn't answer, and {@code ratelimit.redis.timeout} is ten seconds. */
final class OperatorTimes {

    private final List<Duration> times = new ArrayList<>();

    HttpResponse<String> measure(Supplier<HttpResponse<String>> operation) {
        long began = System.nanoTime();
        HttpResponse<String> answer = operation.get();
        times.add(Duration.ofNanos(System.nanoTime() - began));
        return answer;
    }

    /** A busy machine may delay some of them, but no operation waits as long as a request does. */
    void assertAboutASecond() {
        assertThat(times).allMatch(time -> time.compareTo(Duration.ofSeconds(8)) < 0);
        assertThat(times.stream().sorted().toList().get(times.size() / 2)).isLessThan(Duration.ofMillis(1_800));
    }
}
