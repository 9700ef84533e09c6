package io.ratelimit.annotation;

import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.springframework.core.ReactiveAdapter;
import org.springframework.core.ReactiveAdapterRegistry;
import reactor.core.publisher.Mono;

/** The results of methods whose calls are settled: values, and values that come later. */
final class SettledResult {

    private SettledResult() {}

    /** Returns why the results of a type show no actual cost, as messages describe it; null if they may. */
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

    private static boolean isMono(Class<?> type) {
        return type.getName().equals("reactor.core.publisher.Mono");
    }

    /**
     * Returns the result, and has its value settled: now, or once when it comes. A failure is not settled.
     *
     * @param settle settles a call by its value
     */
    static @Nullable Object of(@Nullable Object result, Consumer<@Nullable Object> settle) {
        if (result instanceof CompletionStage<?> stage) {
            stage.whenComplete((value, failure) -> {
                if (failure == null) {
                    settle.accept(value);
                }
            });
        } else if (result != null && isReactive(result)) {
            return Monos.settled(result, settle);
        } else {
            settle.accept(result);
        }
        return result;
    }

    /** All subclasses of Mono belong to its package, but for those that applications write. */
    private static boolean isReactive(Object result) {
        for (Class<?> type = result.getClass(); type != null; type = type.getSuperclass()) {
            if (isMono(type)) {
                return true;
            }
        }
        return false;
    }

    /** Loaded only where Reactor is there. A second subscription repeats the work, but not the charge. */
    private static final class Monos {

        static Object settled(Object mono, Consumer<@Nullable Object> settle) {
            AtomicBoolean isSettled = new AtomicBoolean();
            return ((Mono<?>) mono).doOnNext(value -> {
                if (isSettled.compareAndSet(false, true)) {
                    settle.accept(value);
                }
            });
        }
    }
}
