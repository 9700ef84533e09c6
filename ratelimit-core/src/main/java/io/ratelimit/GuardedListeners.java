package io.ratelimit;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/**
 * Several listeners, called one after the other. One that throws is reported once and not called again, since a
 * decision stands and its caller can't mend the listener. Thread-safe.
 */
final class GuardedListeners implements ThrottleListener {

    private static final Logger logger = System.getLogger(ThrottleListener.class.getName());

    private volatile ThrottleListener[] listeners;

    GuardedListeners(List<? extends ThrottleListener> listeners) {
        this.listeners = listeners.toArray(ThrottleListener[]::new);
    }

    @Override
    public void decided(Decision decision) {
        for (ThrottleListener listener : listeners) {
            try {
                listener.decided(decision);
            } catch (RuntimeException | LinkageError | AssertionError | StackOverflowError broken) {
                leaveOut(listener, broken);
            }
        }
    }

    @Override
    public void added(PolicyThrottler throttler) {
        call(listener -> listener.added(throttler));
    }

    @Override
    public void eventOccurred(ThrottlePolicy policy, ThrottleListener.Event event) {
        call(listener -> listener.eventOccurred(policy, event));
    }

    @Override
    public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
        call(listener -> listener.reconfigured(before, after));
    }

    private void call(Consumer<ThrottleListener> call) {
        for (ThrottleListener listener : listeners) {
            try {
                call.accept(listener);
            } catch (RuntimeException | LinkageError | AssertionError | StackOverflowError broken) {
                leaveOut(listener, broken);
            }
        }
    }

    /** Reports only the type and the stack trace, since the exception's message may contain what a client sent. */
    private synchronized void leaveOut(ThrottleListener listener, Throwable broken) {
        ThrottleListener[] before = listeners;
        ThrottleListener[] rest =
                Arrays.stream(before).filter(other -> other != listener).toArray(ThrottleListener[]::new);
        if (rest.length < before.length) {
            listeners = rest;
            Throwable report = new IllegalStateException(broken.getClass().getName());
            report.setStackTrace(broken.getStackTrace());
            logger.log(
                    Level.ERROR,
                    "The ThrottleListener " + listener.getClass().getName() + " failed, and is not called any more",
                    report);
        }
    }
}
