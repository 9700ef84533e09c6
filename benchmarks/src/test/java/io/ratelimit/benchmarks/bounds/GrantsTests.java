package io.ratelimit.benchmarks.bounds;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.ratelimit.benchmarks.bounds.Grants.Grant;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

class GrantsTests {

    private static final long SECOND = 1_000_000_000;
    private static final Offset<Double> EXACTLY = within(1e-6);

    private final Limits limits = new Limits(Limit.of(10, 1));
    private final Grants grants = new Grants();

    @Test
    void aFullBucketAndItsRefillAreWithinTheLimit() {
        grant(0, 10);
        grant(SECOND, 10);

        assertThat(grants.beyond(limits)).isZero();
    }

    @Test
    void twoFullWindowsOneAfterTheOtherAreBeyond() {
        grant(SECOND - SECOND / 10, 10);
        grant(SECOND + SECOND / 10, 10);

        assertThat(grants.beyond(limits)).isEqualTo(8, EXACTLY);
    }

    @Test
    void aCallIsInAnIntervalOnlyAsAWhole() {
        grant(0, 10);
        grants.add(List.of(new Grant(0, SECOND / 10)));

        assertThat(grants.beyond(limits)).isZero();
    }

    @Test
    void eachPartOfAnIntervalHasTheLimitOfItsTime() {
        limits.change(SECOND, Limit.of(5, 1));
        grant(0, 10);
        grant(2 * SECOND, 15);

        assertThat(grants.beyond(limits)).isEqualTo(10, EXACTLY);
    }

    @Test
    void anExactBucketIsFullAtFirstAndAfterAPause() {
        Exact exact = new Exact();
        exact.asked(0, 2 * SECOND);
        exact.asked(7 * SECOND, 8 * SECOND);

        assertThat(exact.granted(limits)).isEqualTo(10 + 20 + 10 + 10, EXACTLY);
    }

    @RepeatedTest(50)
    void noIntervalIsWorseThanTheWorst(RepetitionInfo repetition) {
        Random random = new Random(repetition.getCurrentRepetition());
        limits.change(random.nextLong(SECOND), Limit.of(1 + random.nextInt(10), 1));
        List<Grant> all = random.longs(40, 0, SECOND)
                .mapToObj(start -> new Grant(start, start + random.nextLong(SECOND / 20)))
                .toList();
        grants.add(all);

        double worst = 0;
        for (Grant from : all) {
            for (Grant to : all) {
                double most = limits.capacityAt(from.start()) + limits.refill(from.start(), to.end());
                long inside = all.stream()
                        .filter(grant -> grant.start() >= from.start() && grant.end() <= to.end())
                        .count();
                worst = Math.max(worst, inside - most);
            }
        }
        assertThat(grants.beyond(limits)).isEqualTo(worst, EXACTLY);
    }

    private void grant(long nanos, int tokens) {
        grants.add(LongStream.range(0, tokens)
                .mapToObj(i -> new Grant(nanos, nanos))
                .toList());
    }
}
