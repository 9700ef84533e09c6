package io.ratelimit;

import io.ratelimit.Decision.Answer;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Several listeners, called one after the other, and then the listener of the one policy that a call concerns. One that
 * throws is reported once and not called again, nor are its listeners for single policies, since a decision stands and its
 * caller can't mend the listener. A listener whose stack overflows is called again: a call may come with hardly any stack
 * left, and an entry in the log would need more than the listener. Thread-safe.
 */
final class GuardedListeners implements ThrottleListener {

    private static final Logger logger = System.getLogger(ThrottleListener.class.getName());

    private final List<Guarded<ThrottleListener>> all;

    /** The throttlers that have the listeners of single policies; null if these listeners are part of others. */
    private final @Nullable Throttlers throttlers;

    private GuardedListeners(List<Guarded<ThrottleListener>> all, @Nullable Throttlers throttlers) {
        this.all = all;
        this.throttlers = throttlers;
    }

    static GuardedListeners of(List<? extends ThrottleListener> listeners) {
        List<Guarded<ThrottleListener>> all = new ArrayList<>();
        for (ThrottleListener listener : listeners) {
            all.add(new Guarded<>(listener, new Owner(listener)));
        }
        return new GuardedListeners(all, null);
    }

    static GuardedListeners of(ThrottleListener listener, Throttlers throttlers) {
        boolean several = listener instanceof GuardedListeners guarded && guarded.throttlers == null;
        return new GuardedListeners((several ? (GuardedListeners) listener : of(List.of(listener))).all, throttlers);
    }

    private PolicyListener own(ThrottlePolicy policy) {
        return throttlers == null ? PolicyListener.NONE : throttlers.of(policy).listener();
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
        call(all, (listener, made, same) -> listener.decided(made), decision, decision);
        List<Answer> answers = decision.answers();
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            own(answer.policy()).decided(decision, answer);
        }
    }

    @Override
    public PolicyListener added(PolicyThrottler throttler) {
        List<Guarded<PolicyListener>> ofPolicy = new ArrayList<>();
        for (Guarded<ThrottleListener> guarded : all) {
            guarded.call(
                    (listener, added, others) -> {
                        PolicyListener own = listener.added(added);
                        if (own != null) {
                            others.add(new Guarded<>(own, guarded.owner));
                        }
                    },
                    throttler,
                    ofPolicy);
        }
        return ofPolicy.isEmpty() ? PolicyListener.NONE : new OfPolicy(ofPolicy);
    }

    @Override
    public void eventOccurred(ThrottlePolicy policy, Event event) {
        call(all, ThrottleListener::eventOccurred, policy, event);
        own(policy).eventOccurred(event);
    }

    @Override
    public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
        call(all, ThrottleListener::reconfigured, before, after);
        own(after).reconfigured(before, after);
    }

    /** A method of a listener. Made by a lambda that captures nothing, so that the call of a decision allocates nothing. */
    private interface Notification<L, A, B> {
        void make(L listener, A first, B second);
    }

    private static <L, A, B> void call(List<Guarded<L>> listeners, Notification<L, A, B> call, A first, B second) {
        for (int i = 0; i < listeners.size(); i++) {
            listeners.get(i).call(call, first, second);
        }
    }

    private interface TimeNotification {
        void make(PolicyListener listener, long nanos);
    }

    /** A listener that was passed to the throttlers, and whether it has thrown. */
    private static final class Owner {

        private final ThrottleListener listener;
        private volatile boolean leftOut;
        private volatile boolean overflowed;

        Owner(ThrottleListener listener) {
            this.listener = listener;
        }

        synchronized void leaveOut(Throwable broken) {
            if (!leftOut) {
                leftOut = true;
                report("failed, and is not called any more", broken);
            }
        }

        /** Reports the first overflow that leaves stack for the report. The next call may have more stack, so it is made. */
        void overflowed(StackOverflowError overflow) {
            if (!overflowed) {
                try {
                    report("ran out of stack, and is still called", overflow);
                    overflowed = true;
                } catch (StackOverflowError again) { // a later one is reported
                }
            }
        }

        /** Reports only the type and the stack trace, since the exception's message may contain what a client sent. */
        private void report(String what, Throwable broken) {
            Throwable report = new IllegalStateException(broken.getClass().getName());
            report.setStackTrace(broken.getStackTrace());
            logger.log(
                    Level.ERROR, "The ThrottleListener " + listener.getClass().getName() + " " + what, report);
        }
    }

    /** A listener, or one for a single policy, that is called until its owner has thrown. */
    private record Guarded<L>(L listener, Owner owner) {

        <A, B> void call(Notification<L, A, B> call, A first, B second) {
            if (!owner.leftOut) {
                try {
                    call.make(listener, first, second);
                } catch (StackOverflowError overflow) {
                    owner.overflowed(overflow);
                } catch (RuntimeException | LinkageError | AssertionError broken) {
                    owner.leaveOut(broken);
                }
            }
        }
    }

    private record OfPolicy(List<Guarded<PolicyListener>> listeners) implements PolicyListener {

        @Override
        public void decided(Decision decision, Answer answer) {
            call(listeners, PolicyListener::decided, decision, answer);
        }

        @Override
        public void eventOccurred(Event event) {
            call(listeners, (listener, occurred, same) -> listener.eventOccurred(occurred), event, event);
        }

        @Override
        public void waited(long nanos) {
            callWithTime(PolicyListener::waited, nanos);
        }

        @Override
        public boolean handlesReleased() {
            boolean[] any = {false};
            call(listeners, (listener, found, same) -> found[0] |= listener.handlesReleased(), any, any);
            return any[0];
        }

        @Override
        public void released(long nanos) {
            callWithTime(PolicyListener::released, nanos);
        }

        /** Calls the listeners without an object for the time. */
        private void callWithTime(TimeNotification notification, long nanos) {
            for (int i = 0; i < listeners.size(); i++) {
                Guarded<PolicyListener> guarded = listeners.get(i);
                if (!guarded.owner.leftOut) {
                    try {
                        notification.make(guarded.listener, nanos);
                    } catch (StackOverflowError overflow) {
                        guarded.owner.overflowed(overflow);
                    } catch (RuntimeException | LinkageError | AssertionError broken) {
                        guarded.owner.leaveOut(broken);
                    }
                }
            }
        }

        @Override
        public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
            call(listeners, PolicyListener::reconfigured, before, after);
        }
    }
}
