package io.ratelimit;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** A remote store of buckets, which may fail: its name, its health and its calls. */
public interface Backend {

    /** Returns the name for logs and meters, such as {@code Redis}. */
    String name();

    /** Returns the health as the latest calls have shown it; makes no call. */
    State state();

    /**
     * Makes a call that takes no tokens, so that {@link #state()} is up to date. Never throws.
     *
     * @return whether the call succeeded. A backend is misconfigured also if it fails only the calls of one policy or key
     */
    default boolean probe() {
        return state().condition() == Condition.UP;
    }

    /** Registers a listener for future calls. A backend that doesn't count calls ignores it. */
    default void addListener(Listener listener) {}

    /**
     * A listener for the calls of a backend. It runs on the caller's thread, so it must be quick. A listener that
     * throws is reported once in the log, with its class, and is not called again.
     */
    @FunctionalInterface
    interface Listener {

        /**
         * Handles the end of a call.
         *
         * @param nanos the duration of the call
         * @param failed whether the call had no answer, or one that came too late
         */
        void callCompleted(long nanos, boolean failed);
    }

    /**
     * The health of a backend.
     *
     * @param condition whether the backend can be used
     * @param since the beginning of the condition, by the machine's clock
     * @param cause the cause of a failure, without anything that clients sent; null if there is none
     */
    record State(
            Condition condition, Instant since, @Nullable String cause) {

        /** Returns the state of a backend that answers, since now. */
        public static State up() {
            return new State(Condition.UP, Instant.now(), null);
        }

        /** Returns the state after a failure, since now. */
        public static State failed(BackendException failure) {
            Condition condition = failure.isMisconfiguration() ? Condition.MISCONFIGURED : Condition.DOWN;
            return new State(condition, Instant.now(), failure.getMessage());
        }
    }

    /** The usability of a backend. */
    enum Condition {
        /** The backend answers. */
        UP,
        /** The backend can't be reached, or is slow. It may recover without any change. */
        DOWN,
        /** The backend answers, but not correctly. Its configuration must be corrected. */
        MISCONFIGURED
    }
}
