package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import com.github.benmanes.caffeine.cache.Scheduler;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

class BucketIndexTests {

    private static final TickScale SCALE = TickScale.of(BucketSpec.of("1/1s"), 0);

    private final BucketIndex index = new BucketIndex();

    private static BucketState state() {
        return new BucketState(SCALE, 0);
    }

    @Test
    void findsAStateByItsHashAlone() {
        BucketState state = state();
        index.put(7, state, 1);
        assertThat(index.get(7)).isSameAs(state);
        assertThat(index.get(7 + (1L << 32))).isNull();
        assertThat(index.get(8)).isNull();
    }

    @Test
    void neverReturnsAClosedState() {
        BucketState state = state();
        index.put(7, state, 1);
        state.close();
        assertThat(index.get(7)).isNull();
        BucketState next = state();
        index.put(7, next, 1);
        assertThat(index.get(7)).isSameAs(next);
    }

    /** 20 hashes that begin at one slot, which has a window for 8. */
    @Test
    void aCrowdedWindowForgetsStatesAndNeverMixesThemUp() {
        List<BucketState> states = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            states.add(state());
            index.put((long) i << 32, states.get(i), 1);
        }
        int found = 0;
        for (int i = 0; i < 20; i++) {
            BucketState state = index.get((long) i << 32);
            assertThat(state).isIn(null, states.get(i));
            found += state == null ? 0 : 1;
        }
        assertThat(found).isEqualTo(8);
        assertThat(index.get(19L << 32)).isSameAs(states.get(19));
    }

    @Test
    void aRemovedStateLeavesRoomAndTheOthersStay() {
        BucketState first = state();
        BucketState second = state();
        index.put(0, first, 1);
        index.put(1L << 32, second, 1);
        second.close();
        index.remove(second);
        assertThat(index.get(0)).isSameAs(first);
        assertThat(index.get(1L << 32)).isNull();
    }

    /** A state in the index would keep its scale, and so the spec. */
    @Test
    void anEvictedBucketAndAResetOneLeaveTheIndex() {
        AtomicLong clock = new AtomicLong();
        PolicyBuckets buckets =
                new PolicyBuckets(10, SipHash.withRandomKey(), clock::get, Scheduler.disabledScheduler(), clock::get);
        ThrottlePolicy policy = ThrottlePolicy.of("api", BucketSpec.of("1/1s"), "user");
        buckets.bucket(Charge.of(policy, "alice", 1), clock.get());
        buckets.bucket(new Charge(policy, BucketSpec.of("2/1s"), "bob", 1), clock.get());
        assertThat(buckets.specs()).isEqualTo(2);
        buckets.reset("bob");
        clock.set(Duration.ofDays(1).toNanos());
        assertThat(buckets.size()).isZero();
        for (int i = 0; i < 50 && buckets.specs() > 0; i++) {
            System.gc();
        }
        assertThat(buckets.specs()).isZero();
    }

    /** Random calls beside a map: the index may forget, but what it returns is what the map has. */
    @RepeatedTest(20)
    void whatItReturnsIsTheOpenStateOfTheHash(RepetitionInfo run) {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        Map<Long, BucketState> states = new HashMap<>();
        int found = 0;
        int asked = 0;
        for (int i = 0; i < 20_000; i++) {
            long hash = random.nextLong(2_000) * 0x9e3779b97f4a7c15L;
            BucketState state = states.get(hash);
            if (state == null || random.nextInt(20) == 0) {
                BucketState next = state();
                if (state != null) {
                    state.close();
                }
                states.put(hash, next);
                index.put(hash, next, states.size());
            } else if (random.nextInt(20) == 0) {
                state.close();
                index.remove(state);
                states.remove(hash);
                assertThat(index.get(hash))
                        .as("seed %d, step %d", run.getCurrentRepetition(), i)
                        .isNull();
            } else {
                BucketState indexed = index.get(hash);
                assertThat(indexed)
                        .as("seed %d, step %d", run.getCurrentRepetition(), i)
                        .isIn(null, state);
                found += indexed == null ? 0 : 1;
                asked++;
            }
        }
        assertThat(found).as("found of %d", asked).isGreaterThan(asked * 9 / 10);
    }
}
