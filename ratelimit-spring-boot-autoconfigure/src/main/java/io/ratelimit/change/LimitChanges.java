package io.ratelimit.change;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.ChangeBoard;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.change.ChangedLimits.Limit;
import io.ratelimit.change.DatedChange.LimitChange;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import org.jspecify.annotations.Nullable;
import org.springframework.context.SmartLifecycle;

/**
 * The changes of limits at run time: those of this instance, and those for all instances, which a {@link ChangeBoard} holds
 * and each instance follows. Thread-safe.
 *
 * <p>A change for all instances counts when it is first seen, so of such a change and one of this instance the later one
 * counts.
 */
public final class LimitChanges implements SmartLifecycle {

    /** The time that an operation may wait for the board: a caller has its answer within a second. */
    private static final Duration MAX_WAIT = Duration.ofMillis(800);

    private final ChangedLimits limits;
    private final @Nullable ChangeFollower follower;

    /** @param board the changes for all instances; null if there are none */
    public LimitChanges(Throttlers throttlers, TimeSource time, @Nullable ChangeBoard board) {
        this.limits = new ChangedLimits(throttlers);
        this.follower = board == null ? null : new ChangeFollower(board, limits, time);
    }

    /**
     * A limit that differs from the configuration.
     *
     * @param forAll whether the change is for all instances
     * @param since the time of the change; null if code of the application has made it
     * @param until the time at which the change ends; null for none
     * @param configured the configured limit
     */
    public record Difference(
            boolean forAll,
            @Nullable Instant since,
            @Nullable Instant until,
            BucketSpec configured) {}

    /**
     * A limit that was changed.
     *
     * @param forAll whether the change is for all instances
     * @param until the time at which the change ends; null for none
     */
    public record Changed(
            BucketSpec before,
            BucketSpec after,
            boolean forAll,
            @Nullable Instant until) {}

    /** Returns whether changes for all instances are possible. */
    public boolean isShared() {
        return follower != null;
    }

    /** Returns how a limit differs from the configuration; null if it doesn't. */
    public @Nullable Difference difference(String policy, @Nullable String tier) {
        return limits.difference(new Limit(policy, tier));
    }

    /**
     * Changes a limit of this instance.
     *
     * @param tier null for the policy's own limit
     * @param rate null for the present rate
     * @param capacity null for the present capacity
     * @param inFlight null for the present number of calls in flight
     * @throws IllegalArgumentException if all are null, one is invalid, or a check of the policy refuses the change
     */
    public Changed changeHere(
            String policy,
            @Nullable String tier,
            @Nullable String rate,
            @Nullable String capacity,
            @Nullable String inFlight) {
        LimitChange change = LimitChange.of(rate, capacity, inFlight);
        if (follower != null) {
            follower.tryToRead(MAX_WAIT); // an earlier change for all instances must not replace this one
        }
        return limits.changeHere(new Limit(policy, tier), change, Instant.now().truncatedTo(ChronoUnit.MILLIS));
    }

    /**
     * Changes a limit of all instances.
     *
     * @param tier null for the policy's own limit
     * @param rate null for the present rate
     * @param capacity null for the present capacity
     * @param inFlight null for the present number of calls in flight
     * @param until the end of the change: a time such as {@code 2026-11-22T18:00:00Z}, or a duration from now; null for none
     * @throws IllegalArgumentException if there is no board, all are null, one is invalid, {@code until} isn't a time in
     *     the future, or a check of the policy refuses the change
     * @throws BackendException if the board fails
     */
    public Changed changeForAll(
            String policy,
            @Nullable String tier,
            @Nullable String rate,
            @Nullable String capacity,
            @Nullable String inFlight,
            @Nullable String until) {
        LimitChange change = LimitChange.of(rate, capacity, inFlight);
        if (follower == null) {
            throw new IllegalArgumentException(
                    "changes for all instances are kept in Redis or a database, and this instance follows none there:"
                            + " set 'ratelimit.backend', or the 'backend' of a policy, to redis or jdbc, and don't set"
                            + " 'changes: false' below 'ratelimit.redis' or 'ratelimit.jdbc'");
        }
        Limit limit = new Limit(policy, tier);
        PolicyThrottler throttler = limits.throttler(limit);
        follower.verifyScope(throttler);
        long end = System.nanoTime() + MAX_WAIT.toNanos();
        try {
            follower.readUntil(end);
        } catch (BackendException failed) {
            throw follower.failure(failed, "no limit was changed");
        }
        BucketSpec before = limits.spec(limit);
        BucketSpec after = change.apply(before);
        throttler.verifyChange(limit.with(after, throttler.policy()));
        Instant now = follower.now().truncatedTo(ChronoUnit.MILLIS);
        Instant ends = until == null ? null : DatedChange.end(until, now, follower.place());
        follower.put(limit, new DatedChange(after, follower.since(limit, now), ends, true), end);
        return new Changed(before, after, true, ends);
    }

    /**
     * Reverts all changes of a limit: that for all instances, and those of this instance. If this instance follows no change
     * for all instances, its own is reverted although the board fails.
     *
     * @param tier null for the policy's own limit
     * @return the change to the configured limit; its limits are equal if there was no change
     * @throws BackendException if the board fails, and nothing was reverted
     */
    public Changed revert(String policy, @Nullable String tier) {
        Limit limit = new Limit(policy, tier);
        BucketSpec before = limits.spec(limit);
        boolean forAll = follower != null && follower.remove(limit, System.nanoTime() + MAX_WAIT.toNanos());
        if (follower == null) {
            limits.revert(limit);
        }
        return new Changed(before, limits.spec(limit), forAll, null);
    }

    /** Follows the changes for all instances from now on. The present ones are followed at once, unless Redis is unavailable. */
    @Override
    public void start() {
        if (follower != null) {
            follower.start();
        }
    }

    @Override
    public void stop() {
        if (follower != null) {
            follower.stop();
        }
    }

    @Override
    public boolean isRunning() {
        return follower != null && follower.isRunning();
    }

    /** Returns the phase after that of the connections to Redis, and before whatever takes tokens. */
    @Override
    public int getPhase() {
        return Integer.MIN_VALUE + 1;
    }
}
