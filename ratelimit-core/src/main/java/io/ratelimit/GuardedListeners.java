package io.ratelimit;

import io.ratelimit.Decision.Answer;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;

/**
 * Several listeners, called one after the other. One that throws is reported once and not called again, nor are its
 * listeners for single policies, since a decision stands and its caller can't mend the listener. Thread-safe.
 */
final class GuardedListeners implements ThrottleListener {

    private static final Logger logger = System.getLogger(ThrottleListener.class.getName());

    private final Guarded[] listeners;

    GuardedListeners(List<? extends ThrottleListener> listeners) {
        this.listeners = listeners.stream().map(Guarded::new).toArray(Guarded[]::new);
    }

    @Override
    public void decided(Decision decision) {
        for (Guarded guarded : listeners) {
            guarded.decided(decision);
        }
    }

    @Override
    public PolicyListener added(PolicyThrottler throttler) {
        List<GuardedPolicy> ofPolicy = new ArrayList<>();
        for (Guarded guarded : listeners) {
            guarded.call(() -> {
                PolicyListener own = guarded.listener.added(throttler);
                if (own != null) {
                    ofPolicy.add(new GuardedPolicy(guarded, own));
                }
            });
        }
        return ofPolicy.isEmpty() ? PolicyListener.NONE : new GuardedPolicies(ofPolicy.toArray(GuardedPolicy[]::new));
    }

    @Override
    public void eventOccurred(ThrottlePolicy policy, Event event) {
        for (Guarded guarded : listeners) {
            guarded.call(() -> guarded.listener.eventOccurred(policy, event));
        }
    }

    @Override
    public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
        for (Guarded guarded : listeners) {
            guarded.call(() -> guarded.listener.reconfigured(before, after));
        }
    }

    /** A listener that is called until it throws. */
    private static final class Guarded {

        private final ThrottleListener listener;
        private volatile boolean leftOut;

        Guarded(ThrottleListener listener) {
            this.listener = listener;
        }

        /** Calls the listener directly: {@link #call} may allocate. */
        void decided(Decision decision) {
            if (!leftOut) {
                try {
                    listener.decided(decision);
                } catch (RuntimeException | LinkageError | AssertionError | StackOverflowError broken) {
                    leaveOut(broken);
                }
            }
        }

        void call(Runnable call) {
            if (!leftOut) {
                try {
                    call.run();
                } catch (RuntimeException | LinkageError | AssertionError | StackOverflowError broken) {
                    leaveOut(broken);
                }
            }
        }

        /** Reports only the type and the stack trace, since the exception's message may contain what a client sent. */
        synchronized void leaveOut(Throwable broken) {
            if (!leftOut) {
                leftOut = true;
                Throwable report = new IllegalStateException(broken.getClass().getName());
                report.setStackTrace(broken.getStackTrace());
                logger.log(
                        Level.ERROR,
                        "The ThrottleListener " + listener.getClass().getName() + " failed, and is not called any more",
                        report);
            }
        }
    }

    /** The listener for one policy that a listener returned. */
    private record GuardedPolicy(Guarded owner, PolicyListener listener) {

        void decided(Decision decision, Answer answer) {
            if (!owner.leftOut) {
                try {
                    listener.decided(decision, answer);
                } catch (RuntimeException | LinkageError | AssertionError | StackOverflowError broken) {
                    owner.leaveOut(broken);
                }
            }
        }
    }

    /** The listeners for one policy. */
    private record GuardedPolicies(GuardedPolicy[] listeners) implements PolicyListener {

        @Override
        public void decided(Decision decision, Answer answer) {
            for (GuardedPolicy guarded : listeners) {
                guarded.decided(decision, answer);
            }
        }

        @Override
        public void eventOccurred(Event event) {
            for (GuardedPolicy guarded : listeners) {
                guarded.owner.call(() -> guarded.listener.eventOccurred(event));
            }
        }

        @Override
        public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
            for (GuardedPolicy guarded : listeners) {
                guarded.owner.call(() -> guarded.listener.reconfigured(before, after));
            }
        }
    }
}
