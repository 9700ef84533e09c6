package io.ratelimit.change;

import io.ratelimit.BackendException;
import io.ratelimit.ChangeBoard;
import io.ratelimit.ChangeBoard.Posted;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.TimeSource;
import io.ratelimit.change.ChangedLimits.Limit;
import io.ratelimit.change.LimitChanges.Difference;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
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

/**
 * Follows the changes of a {@link ChangeBoard}, and writes those of this instance to it. Thread-safe.
 *
 * <p>Each write and each reading gets a number when it is sent. A reply with a lower number than one that was applied is
 * older, and is ignored. While the board is unavailable its changes stay in force, and end by the clock of the board,
 * continued with the clock of this instance.
 *
 * <p>A change that isn't signed by an instance of this application is ignored, and so is a signed one that was replaced or
 * reverted since: this instance remembers the newest change of each limit.
 */
final class ChangeFollower {

    private static final Log logger = LogFactory.getLog(LimitChanges.class);

    /** The time between readings. With the time of a reading, each change is followed within a second. */
    private static final Duration PERIOD = Duration.ofMillis(900);

    /** The time that the start may wait: the first call of a JVM is slow. */
    private static final Duration MAX_START = Duration.ofSeconds(2);

    private final ChangeBoard board;
    private final ChangedLimits limits;
    private final TimeSource time;
    private final IgnoredChanges ignored;
    private final Map<String, String> followed = new HashMap<>();
    private final Map<String, Latest> latest = new HashMap<>();
    private Instant boardTime = Instant.MIN;
    private long boardTimeAt;
    private long sent;
    private long applied;
    private boolean unreadableLogged;
    private CompletableFuture<?> reading = CompletableFuture.completedFuture(null);
    private volatile @Nullable Future<?> next;

    /** The time from the last start to the next stop; null before and after. A call of an earlier run schedules no other. */
    private volatile @Nullable Object run;

    ChangeFollower(ChangeBoard board, ChangedLimits limits, TimeSource time) {
        this.board = board;
        this.limits = limits;
        this.time = time;
        this.ignored = new IgnoredChanges();
        this.boardTimeAt = time.nanoTime();
    }

    /**
     * The newest signed change of a limit that this instance has seen. An older one is not followed: a writer without the
     * secret has put it back.
     *
     * @param gone whether the board contained it no more
     */
    private record Latest(Instant since, boolean gone) {

        /** Of two changes in one millisecond the last written one holds: all instances read that one. */
        boolean precludes(Instant time) {
            return time.isBefore(since) || gone && time.equals(since);
        }
    }

    void start() {
        Object started = new Object();
        run = started;
        tryToRead(MAX_START);
        schedule(started);
    }

    boolean isRunning() {
        return run != null;
    }

    void stop() {
        run = null;
        Future<?> scheduled = next;
        if (scheduled != null) {
            scheduled.cancel(false);
        }
    }

    private void schedule(Object started) {
        if (run == started) {
            long due = time.nanoTime() + PERIOD.toNanos();
            next = time.maintainAt(due, () -> poll(started, due));
        }
    }

