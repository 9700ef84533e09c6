package io.ratelimit.demand;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("slow")
class FrequentKeysTests {

    private static final int SETS = 64;
    private static final int KEPT = SETS * FrequentKeys.SLOTS;

    @Test
    void countsAreExactWhileNoKeyIsReplaced() {
        FrequentKeys keys = new FrequentKeys(SETS);
        for (int i = 0; i < 400; i++) {
            for (int n = 0; n <= i % 7; n++) {
                assertThat(keys.count("key" + i)).isEqualTo(n + 1);
            }
        }
        Map<String, Long> counts = keys.counts();
        assertThat(counts).hasSize(400);
        counts.forEach((key, count) -> assertThat(count).as(key).isEqualTo(Integer.parseInt(key.substring(3)) % 7 + 1));
    }

    /** Spreads half of the counts over 100,000 keys, and the other half over a thousand by Zipf's law. */
    @RepeatedTest(10)
    void frequentKeysAreKeptDuringAFloodOfOtherKeys(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        FrequentKeys keys = new FrequentKeys(SETS);
        Map<String, Long> truth = new HashMap<>();
        int total = 400_000;
        for (int i = 0; i < total; i++) {
            String key = i % 2 == 0 ? "spray" + random.nextInt(100_000) : "user" + zipf(random);
            keys.count(key);
            truth.merge(key, 1L, Long::sum);
        }
        Map<String, Long> counts = keys.counts();
        assertThat(counts).hasSizeLessThanOrEqualTo(KEPT);
        counts.forEach((key, count) -> assertThat(count)
                .as("seed %d, %s", run.getCurrentRepetition(), key)
                .isLessThanOrEqualTo(truth.get(key)));
        long maxError = 2L * total / KEPT;
        assertThat(truth.entrySet().stream()
                        .filter(key -> key.getValue() - counts.getOrDefault(key.getKey(), 0L) > maxError))
                .as("seed %d, the keys whose counts are off by more than %d", run.getCurrentRepetition(), maxError)
                .isEmpty();
        assertThat(top(counts)).as("seed %d", run.getCurrentRepetition()).isEqualTo(top(truth));
        counts.forEach((key, count) -> assertThat(keys.count(key)).as(key).isEqualTo(count + 1));
    }

    private static int zipf(SplittableRandom random) {
        return (int) Math.pow(1000, random.nextDouble());
    }

    private static List<String> top(Map<String, Long> counts) {
        return counts.entrySet().stream()
                .sorted(Map.Entry.<String, Long>comparingByValue(Comparator.reverseOrder()))
                .limit(10)
                .map(Map.Entry::getKey)
                .toList();
    }

    /** Keys chosen by their String.hashCode must not fall into one set. */
    @Test
    void aFloodCannotBeDirectedAtAKey() {
        FrequentKeys keys = new FrequentKeys(SETS);
        int total = 50_000;
        for (int i = 0; i < 500; i++) {
            keys.count("victim");
        }
        IntStream.iterate(0, i -> i + 1)
                .mapToObj(i -> "aimed" + i)
                .filter(key -> key.hashCode() * 0x9E3779B9 >>> 26 == "victim".hashCode() * 0x9E3779B9 >>> 26)
                .limit(total)
                .forEach(keys::count);
        assertThat(keys.counts())
                .hasEntrySatisfying("victim", count -> assertThat(count).isBetween(500L - 2L * total / KEPT, 500L));
    }

    @Test
    void keysWithEqualHashCodesAreDistinctAndReplaceNoFrequentKey() {
        FrequentKeys keys = new FrequentKeys(SETS);
        List<String> colliding = IntStream.range(0, 4096)
                .mapToObj(bits -> IntStream.range(0, 12)
                        .mapToObj(bit -> (bits >> bit & 1) == 0 ? "Aa" : "BB")
                        .reduce("", String::concat))
                .toList();
        for (int i = 0; i < 500; i++) {
            keys.count("victim");
        }
        assertThat(colliding).allMatch(key -> key.hashCode() == colliding.get(0).hashCode());
        colliding.forEach(keys::count);

        assertThat(keys.counts()).hasSizeLessThanOrEqualTo(KEPT).containsEntry("victim", 500L);
    }
}
