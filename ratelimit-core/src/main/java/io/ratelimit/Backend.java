package io.ratelimit;

/** A remote store of buckets, which may fail: its name, its health and its calls. */
public interface Backend {

    /** Returns the name for logs and meters, such as {@code Redis}. */
    String name();

    /** Returns the health as the latest calls have shown it; makes no call. */
    BackendState state();

    /** Makes a call that takes no tokens, so that {@link #state()} is up to date. Never throws. */
    default void probe() {}

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
}
