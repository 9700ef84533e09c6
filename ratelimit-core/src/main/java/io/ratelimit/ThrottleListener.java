package io.ratelimit;

/** Is told of every decision: for logs, meters and dashboards. Called on the caller's thread, so it must be quick. */
@FunctionalInterface
public interface ThrottleListener {

    /** Nobody listens. */
    ThrottleListener NONE = decision -> {};

    /**
     * A decision was made. Shadow policies are told apart from the enforced ones, each in a decision of its own; a no of
     * theirs refuses nothing. Must not throw: that would reach the caller, though tokens were taken.
     */
    void decided(Decision decision);
}
