package io.ratelimit.change;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.context.SmartLifecycle;

/**
 * The changes of limits at run time: those of this instance, and those for all instances, which a shared place holds and
 * each instance follows. Thread-safe.
 *
 * <p>A change for all instances counts when it is first seen, so of such a change and one of this instance the later one
 * counts. Each change of the shared place gets a number when it is sent, and so does each reading. A reply with a lower
 * number than one that was applied is older, and is ignored. While the shared place is unavailable its changes stay in
 * force, and end by the clock of the shared place, continued with the clock of this instance.
 *
 * <p>A change that isn't signed by an instance of this application is ignored, and so is a signed one that was replaced or
 * reverted since: this instance remembers the newest change of each limit.
 */
public final class LimitChanges implements SmartLifecycle {

    private static final Log logger = LogFactory.getLog(LimitChanges.class);

    /** The time between readings. With the time of a reading, each change is followed within a second. */
    private static final Duration PERIOD = Duration.ofMillis(900);

    /** The time that an operation may wait for the shared place: a caller has its answer within a second. */
    private static final Duration MAX_WAIT = Duration.ofMillis(800);

    /** The time that the start may wait: the first call of a JVM is slow. */
    private static final Duration MAX_START = Duration.ofSeconds(2);

    private final Throttlers throttlers;
    private final TimeSource time;
    private final @Nullable Shared shared;
    private final Map<Limit, DatedChange> current = new HashMap<>();
    private final Map<String, String> followed = new HashMap<>();
    private final Map<String, Latest> latest = new HashMap<>();
    private final IgnoredChanges ignored;
    private Instant sharedTime = Instant.MIN;
    private long sharedTimeAt;
    private long sent;
    private long applied;
    private boolean unreadableLogged;
    private CompletableFuture<?> reading = CompletableFuture.completedFuture(null);
    private volatile @Nullable Future<?> next;

    /** The time from the last start to the next stop; null before and after. A call of an earlier run schedules no other. */
    private volatile @Nullable Object run;

    /** @param shared the place of the changes for all instances; null if there is none */
    public LimitChanges(Throttlers throttlers, TimeSource time, @Nullable Shared shared) {
        this.throttlers = throttlers;
        this.time = time;
        this.shared = shared;
        this.ignored = new IgnoredChanges(time);
    }

    /**
     * The place of the changes for all instances: a text for each limit. The operations don't block. They are executed in
     * the order of their calls, and fail with a {@link BackendException}.
     */
    public interface Shared {

        /** Returns whether the texts of changes prove their origin, so that another writer can't make one. */
        boolean areSigned();

        /** Returns whether a policy may be changed for all instances. */
        boolean mayChange(ThrottlePolicy policy);

        /** Returns the text of a change with the proof of its origin, if there is one. */
        String sign(String limit, String change);

        /**
         * Returns the change in a text.
         *
         * @throws IllegalArgumentException if its origin isn't an instance of this application
         */
        String verify(String limit, String text);

        /** Returns all changes. */
        CompletableFuture<Kept> read();

        /** Keeps the signed change of a limit in place of the previous one. */
        CompletableFuture<?> put(String limit, String change);

        /** Removes the change of a limit. Returns whether there was one. */
        CompletableFuture<Boolean> remove(String limit);
    }

    /**
     * The changes for all instances.
     *
     * @param now the time of the shared place
     * @param changes the texts of the changes by their limits
     */
    public record Kept(Instant now, Map<String, String> changes) {}

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
     * The newest signed change of a limit that this instance has seen. An older one is not followed: a writer without the
     * secret has put it back.
     *
     * @param gone whether the shared place contained it no more
     */
    private record Latest(Instant since, boolean gone) {

        /** Of two changes in one millisecond the last written one holds: all instances read that one. */
        boolean precludes(Instant time) {
            return time.isBefore(since) || gone && time.equals(since);
        }
    }

