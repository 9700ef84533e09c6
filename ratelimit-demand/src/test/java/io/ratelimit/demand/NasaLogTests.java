package io.ratelimit.demand;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.ratelimit.BucketSpec;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** The demand of 443 hosts, of a public log of 5,000 requests. */
class NasaLogTests {

    private static final Duration MINUTE = Duration.ofMinutes(1);

    @Test
    void eightAMinuteAndACapacityOf15TouchNoHost() throws IOException {
        Demand demand = demand(BucketSpec.of("8/1m").withCapacity(15));
        assertThat(demand.touched().keys()).isZero();
        assertThat(demand.touched().sample()).isEqualTo(443);
        assertThat(demand.requests()).isEqualTo(5_000);
    }

    @Test
    void tenAMinuteAndACapacityOfTenTouchAboutOnePercent() throws IOException {
        Demand demand = demand(BucketSpec.of("10/1m"));
        assertThat(demand.touched().share()).isCloseTo(0.009, within(0.0005));
        assertThat(demand.touched().requests()).isCloseTo(0.0018, within(0.00005));
    }

    @Test
    void theSuggestionForNoHostWithinAMinuteIsEightAMinuteAndACapacityOf15() throws IOException {
        assertThat(demand(BucketSpec.of("8/1m")).suggest(0, MINUTE).spec())
                .isEqualTo(BucketSpec.of("8/1m").withCapacity(15));
        assertThat(demand(BucketSpec.of("10/1m")).suggest(0.01, MINUTE).spec()).isEqualTo(BucketSpec.of("10/1m"));
    }

    private static Demand demand(BucketSpec spec) throws IOException {
        DemandMeter meter = new DemandMeter(spec);
        for (long[] request : requests()) {
            meter.feed("host" + request[1], 1, Duration.ofSeconds(request[0]).toNanos());
        }
        return meter.demand();
    }

    /** Returns the seconds and the host of each request, in the order of time. */
    private static List<long[]> requests() throws IOException {
        try (InputStream log = NasaLogTests.class.getResourceAsStream("nasa-1995.txt")) {
            return new String(Objects.requireNonNull(log).readAllBytes(), StandardCharsets.US_ASCII)
                    .lines()
                    .filter(line -> !line.startsWith("#"))
                    .map(line -> line.split(" "))
                    .map(parts -> new long[] {Long.parseLong(parts[0]), Long.parseLong(parts[1])})
                    .sorted(Comparator.comparingLong(request -> request[0]))
                    .toList();
        }
    }
}
