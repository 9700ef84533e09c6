package io.ratelimit.replay;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

class BinsTests {

    private static final long SECOND = 1_000_000_000L;

    @Test
    void aLongerLogHasWiderBins() {
        Bins bins = new Bins(2);
        for (int i = 0; i < 300; i++) {
            bins.add(0, 5 * SECOND + i * SECOND);
        }
        bins.add(1, 5 * SECOND + 7 * SECOND);
        assertThat(bins.firstNanos()).isEqualTo(5 * SECOND);
        assertThat(bins.widthNanos()).isEqualTo(2 * SECOND);
        assertThat(bins.counts(0)).hasSize(150).containsOnly(2);
        assertThat(bins.counts(1)).hasSize(150);
        assertThat(bins.counts(1)[3]).isOne();
        assertThat(Arrays.stream(bins.counts(1)).sum()).isOne();
    }

    @Test
    void aLineBeforeTheFirstOneCountsInTheFirstBin() {
        Bins bins = new Bins(1);
        bins.add(0, 5 * SECOND);
        bins.add(0, 3 * SECOND);
        assertThat(bins.counts(0)).containsExactly(2);
    }

    /** Compares with bins of the final width. */
    @RepeatedTest(20)
    void eachLineIsInTheBinOfItsTime(RepetitionInfo run) {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        Bins bins = new Bins(1);
        long[] times =
                random.longs(200, 0, 1 + random.nextLong(100_000 * SECOND)).toArray();
        times[0] = 0;
        for (long time : times) {
            bins.add(0, time);
        }
        long[] expected = new long[bins.counts(0).length];
        for (long time : times) {
            expected[(int) (time / bins.widthNanos())]++;
        }
        assertThat(bins.counts(0))
                .as("seed %d", run.getCurrentRepetition())
                .isEqualTo(expected)
                .hasSizeLessThanOrEqualTo(240);
    }
}
