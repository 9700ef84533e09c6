package io.ratelimit.redis;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * What the backend denied a moment ago, and so needn't be asked again: for as long as it said, but at most a second; only
 * for costs at least as large, and never for calls that may wait. Thread-safe.
 *
 * <p>Of a flood on a drained key one call gets through shortly before the second is over, so that there is news before
 * all others would ask at once.
 */
final class RememberedDenials {

    private static final long LONGEST = Duration.ofSeconds(1).toNanos();
    private static final long NEWS = Duration.ofMillis(900).toNanos();

    /** In characters; with what is kept beside a key about 24 MB. */
    private static final long MOST = 8_000_000;

    private static final int WEIGHT_OF_DENIAL = 100;

    private final TimeSource time;
    private final Cache<Bucket, Memory> memories;

    RememberedDenials(TimeSource time) {
        this.time = time;
        this.memories = Caffeine.newBuilder()
                .ticker(time::nanoTime)
                .expireAfterWrite(Duration.ofNanos(2 * LONGEST))
                .maximumWeight(MOST)
                .weigher((Bucket bucket, Memory memory) -> WEIGHT_OF_DENIAL + bucket.key.length())
                .build();
    }

    /** In an order, so that keys whose hash codes collide are found by it. */
    private record Bucket(String policy, String key) implements Comparable<Bucket> {

        @Override
        public int compareTo(Bucket other) {
            int byKey = key.compareTo(other.key);
            return byKey != 0 ? byKey : policy.compareTo(other.policy);
        }

        static Bucket of(Charge charge) {
            return new Bucket(charge.policy().name(), charge.key());
        }
    }

    private sealed interface Memory {}

    /** What was asked before tokens came back is not true any more. */
    private record GivenBack(long nanos) implements Memory {}

    /**
     * @param askedAt a moment before the backend denied
     * @param toldAt a moment after it did
     * @param asking whether a call is on its way for news
     */
    private record Denial(
            BucketSpec spec, long cost, Decision decision, long askedAt, long toldAt, AtomicBoolean asking)
            implements Memory {

        boolean covers(Charge charge) {
            return charge.cost() >= cost && charge.spec().equals(spec) && charge.cost() <= spec.capacity();
        }

        boolean isOver(long now) {
            return now - askedAt >= Math.min(decision.retryNanos(), LONGEST);
        }

        boolean isOld(long now) {
            return now - askedAt >= NEWS;
        }

        /** Whether this is the call that asks for news. */
        boolean asks() {
            return asking.compareAndSet(false, true);
        }

        Answer answer(Charge charge, long now) {
            long since = now - toldAt;
            long more = charge.cost() == cost ? 0 : timeOf(charge.cost() - cost);
            return new Answer(
                    charge,
                    new Decision(
                            Outcome.DENIED,
                            decision.remaining(),
                            Math.max(decision.retryNanos() - since, 1) + more,
                            0,
                            Math.max(decision.nextTokenNanos() - since, 0),
                            Math.max(decision.resetNanos() - since, 0),
                            List.of()));
        }

        private long timeOf(long tokens) {
            return spec.withCapacity(tokens).timeToFull().toNanos();
        }
    }

    /**
     * The answers to those of the charges that are denied by what is remembered; empty if the backend has to be asked.
     *
     * @param mayAsk whether the backend will be asked then
     */
    List<Answer> of(List<Charge> charges, boolean mayAsk) {
        List<Answer> denied = List.of();
        Denial old = null;
        boolean isNews = false;
        long now = time.nanoTime();
        for (int i = 0; i < charges.size(); i++) {
            Denial denial = find(charges.get(i), now);
            if (denial != null) {
                denied = denied.isEmpty() ? new ArrayList<>() : denied;
                denied.add(denial.answer(charges.get(i), now));
                isNews |= !denial.isOld(now);
                old = denial;
            }
        }
        return mayAsk && old != null && !isNews && old.asks() ? List.of() : denied;
    }

    private @Nullable Denial find(Charge charge, long now) {
        return charge.maxWait().isZero()
                        && memories.getIfPresent(Bucket.of(charge)) instanceof Denial denial
                        && denial.covers(charge)
                        && !denial.isOver(now)
                ? denial
                : null;
    }

    /** Remembers what the backend denied when it was asked after that moment. */
    void note(Decision decision, long askedAt) {
        if (decision.allowed()) {
            return;
        }
        long now = time.nanoTime();
        for (Answer answer : decision.violations()) {
            Charge charge = answer.charge();
            if (answer.decision().outcome() == Outcome.DENIED
                    && charge.maxWait().isZero()) {
                Denial told =
                        new Denial(charge.spec(), charge.cost(), answer.decision(), askedAt, now, new AtomicBoolean());
                memories.asMap().merge(Bucket.of(charge), told, (known, same) -> merge(known, told));
            }
        }
    }

    /** Of two denials the one of the smaller cost says more, as long as it holds. */
    private static Memory merge(Memory known, Denial told) {
        if (known instanceof GivenBack back) {
            return back.nanos - told.askedAt >= 0 ? back : told;
        }
        Denial denial = (Denial) known;
        return denial.cost < told.cost && denial.spec.equals(told.spec) && !denial.isOver(told.toldAt) ? denial : told;
    }

    /** Forgets what is known of a bucket, for it got tokens back until now. */
    void forget(Charge charge) {
        memories.put(Bucket.of(charge), new GivenBack(time.nanoTime()));
    }
}