    /** Returns whether changes for all instances are possible. */
    public boolean isShared() {
        return shared != null;
    }

    /** Returns how a limit differs from the configuration; null if it doesn't. */
    public @Nullable Difference difference(String policy, @Nullable String tier) {
        Limit limit = new Limit(policy, tier);
        BucketSpec configured = limit.in(throttlers.get(policy).configured());
        BucketSpec spec = spec(limit);
        if (spec.equals(configured)) {
            return null;
        }
        DatedChange change = changeOf(limit);
        return change == null || !change.spec().equals(spec)
                ? new Difference(false, null, null, configured)
                : new Difference(change.forAll(), change.since(), change.until(), configured);
    }

    private synchronized @Nullable DatedChange changeOf(Limit limit) {
        return current.get(limit);
    }

    /**
     * Changes a limit of this instance.
     *
     * @throws IllegalArgumentException if a check of the policy refuses the change
     */
    public void changeHere(String policy, @Nullable String tier, LimitChange change) {
        if (shared != null) {
            followEarlierChanges(MAX_WAIT);
        }
        Limit limit = new Limit(policy, tier);
        synchronized (this) {
            reconfigure(limit, change.apply(spec(limit)));
            current.put(
                    limit, new DatedChange(change.after(), Instant.now().truncatedTo(ChronoUnit.MILLIS), null, false));
        }
    }

    /** Follows the changes for all instances that precede a change of this instance, which must not be replaced by them. */
    private void followEarlierChanges(Duration atMost) {
        try {
            await(refresh(), System.nanoTime() + atMost.toNanos());
        } catch (BackendException unavailable) {
            logger.debug("Changes for all instances can't be read: " + unavailable.getMessage());
        }
    }

    /**
     * Changes a limit of all instances.
     *
     * @param until the end of the change: a time such as {@code 2026-11-22T18:00:00Z}, or a duration from now; null for none
     * @return the end of the change; null for none
     * @throws IllegalArgumentException if there is no shared place, {@code until} isn't a time in the future, or a check of
     *     the policy refuses the change
     * @throws BackendException if the shared place fails
     */
    @Nullable
    public Instant changeForAll(String policy, @Nullable String tier, LimitChange change, @Nullable String until) {
        if (shared == null) {
            throw new IllegalArgumentException(
                    "changes for all instances are kept in Redis, and this instance follows none there: set"
                            + " 'ratelimit.backend: redis', or 'backend: redis' for a policy, and don't set"
                            + " 'ratelimit.redis.changes: false'");
        }
        PolicyThrottler throttler = throttlers.get(policy);
        verifyScope(throttler.policy());
        long end = System.nanoTime() + MAX_WAIT.toNanos();
        try {
            await(refresh(), end);
        } catch (BackendException failed) {
            throw failure(failed, "no limit was changed");
        }
        Limit limit = new Limit(policy, tier);
        BucketSpec spec = change.apply(spec(limit));
        throttler.verifyChange(limit.with(spec, throttler.policy()));
        Instant now = sharedNow().truncatedTo(ChronoUnit.MILLIS);
        DatedChange forAll =
                new DatedChange(spec, since(limit, now), until == null ? null : DatedChange.end(until, now), true);
        String text = shared.sign(limit.text(), forAll.text());
        write(
                end,
                () -> shared.put(limit.text(), text),
                () -> follow(limit.text(), text),
                "the change may hold nevertheless");
        return forAll.until();
    }

    /** Returns the time of a new change, which must be after those of all earlier ones, also if the clock was set back. */
    private synchronized Instant since(Limit limit, Instant now) {
        Latest earlier = latest.get(limit.text());
        return earlier == null || earlier.since.isBefore(now) ? now : earlier.since.plusMillis(1);
    }

    private void verifyScope(ThrottlePolicy policy) {
        if (!Objects.requireNonNull(shared).mayChange(policy)) {
            throw new IllegalArgumentException(
                    "'" + policy.name() + "' has its buckets in memory, and without"
                            + " 'ratelimit.redis.key-secret' each client that writes to Redis could change it: set a key-secret");
        }
    }

