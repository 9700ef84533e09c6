package io.ratelimit;

/**
 * A listener for the decisions and other events of one policy, as {@link ThrottleListener#added} returns it. It can keep
 * what belongs to the policy, such as its meters, and so needs no look-up by the policy's name. {@link Throttlers} calls
 * it on the caller's thread, so it must be quick. A listener that throws is reported once, and not called again.
 */
@FunctionalInterface
public interface PolicyListener {

    /** A listener that does nothing. */
    PolicyListener NONE = (decision, answer) -> {};

    /**
     * Handles the policy's answer in a decision. The answer can be allowed although the decision is not, since another
     * policy has denied the call.
     */
    void decided(Decision decision, Decision.Answer answer);

    /** Handles an event of the policy beside its decisions. */
    default void eventOccurred(ThrottleListener.Event event) {}

    /** Handles the end of a call's wait for a slot of this policy, which lasted this long. */
    default void waited(long nanos) {}

    /** Handles the {@linkplain Decision#release end} of a call that counted as in flight for this long. */
    default void released(long nanos) {}

    /**
     * Returns whether {@link #released} does anything. If no listener's does, it isn't called for each call, since two readings
     * of the clock take as long as all else. Called once, when the policy is added.
     */
    default boolean handlesReleased() {
        return true;
    }

    /** Handles a change of the rate or the capacity of the policy or of one of its tiers. */
    default void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {}
}
