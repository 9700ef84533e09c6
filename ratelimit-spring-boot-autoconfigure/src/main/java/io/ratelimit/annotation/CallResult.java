package io.ratelimit.annotation;

import java.lang.ref.Cleaner;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.springframework.core.ReactiveAdapter;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.core.ResolvableType;
import org.springframework.util.ClassUtils;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The results of methods whose calls are settled or in flight: values, and values that arrive later. A call in flight runs
 * until it returns, or until the result that it returns is complete.
 */
final class CallResult {

    private static final boolean REACTOR =
            ClassUtils.isPresent("reactor.core.publisher.Flux", CallResult.class.getClassLoader());

    /** The results whose work Spring MVC begins or awaits when the method has returned. The web classes are optional. */
    private static final Set<String> LATE = Set.of(
            "java.util.concurrent.Callable",
            "org.springframework.web.context.request.async.DeferredResult",
            "org.springframework.web.context.request.async.WebAsyncTask",
            "org.springframework.web.servlet.mvc.method.annotation.ResponseBodyEmitter",
            "org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody");

    private CallResult() {}

    /** Returns what a method of this return type returns in place of a value, for messages; null if it returns a value. */
    static @Nullable String withoutValue(Class<?> type) {
        if (type == void.class || type == Void.class) {
            return "nothing";
        }
        ReactiveAdapter adapter = adapter(type);
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

    /** Returns whether a method of this return type returns before its work is done, and never reports the end. */
    static boolean hidesEnd(ResolvableType type) {
        Class<?> result = type.resolve(Object.class);
        if (CompletionStage.class.isAssignableFrom(result)) {
            return false;
        }
        return Future.class.isAssignableFrom(result)
                || isAny(result, LATE)
                || !REACTOR && adapter(result) != null
                || isAny(result, Set.of("org.springframework.http.HttpEntity")) && isLate(type.getGeneric());
    }

    private static boolean isAny(Class<?> type, Set<String> names) {
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            if (names.contains(each.getName())) {
                return true;
            }
        }
        return ClassUtils.getAllInterfacesForClassAsSet(type).stream().anyMatch(each -> names.contains(each.getName()));
    }

    private static boolean isLate(ResolvableType body) {
        return hidesEnd(body) || adapter(body.resolve(Object.class)) != null;
    }

    /**
     * Returns the type that a method has to return in place of this return type, since its results are replaced by ones
     * that report their end; null if the return type fits.
     */
    static @Nullable Class<?> replacement(Class<?> type) {
        ReactiveAdapter adapter = CompletionStage.class.isAssignableFrom(type) ? null : adapter(type);
        Class<?> reported = adapter == null ? type : adapter.getReactiveType();
        return type.isAssignableFrom(reported) ? null : reported;
    }

    private static @Nullable ReactiveAdapter adapter(Class<?> type) {
        return ReactiveAdapterRegistry.getSharedInstance().getAdapter(type);
    }

    interface Settlement {

        /**
         * @param mayWait whether this thread may wait for a remote store; not if it brings the value of another thread
         */
        void settle(@Nullable Object value, boolean mayWait);
    }

    /** Settles a call by the value of its result: at once, or when the value arrives. A failure is not settled. */
    static @Nullable Object settled(@Nullable Object result, Settlement settlement) {
        if (result instanceof CompletionStage<?> stage) {
            stage.whenComplete((value, failure) -> {
                if (failure == null) {
                    settlement.settle(value, false);
                }
            });
        } else if (result != null && REACTOR && Monos.isMono(result)) {
            return Monos.settled(result, settlement);
        } else {
            settlement.settle(result, true);
        }
        return result;
    }

    /**
     * Ends a call when its result is complete; at once if it is a plain value.
     *
     * @param end ends the call; its second run has no effect
     */
    static @Nullable Object ending(@Nullable Object result, Runnable end) {
        if (result instanceof CompletionStage<?> stage) {
            stage.whenComplete((value, failure) -> end.run());
            return result;
        }
        ReactiveAdapter adapter = result == null || !REACTOR ? null : adapter(result.getClass());
        if (result == null || adapter == null) {
            end.run();
            return result;
        }
        return Publishers.ending(result, adapter, end);
    }

    /** Loaded only if Reactor is on the class path. A second subscription repeats the work, but not the settlement. */
    private static final class Monos {

        static boolean isMono(Object result) {
            return result instanceof Mono;
        }

        static Object settled(Object mono, Settlement settlement) {
            AtomicBoolean isSettled = new AtomicBoolean();
            return ((Mono<?>) mono).doOnNext(value -> {
                if (isSettled.compareAndSet(false, true)) {
                    settlement.settle(value, false);
                }
            });
        }
    }

    /** Loaded only if Reactor is on the class path. */
    private static final class Publishers {

        private static final Cleaner CLEANER = Cleaner.create();

        /** Also ends a call whose result is dropped before it had a subscriber. A second subscription counts no more. */
        static Object ending(Object result, ReactiveAdapter adapter, Runnable end) {
            AtomicBoolean subscribed = new AtomicBoolean();
            Publisher<?> publisher = adapter.toPublisher(result);
            Object ending = adapter.fromPublisher(
                    adapter.isMultiValue()
                            ? Flux.from(publisher)
                                    .doFirst(() -> subscribed.set(true))
                                    .doFinally(signal -> end.run())
                            : Mono.from(publisher)
                                    .doFirst(() -> subscribed.set(true))
                                    .doFinally(signal -> end.run()));
            CLEANER.register(ending, () -> {
                if (!subscribed.get()) {
                    end.run();
                }
            });
            return ending;
        }
    }
}