    /**
     * Takes all changes of a limit back: that for all instances, and those of this instance.
     *
     * @return whether there was a change for all instances
     * @throws BackendException if the shared place fails
     */
    public boolean takeBack(String policy, @Nullable String tier) {
        Limit limit = new Limit(policy, tier);
        boolean forAll = shared != null
                && write(
                        System.nanoTime() + MAX_WAIT.toNanos(),
                        () -> shared.remove(limit.text()),
                        () -> drop(limit.text()),
                        "the change may be taken back nevertheless");
        BucketSpec configured = limit.in(throttlers.get(policy).configured());
        synchronized (this) {
            if (!followed.containsKey(limit.text())) { // otherwise a later change for all instances is in force
                current.remove(limit);
                reconfigure(limit, configured);
            }
        }
        return forAll;
    }

    /** Changes the shared place, and then this instance in the same way. */
    private <T> T write(long end, Supplier<CompletableFuture<T>> change, Runnable sameChange, String consequence) {
        CompletableFuture<T> writing;
        long number;
        synchronized (this) {
            number = ++sent;
            writing = change.get();
        }
        T result;
        try {
            result = await(writing, end);
        } catch (BackendException failed) {
            throw failure(failed, consequence);
        }
        synchronized (this) {
            if (number > applied) {
                applied = number;
                sameChange.run();
            }
        }
        return result;
    }

    private static BackendException failure(BackendException failed, String consequence) {
        return new BackendException(
                (failed.isMisconfiguration() ? failed.getMessage() : "Redis is unavailable") + "; " + consequence,
                failed);
    }

