package io.ratelimit.annotation;

import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.springframework.core.ReactiveAdapter;
import org.springframework.core.ReactiveAdapterRegistry;
import reactor.core.publisher.Mono;

/** The results of methods whose calls are settled: values, and values that arrive later. */
final class SettledResult {

    private SettledResult() {}

    /**
     * Returns what a method of this return type returns in place of a value, for messages; null if it returns a value.
     */
    static @Nullable String obstacle(Class<?> type) {
        if (type == void.class || type == Void.class) {
            return "nothing";
        }
        ReactiveAdapter adapter = ReactiveAdapterRegistry.getSharedInstance().getAdapter(type);
        if (adapter != null && adapter.isMultiValue()) {
            return "a stream of several values, " + type.getName();
        }
        boolean isLate = adapter != null || Future.class.isAssignableFrom(type);
        return isLate && !CompletionStage.class.isAssignableFrom(type) && !isMono(type)
                ? "a " + type.getName() + ", which doesn't report its completion"
                : null;
    }

    static boolean isMono(Class<?> type) {
        return type.getName().equals("reactor.core.publisher.Mono");
    }

    /** Settles a call. */
    interface Settlement {

        /**
         * Settles the call by its value.
         *
         * @param mayWait whether this thread may wait for a remote store; not if it brings the value of another thread
         */
        void settle(@Nullable Object value, boolean mayWait);
    }

    /**
     * Settles a call by the value of its result: at once, or when the value arrives. A failure is not settled.
     *
     * @return the result for the caller of the method
     */
    static @Nullable Object of(@Nullable Object result, Settlement settlement) {
        if (result instanceof CompletionStage<?> stage) {
            stage.whenComplete((value, failure) -> {
                if (failure == null) {
                    settlement.settle(value, false);
                }
            });
        } else if (result != null && isReactive(result)) {
            return Monos.settled(result, settlement);
        } else {
            settlement.settle(result, true);
        }
        return result;
    }

    /** Returns whether a result is a {@code Mono} or of a subclass. Compares names, since Reactor may be missing. */
    private static boolean isReactive(Object result) {
        for (Class<?> type = result.getClass(); type != null; type = type.getSuperclass()) {
            if (isMono(type)) {
                return true;
            }
        }
        return false;
    }

    /** Loaded only if Reactor is on the class path. A second subscription repeats the work, but not the settlement. */
    private static final class Monos {

        static Object settled(Object mono, Settlement settlement) {
            AtomicBoolean isSettled = new AtomicBoolean();
            return ((Mono<?>) mono).doOnNext(value -> {
                if (isSettled.compareAndSet(false, true)) {
                    settlement.settle(value, false);
                }
            });
        }
    }
}
