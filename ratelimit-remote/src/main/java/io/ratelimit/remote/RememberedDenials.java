package io.ratelimit.remote;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Charge.Share;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
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
 * The denials of the last moments, so that the backend needn't repeat them. A denial holds for its retry time, but at most
 * one second; only for costs at least as large, and never for calls that may wait. Thread-safe.
 *
 * <p>In a flood on a drained key one call reaches the backend shortly before the second is over. It renews the denial
 * before all calls would reach the backend at once.
 */
final class RememberedDenials {

    private static final long MAX_AGE = Duration.ofSeconds(1).toNanos();
    private static final long RENEWAL_AGE = Duration.ofMillis(900).toNanos();

    /** The limit in characters; with the overhead of each key about 24 MB. */
    private static final long MAX_WEIGHT = 8_000_000;

    private static final int WEIGHT_OF_DENIAL = 100;

    private final TimeSource time;
    private final Cache<BucketName, Entry> entries;

    RememberedDenials(TimeSource time) {
        this.time = time;
        this.entries = Caffeine.newBuilder()
                .ticker(time::nanoTime)
                .expireAfterWrite(Duration.ofNanos(2 * MAX_AGE))
                .maximumWeight(MAX_WEIGHT)
                .weigher((BucketName bucket, Entry entry) ->
                        WEIGHT_OF_DENIAL + bucket.key().length())
                .build();
    }

    private sealed interface Entry {}

    /** Tokens came back at this moment, so a denial of an earlier call doesn't hold. */
    private record GivenBack(long nanos) implements Entry {}

    /**
     * @param calledAt a moment before the backend denied
     * @param deniedAt a moment after the backend denied
     * @param renewing whether a call is on its way to renew the denial
     */
    private record Denial(
            BucketSpec spec, long cost, Answer denial, long calledAt, long deniedAt, AtomicBoolean renewing)
            implements Entry {

        boolean covers(Charge charge) {
            return charge.cost() >= cost && charge.spec().equals(spec) && charge.cost() <= spec.capacity();
        }

        boolean isExpired(long now) {
            return now - calledAt >= Math.min(denial.retryNanos(), MAX_AGE);
        }

        boolean isStale(long now) {
            return now - calledAt >= RENEWAL_AGE;
        }

        /** Returns whether the caller is the one that has to renew the denial. */
        boolean startRenewal() {
            return renewing.compareAndSet(false, true);
        }

        Answer answer(Charge charge, long now) {
            Answer later = denial.after(Duration.ofNanos(now - deniedAt)).withCharge(charge);
            long more = charge.cost() == cost ? 0 : timeOf(charge.cost() - cost);
            return later.withRetryAfter(Duration.ofNanos(later.retryNanos() + more));
        }

        private long timeOf(long tokens) {
            return spec.withCapacity(tokens).timeToFull().toNanos();
        }
    }

    /**
     * Returns the answers to the charges with a remembered denial; empty if the backend has to be called.
     *
     * @param mayCall whether the caller calls the backend if the list is empty
     */
    List<Answer> find(List<Charge> charges, boolean mayCall) {
        List<Answer> denied = List.of();
        Denial stale = null;
        boolean anyFresh = false;
        long now = time.nanoTime();
        for (int i = 0; i < charges.size(); i++) {
            Denial denial = find(charges.get(i), now);
            if (denial != null) {
                denied = denied.isEmpty() ? new ArrayList<>() : denied;
                denied.add(denial.answer(charges.get(i), now));
                anyFresh |= !denial.isStale(now);
                stale = denial;
            }
        }
        return mayCall && stale != null && !anyFresh && stale.startRenewal() ? List.of() : denied;
    }

    /** A denial of a charge with a share concerns only charges with the same one. */
    private static BucketName name(Charge charge) {
        Share share = charge.share();
        return share == null
                ? BucketName.of(charge)
                : new BucketName(charge.policy().name(), share.leave() + ":" + share.key());
    }

    private @Nullable Denial find(Charge charge, long now) {
        return charge.maxWait().isZero()
                        && entries.getIfPresent(name(charge)) instanceof Denial denial
                        && denial.covers(charge)
                        && !denial.isExpired(now)
                        && (charge.share() == null || !isGivenBackSince(charge, denial.calledAt))
                ? denial
                : null;
    }

    /** Returns whether tokens came back to any share since a moment, or the bucket was reset. */
    private boolean isGivenBackSince(Charge charge, long nanos) {
        return entries.getIfPresent(BucketName.of(charge)) instanceof GivenBack back && back.nanos - nanos >= 0;
    }

    /** Remembers the denials of a call that began after the given moment. */
    void note(Decision decision, long calledAt) {
        if (decision.allowed()) {
            return;
        }
        long now = time.nanoTime();
        for (Answer answer : decision.denials()) {
            Charge charge = answer.charge();
            if (answer.outcome() == Outcome.DENIED && charge.maxWait().isZero()) {
                Denial latest = new Denial(charge.spec(), charge.cost(), answer, calledAt, now, new AtomicBoolean());
                entries.asMap().merge(name(charge), latest, (earlier, same) -> merge(earlier, latest));
            }
        }
    }

    /** Keeps the denial of the smaller cost, as it covers more calls, unless it has expired. */
    private static Entry merge(Entry earlier, Denial latest) {
        if (earlier instanceof GivenBack back) {
            return back.nanos - latest.calledAt >= 0 ? back : latest;
        }
        Denial denial = (Denial) earlier;
        return denial.cost < latest.cost && denial.spec.equals(latest.spec) && !denial.isExpired(latest.deniedAt)
                ? denial
                : latest;
    }

    /** Forgets the denials of a bucket, as tokens came back to it: those of all its shares. */
    void forget(Charge charge) {
        entries.put(BucketName.of(charge), new GivenBack(time.nanoTime()));
    }
}