    /** @param end the latest moment of the result, as {@link System#nanoTime} */
    private static <T> T await(CompletableFuture<T> result, long end) {
        try {
            return result.get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (ExecutionException failed) {
            throw failed.getCause() instanceof BackendException failure
                    ? failure
                    : new BackendException("changes for all instances failed: " + failed.getCause(), failed);
        } catch (TimeoutException late) {
            throw new BackendException("there was no answer in time", late);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new BackendException("the thread was interrupted", interrupted);
        }
    }

    private synchronized CompletableFuture<?> refresh() {
        long number = ++sent;
        return Objects.requireNonNull(shared).read().thenAccept(kept -> apply(number, kept));
    }

    private synchronized void apply(long number, Kept kept) {
        if (number < applied) {
            return;
        }
        applied = number;
        unreadableLogged = false;
        sharedTime = kept.now;
        sharedTimeAt = time.nanoTime();
        kept.changes.forEach((limit, change) -> ignored.log(limit, change, follow(limit, change)));
        ignored.retain(kept.changes.keySet());
        latest.replaceAll((limit, change) -> kept.changes.containsKey(limit) ? change : new Latest(change.since, true));
        Set.copyOf(followed.keySet()).stream()
                .filter(limit -> !kept.changes.containsKey(limit))
                .forEach(this::drop);
        endPastChanges();
    }

    private synchronized Instant sharedNow() {
        return sharedTime.plusNanos(time.nanoTime() - sharedTimeAt);
    }

    private boolean isPast(DatedChange change) {
        Instant until = change.until();
        return until != null && !until.isAfter(sharedNow());
    }

    /** Applies a change for all instances, unless it was applied before. Returns the reason if it can't be. */
    private @Nullable String follow(String text, String change) {
        if (change.equals(followed.get(text))) {
            return null;
        }
        try {
            Limit limit = Limit.of(text);
            PolicyThrottler throttler = throttlers.get(limit.policy());
            verifyScope(throttler.policy());
            DatedChange forAll = DatedChange.of(
                    Objects.requireNonNull(shared).verify(text, change), limit.in(throttler.configured()));
            verifyOrder(text, forAll.since());
            if (isPast(forAll)) {
                end(limit);
            } else {
                reconfigure(limit, forAll.spec());
                current.put(limit, forAll);
            }
            followed.put(text, change);
            return null;
        } catch (IllegalArgumentException unusable) {
            return String.valueOf(unusable.getMessage());
        }
    }

    /** @throws IllegalArgumentException if a signed change is older than one that this instance has seen */
    private void verifyOrder(String limit, Instant since) {
        if (!Objects.requireNonNull(shared).areSigned()) {
            return;
        }
        Latest seen = latest.get(limit);
        if (seen != null && seen.precludes(since)) {
            throw new IllegalArgumentException(
                    "it was made " + since + " and has been replaced or taken back since, so it"
                            + " was written to Redis again: send the change to the actuator if it is wanted");
        }
        latest.put(limit, new Latest(since, false));
    }

    private void drop(String text) {
        latest.computeIfPresent(text, (limit, change) -> new Latest(change.since, true));
        if (followed.remove(text) != null) {
            end(Limit.of(text));
        }
    }

    private synchronized void endPastChanges() {
        Map.copyOf(current).forEach((limit, change) -> {
            if (isPast(change)) {
                end(limit);
            }
        });
    }

    /** Ends the change of a limit for all instances, unless the limit was changed on this instance since. */
    private void end(Limit limit) {
        DatedChange change = current.get(limit);
        if (change == null || !change.forAll()) {
            return;
        }
        current.remove(limit);
        if (change.spec().equals(spec(limit))) {
            try {
                reconfigure(limit, limit.in(throttlers.get(limit.policy()).configured()));
            } catch (IllegalArgumentException refused) {
                logger.warn(
                        "The change of '" + limit.text() + "' for all instances has ended, but the configured limit is"
                                + " refused, so the present limit stays: " + refused.getMessage());
            }
        }
    }

    private BucketSpec spec(Limit limit) {
        return limit.in(throttlers.get(limit.policy()).policy());
    }

    private void reconfigure(Limit limit, BucketSpec spec) {
        PolicyThrottler throttler = throttlers.get(limit.policy());
        if (limit.tier() == null) {
            throttler.reconfigure(spec);
        } else {
            throttler.reconfigure(limit.tier(), spec);
        }
    }

    /** Follows the changes for all instances from now on. The present ones are followed at once, unless Redis is unavailable. */
    @Override
    public void start() {
        Object started = new Object();
        run = started;
        if (shared != null) {
            followEarlierChanges(MAX_START);
            schedule(started);
        }
    }

    private void schedule(Object started) {
        if (run == started) {
            next = time.maintainAt(time.nanoTime() + PERIOD.toNanos(), () -> tick(started));
        }
    }

    private void tick(Object started) {
        if (run != started) {
            return;
        }
        try {
            endPastChanges();
            if (reading.isDone()) {
                reading = refresh().whenComplete((done, failure) -> {
                    if (failure != null) {
                        failedToRead(failure);
                    }
                });
            }
        } finally {
            schedule(started);
        }
    }

    /** Logs a rejected reading once. An outage is logged elsewhere. */
    private synchronized void failedToRead(Throwable failure) {
        Throwable inner = failure.getCause();
        Throwable cause = failure instanceof CompletionException && inner != null ? inner : failure;
        boolean outage = cause instanceof BackendException backend && !backend.isMisconfiguration();
        if (!outage && !unreadableLogged) {
            unreadableLogged = true;
            logger.warn("Changes for all instances can't be read, so the present limits stay: " + cause.getMessage());
        }
    }

    @Override
    public void stop() {
        run = null;
        Future<?> scheduled = next;
        if (scheduled != null) {
            scheduled.cancel(false);
        }
    }

    @Override
    public boolean isRunning() {
        return run != null;
    }

    /** Returns the phase after that of the connections to Redis, and before whatever takes tokens. */
    @Override
    public int getPhase() {
        return Integer.MIN_VALUE + 1;
    }
}
