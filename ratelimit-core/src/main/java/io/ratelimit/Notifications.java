package io.ratelimit;

import io.ratelimit.Decision.Answer;
import java.util.List;

/** Calls the listeners of all policies, and then the listener of the one policy that a call concerns. Thread-safe. */
final class Notifications implements ThrottleListener {

    private final Throttlers throttlers;
    private final ThrottleListener all;

    Notifications(Throttlers throttlers, ThrottleListener listener) {
        this.throttlers = throttlers;
        this.all = listener instanceof GuardedListeners ? listener : ThrottleListener.of(List.of(listener));
    }

    /** Reports a decision of a store, and the events that its answers contain. */
    void report(Decision decision) {
        decided(decision);
        List<Answer> answers = decision.answers();
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            if (answer.shared()) {
                eventOccurred(answer.policy(), Event.OVERFLOW);
            }
            if (answer.fallback()) {
                eventOccurred(answer.policy(), Event.BACKEND_FAILURE);
            }
        }
    }

    @Override
    public void decided(Decision decision) {
        all.decided(decision);
        List<Answer> answers = decision.answers();
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            own(answer.policy()).decided(decision, answer);
        }
    }

    @Override
    public PolicyListener added(PolicyThrottler throttler) {
        PolicyListener own = all.added(throttler);
        return own == null ? PolicyListener.NONE : own;
    }

    @Override
    public void eventOccurred(ThrottlePolicy policy, Event event) {
        all.eventOccurred(policy, event);
        own(policy).eventOccurred(event);
    }

    @Override
    public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
        all.reconfigured(before, after);
        own(after).reconfigured(before, after);
    }

    private PolicyListener own(ThrottlePolicy policy) {
        return throttlers.of(policy).listener();
    }
}
