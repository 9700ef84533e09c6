package io.ratelimit;

/** Is told of each call of a {@link Backend}. Called on the caller's thread, so it must be quick. */
@FunctionalInterface
public interface BackendListener {

    /**
     * A call has ended. Must not throw.
     *
     * @param nanos how long it took
     * @param failed whether it brought no answer, or one that came too late
     */
    void called(long nanos, boolean failed);
}
