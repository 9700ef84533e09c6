package io.ratelimit.annotation;

import java.lang.ref.Cleaner;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.springframework.core.ReactiveAdapter;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.util.ClassUtils;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The results of calls in flight: a call runs until it returns, or until the result that it returns is complete. */
final class InFlightResult {

    private static final boolean REACTOR =
            ClassUtils.isPresent("reactor.core.publisher.Flux", InFlightResult.class.getClassLoader());

    private InFlightResult() {}

    /** Returns whether a method of this return type returns before its work is done, and never reports the end. */
    static boolean hidesEnd(Class<?> type) {
        return Future.class.isAssignableFrom(type) && !CompletionStage.class.isAssignableFrom(type);
    }

    /**
     * Ends a call when its result is complete; at once if it is a plain value.
     *
     * @param end ends the call; its second run has no effect
     * @return the result for the caller of the method
     */
    static @Nullable Object of(@Nullable Object result, Runnable end) {
        if (result instanceof CompletionStage<?> stage) {
            stage.whenComplete((value, failure) -> end.run());
            return result;
        }
        ReactiveAdapter adapter = result == null || !REACTOR
                ? null
                : ReactiveAdapterRegistry.getSharedInstance().getAdapter(result.getClass());
        if (result == null || adapter == null) {
            end.run();
            return result;
        }
        return Publishers.ending(result, adapter, end);
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
