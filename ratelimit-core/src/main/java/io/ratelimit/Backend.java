package io.ratelimit;

/** Something outside of this process that has buckets, and may fail. */
public interface Backend {

    /** What it is called, such as {@code Redis}. */
    String name();

    /** How it is, as far as calls have shown; asking costs nothing. */
    BackendState state();

    /** Makes a call that takes nothing from anybody, so that {@link #state()} shows what it showed. Never throws. */
    default void probe() {}

    /** Has a listener told of the calls that are made from now on; of one that counts none, it hears nothing. */
    default void listen(BackendListener listener) {}
}
