package io.ratelimit.autoconfigure;

import io.ratelimit.key.FailureListener;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/** A listener that is reported once and not called again if it throws, so that it never fails a request. Thread-safe. */
final class GuardedFailureListener implements FailureListener {

    private static final Log logger = LogFactory.getLog(FailureListener.class);

    private final FailureListener listener;
    private final AtomicBoolean broken = new AtomicBoolean();

    GuardedFailureListener(FailureListener listener) {
        this.listener = listener;
    }

    @Override
    public void failed(String policy, String fact, String reason) {
        call(guarded -> guarded.failed(policy, fact, reason));
    }

    @Override
    public void failed(String policy, String fact, Exception failure) {
        call(guarded -> guarded.failed(policy, fact, failure));
    }

    /** Reports only the type and the stack trace, since the exception's message may contain what a client sent. */
    private void call(Consumer<FailureListener> call) {
        try {
            if (!broken.get()) {
                call.accept(listener);
            }
        } catch (RuntimeException | LinkageError | AssertionError | StackOverflowError failure) {
            if (broken.compareAndSet(false, true)) {
                Throwable report = new IllegalStateException(failure.getClass().getName());
                report.setStackTrace(failure.getStackTrace());
                String name = listener.getClass().getName();
                logger.error("The FailureListener " + name + " failed, and is not called any more", report);
            }
        }
    }
}