    /** Ignores a call before its time: a clock makes all pending calls when it is closed. */
    private void poll(Object started, long due) {
        if (run != started || time.nanoTime() - due < 0) {
            return;
        }
        try {
            limits.endPast(now());
            if (reading.isDone()) {
                reading = read().whenComplete((done, failure) -> {
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

    /** Reads the board, unless it is unavailable. */
    void tryToRead(Duration atMost) {
        try {
            readUntil(System.nanoTime() + atMost.toNanos());
        } catch (BackendException unavailable) {
            logger.debug("Changes for all instances can't be read: " + unavailable.getMessage());
        }
    }

    /** @throws BackendException if the board doesn't answer until {@code end}, a moment of {@link System#nanoTime} */
    void readUntil(long end) {
        await(read(), end);
    }

    private synchronized CompletableFuture<?> read() {
        long number = ++sent;
        return board.read(limits.names()).thenAccept(posted -> apply(number, posted));
    }

    private synchronized void apply(long number, Posted posted) {
        if (number < applied) {
            return;
        }
        applied = number;
        unreadableLogged = false;
        boardTime = posted.now();
        boardTimeAt = time.nanoTime();
        Set<String> changed = posted.changes().keySet();
        posted.changes().forEach((limit, signed) -> ignored.log(limit, signed, follow(limit, signed)));
        ignored.retain(changed);
        latest.replaceAll((limit, change) -> changed.contains(limit) ? change : new Latest(change.since, true));
        Set.copyOf(followed.keySet()).stream()
                .filter(limit -> !changed.contains(limit))
                .forEach(this::drop);
        limits.endPast(now());
    }

    /** Returns the time of the board. */
    synchronized Instant now() {
        return boardTime.plusNanos(time.nanoTime() - boardTimeAt);
    }

    /** Returns the time of a new change, which must be after those of all earlier ones, also if the clock was set back. */
    synchronized Instant since(Limit limit, Instant now) {
        Latest earlier = latest.get(limit.text());
        return earlier == null || earlier.since.isBefore(now) ? now : earlier.since.plusMillis(1);
    }

    /**
     * Puts a change on the board, and follows it.
     *
     * @throws BackendException if the board doesn't answer until {@code end}
     */
    void put(Limit limit, DatedChange change, long end) {
        String signed = board.sign(limit.text(), change.text());
        write(
                end,
                () -> board.put(limit.text(), signed),
                () -> follow(limit.text(), signed),
                "the change may hold nevertheless");
    }

    /**
     * Removes the change of a limit from the board, and makes the limit the configured one. A change of this instance alone
     * is reverted also while the board is unavailable.
     *
     * @return whether there was a change for all instances
     * @throws BackendException if the board doesn't answer until {@code end}, and no change of this instance was reverted
     */
    boolean remove(Limit limit, long end) {
        boolean revertedHere = revertHere(limit);
        try {
            boolean removed = write(
                    end,
                    () -> board.remove(limit.text()),
                    () -> drop(limit.text()),
                    "the change may be reverted nevertheless");
            revertHere(limit);
            return removed;
        } catch (BackendException failed) {
            if (revertedHere || !mayBeForAll(limits.throttler(limit))) {
                return false;
            }
            throw failed;
        }
    }

    /**
     * Reverts a change of this instance, unless a change for all instances is in force. One that was in force before, and is
     * still on the board, is followed again. Returns whether the limit changes.
     */
    private synchronized boolean revertHere(Limit limit) {
        Difference difference = limits.difference(limit);
        if (difference != null && difference.forAll()) {
            return false;
        }
        followed.remove(limit.text());
        limits.revert(limit);
        return difference != null;
    }

    /** Changes the board, and then this instance in the same way. */
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

    String place() {
        return board.place();
    }

    BackendException failure(BackendException failed, String consequence) {
        return new BackendException(
                (failed.isMisconfiguration() ? failed.getMessage() : board.place() + " is unavailable") + "; "
                        + consequence,
                failed);
    }

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

    /**
     * Applies a change for all instances, unless it was applied before. One that has ended holds again if the clock of the board
     * was ahead and is set back. Returns the reason if the change can't be applied.
     */
    private @Nullable String follow(String text, String signed) {
        if (signed.equals(followed.get(text)) && !limits.hasEnded(Limit.of(text))) {
            return null;
        }
        try {
            Limit limit = Limit.of(text);
            verifyScope(limits.throttler(limit));
            DatedChange change = DatedChange.of(board.verify(text, signed), limits.configured(limit));
            verifyOrder(text, change.since());
            limits.follow(limit, change, now());
            followed.put(text, signed);
            return null;
        } catch (IllegalArgumentException unusable) {
            return String.valueOf(unusable.getMessage());
        }
    }

    /**
     * A client that writes to the backend can reset the buckets there in any case, but not those in memory.
     *
     * @throws IllegalArgumentException if another writer to the board could change a policy with its buckets in memory
     */
    void verifyScope(PolicyThrottler throttler) {
        if (!mayBeForAll(throttler)) {
            throw new IllegalArgumentException("'" + throttler.policy().name()
                    + "' has its buckets in memory, and without '" + board.secretProperty()
                    + "' each client that writes to " + place() + " could change it: set a key-secret");
        }
    }

    private boolean mayBeForAll(PolicyThrottler throttler) {
        return board.areSigned() || throttler.backend() != null;
    }

    /** @throws IllegalArgumentException if a signed change is older than one that this instance has seen */
    private void verifyOrder(String limit, Instant since) {
        if (!board.areSigned()) {
            return;
        }
        Latest seen = latest.get(limit);
        if (seen != null && seen.precludes(since)) {
            throw new IllegalArgumentException(
                    "it was made " + since + " and has been replaced or reverted since, so it" + " was written to "
                            + board.place() + " again: send the change to the actuator if it is wanted");
        }
        latest.put(limit, new Latest(since, false));
    }

    private void drop(String text) {
        latest.computeIfPresent(text, (limit, change) -> new Latest(change.since, true));
        if (followed.remove(text) != null) {
            limits.end(Limit.of(text));
        }
    }

    /**
     * The changes for all instances that this instance doesn't follow. Each is logged once, and at most five in ten seconds, as
     * another client of the shared place may write any number. For one thread at a time.
     */
    private final class IgnoredChanges {

        private static final long PERIOD_NANOS = Duration.ofSeconds(10).toNanos();
        private static final int MAX_LINES = 5;
        private static final int MAX_LENGTH = 300;

        private final Map<String, String> logged = new HashMap<>();
        private long since = time.nanoTime();
        private int lines;

        /** @param reason null if the change is followed */
        void log(String limit, String change, @Nullable String reason) {
            if (reason == null) {
                logged.remove(limit);
            } else if (!change.equals(logged.get(limit)) && mayLog()) {
                logged.put(limit, change);
                logger.warn("The change of '" + printable(limit)
                        + "' for all instances can't be used and is ignored, so the present limit stays: "
                        + printable(reason));
            }
        }

        private boolean mayLog() {
            if (time.nanoTime() - since >= PERIOD_NANOS) {
                since = time.nanoTime();
                lines = 0;
            }
            return lines++ < MAX_LINES;
        }

        void retain(Set<String> limits) {
            logged.keySet().retainAll(limits);
        }

        private static String printable(String text) {
            String cut = text.length() > MAX_LENGTH ? text.substring(0, MAX_LENGTH) + "…" : text;
            return cut.codePoints()
                    .map(c -> Character.isISOControl(c) ? '?' : c)
                    .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
                    .toString();
        }
    }
}
