package io.ratelimit.jdbc;

import io.ratelimit.BackendException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The refusals of a server that answers, but can't be used until it is corrected: it rejects the login, doesn't write or lacks
 * the table. While they last, a connection is opened only each half a second. Thread-safe.
 */
final class Refusals {
    /*
     * A misconfiguration opens no circuit breaker, since it may concern one statement alone. Without a pause each decision
     * would therefore log in again, hundreds of times a second, until the server locks the account of the application.
     */

    private static final long PAUSE = Duration.ofMillis(500).toNanos();

    private final AtomicReference<@Nullable Refusal> latest = new AtomicReference<>();

    /** @param at the moment from which the pause counts */
    private record Refusal(BackendException failure, long at) {}

    /** Throws the latest refusal, unless the caller is the first one after a pause: this one may try again. */
    void permit() {
        Refusal refusal = latest.get();
        long now = System.nanoTime();
        if (refusal != null
                && (now - refusal.at < PAUSE || !latest.compareAndSet(refusal, new Refusal(refusal.failure, now)))) {
            throw refusal.failure;
        }
    }

    /** @param opened when the refused connection was opened: one that worked for long is replaced at once */
    void note(BackendException failure, long opened) {
        latest.updateAndGet(before -> before != null && before.at - opened > 0 ? before : new Refusal(failure, opened));
    }

    /** Ends the pause, if the connection that worked was opened since the refusal. */
    void noteSuccess(long opened) {
        Refusal refusal = latest.get();
        if (refusal != null && opened - refusal.at >= 0) {
            latest.compareAndSet(refusal, null);
        }
    }

    void clear() {
        latest.set(null);
    }
}
