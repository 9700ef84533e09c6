package io.ratelimit;

/** Something outside of this process that has buckets, and may fail. */
public interface Backend {

    /** What it is called, such as {@code Redis}. */
    String name();

    /** How it is, as far as calls have shown; asking costs nothing. */
    BackendState state();
}
