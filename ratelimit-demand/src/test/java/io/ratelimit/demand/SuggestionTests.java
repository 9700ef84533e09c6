package io.ratelimit.demand;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.demand.Demand.Suggestion;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A limit that one day's clients suggest is held against other clients of the same kinds: most are people in sessions,
 * others poll, retry, share the address of an office, or read the whole site.
 */
@Tag("slow")
class SuggestionTests {

    private static final int SEEDS = 100;
    private static final int CLIENTS = 1_000;
    private static final int FRESH_CLIENTS = 30_000;

    /** The clients on which a suggestion is tried. They are so many that the share that a limit touches has hardly an error. */
    private static final List<long[]> FRESH = fresh();

    private static final Map<BucketSpec, Double> SHARES = new HashMap<>();

    @ParameterizedTest
    @ValueSource(doubles = {0, 0.01, 0.1})
    void aSuggestedLimitTouchesTheShareOfFreshClientsThatItStates(double touch) {
        int held = 0;
        for (int seed = 1; seed <= SEEDS; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            long secret = random.nextLong();
            DemandMeter meter =
                    new DemandMeter(BucketSpec.of("60/1m"), DemandMeter.DEFAULT_SAMPLE, key -> new SplittableRandom(
                                    secret ^ key.hashCode())
                            .nextLong());
            for (int client = 0; client < CLIENTS; client++) {
                String key = "client" + client;
                for (long nanos : times(random)) {
                    meter.feed(key, 1, nanos);
                }
            }
            Suggestion suggestion = meter.demand().suggest(touch, Duration.ofMinutes(1));
            assertThat(suggestion.touched().share()).as("seed %d", seed).isLessThanOrEqualTo(touch);
            double share = SHARES.computeIfAbsent(suggestion.spec(), SuggestionTests::touchedShareOfFreshClients);
            held += share >= suggestion.atLeast() && share <= suggestion.atMost() ? 1 : 0;
        }
        assertThat(held)
                .as("seeds of %d whose fresh clients are touched as stated", SEEDS)
                .isGreaterThanOrEqualTo(95);
    }

    private static List<long[]> fresh() {
        SplittableRandom random = new SplittableRandom(0);
        return Stream.generate(() -> times(random)).limit(FRESH_CLIENTS).toList();
    }

    /** Counts with a bucket of its own, which shares no code with the meter. */
    private static double touchedShareOfFreshClients(BucketSpec spec) {
        double perNano = (double) spec.rate().tokens() / spec.rate().period().toNanos();
        int touched = 0;
        for (long[] client : FRESH) {
            double level = spec.capacity();
            long last = 0;
            boolean denied = false;
            for (long nanos : client) {
                level = Math.min(spec.capacity(), level + (nanos - last) * perNano);
                last = nanos;
                denied |= level < 1 - 1e-9;
                level -= level < 1 - 1e-9 ? 0 : 1;
            }
            touched += denied ? 1 : 0;
        }
        return (double) touched / FRESH_CLIENTS;
    }

    /** Returns the moments of a client's requests, in their order. */
    private static long[] times(SplittableRandom random) {
        List<Double> seconds = new ArrayList<>();
        double kind = random.nextDouble();
        double start = random.nextDouble(3600);
        if (kind < 0.85) {
            session(random, start, seconds);
        } else if (kind < 0.95) {
            double every = random.nextDouble(5, 60);
            for (double at = start; at < start + 600; at += every * random.nextDouble(0.9, 1.1)) {
                seconds.add(at);
            }
        } else if (kind < 0.97) {
            int retries = random.nextInt(5, 60);
            for (int i = 0; i < retries; i++) {
                seconds.add(start += random.nextDouble(0.2, 2));
            }
        } else if (kind < 0.995) {
            int people = random.nextInt(2, 20);
            for (int i = 0; i < people; i++) {
                session(random, start + random.nextDouble(1800), seconds);
            }
        } else {
            double perSecond = random.nextDouble(0.5, 4);
            for (int i = 0; i < 200; i++) {
                seconds.add(start += -Math.log(1 - random.nextDouble()) / perSecond);
            }
        }
        return seconds.stream()
                .sorted()
                .mapToLong(second -> (long) (second * 1e9))
                .toArray();
    }

    /** Adds some pages with what they load, and a pause to read after each. */
    private static void session(SplittableRandom random, double start, List<Double> seconds) {
        double at = start;
        int pages = random.nextInt(1, 9);
        for (int page = 0; page < pages; page++) {
            double loaded = at;
            DoubleStream.generate(() -> loaded + random.nextDouble(1))
                    .limit(random.nextInt(1, 9))
                    .forEach(seconds::add);
            at += -Math.log(1 - random.nextDouble()) * 20;
        }
    }
}
