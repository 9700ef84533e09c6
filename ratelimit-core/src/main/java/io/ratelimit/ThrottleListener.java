package io.ratelimit;

/**
 * Is told of every decision, and of what else happens to policies: for logs, meters and dashboards. Called on the
 * caller's thread, so it must be quick.
 */
@FunctionalInterface
public interface ThrottleListener {

    /** Nobody listens. */
    ThrottleListener NONE = decision -> {};

    /**
     * A decision was made. Shadow policies are told apart from the enforced ones, each in a decision of its own; a no of
     * theirs refuses nothing. Must not throw: that would reach the caller, though tokens were taken.
     */
    void decided(Decision decision);

    /** There is a policy from now on, of which decisions may come. Must not throw. */
    default void added(ThrottlePolicy policy) {}

    /** Something happened to a policy beside its decisions. Must not throw. */
    default void happened(ThrottlePolicy policy, ThrottleEvent event) {}

    /** Size and rate of a policy, or of a tier of it, were changed while it runs. Must not throw. */
    default void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {}
}
