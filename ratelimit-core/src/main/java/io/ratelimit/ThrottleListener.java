package io.ratelimit;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A listener for every decision and for the other events of policies: for logs, meters and dashboards. A listener that
 * keeps something for each policy returns a {@link PolicyListener} when the policy is {@linkplain #added added}.
 * {@link Throttlers} calls it on the caller's thread, so it must be quick. A listener that throws is reported once in
 * the log, with its class, and is not called again, unless the stack was used up.
 */
@FunctionalInterface
public interface ThrottleListener {

    /** The events of a policy beside its decisions. */
    enum Event {
        /** A call lacked a part of the policy's key, or the part couldn't be determined. */
        MISSING_KEY,
        /** A key had to share an overflow bucket, because the policy has its maximum of keys. */
        OVERFLOW,
        /** The backend that holds the bucket failed, so the policy's rule for a failed backend decided. */
        BACKEND_FAILURE,
        /** A call was exempt from the policy. */
        EXEMPT,
        /** A rejection is answered late, as the policy demands. */
        DELAYED,
        /** The code that gives a call its own limit failed, so the policy's limit applied. */
        LIMIT_FAILURE,
        /** A call was settled: its actual cost replaced the estimate. */
        SETTLED,
        /** The actual cost of a call was no usable number or came too late, so the estimate stands. */
        SETTLE_FAILURE
    }

    /** A listener that does nothing. */
    ThrottleListener NONE = decision -> {};

    /** Returns a listener that calls each of these in their order, except those that have thrown. */
    static ThrottleListener of(List<? extends ThrottleListener> listeners) {
        return GuardedListeners.of(listeners);
    }

    /**
     * Handles a decision. Each shadow policy has its own decision, apart from the enforced policies; its denial doesn't
     * deny the call.
     */
    void decided(Decision decision);

    /**
     * Handles a new policy. Its decisions come later.
     *
     * @return the listener for this policy alone, which is called after this one; null for none
     */
    default @Nullable PolicyListener added(PolicyThrottler throttler) {
        return null;
    }

    /** Handles an event of a policy beside its decisions. */
    default void eventOccurred(ThrottlePolicy policy, Event event) {}

    /** Handles a change of the rate or the capacity of a policy or of one of its tiers. */
    default void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {}
}
