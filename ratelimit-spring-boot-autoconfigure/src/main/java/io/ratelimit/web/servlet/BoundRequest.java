package io.ratelimit.web.servlet;

import io.ratelimit.key.CurrentRequest;
import io.ratelimit.key.RequestFacts;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

/** The request that Spring has bound to the thread: on the threads of asynchronous work most often none. */
public final class BoundRequest implements CurrentRequest {

    private final Supplier<Endpoints> endpoints;

    /**
     * @param endpoints asked for with the first request
     */
    public BoundRequest(Supplier<Endpoints> endpoints) {
        this.endpoints = endpoints;
    }

    @Override
    public @Nullable RequestFacts facts() {
        return RequestContextHolder.getRequestAttributes() instanceof ServletRequestAttributes bound
                ? RequestBill.of(bound.getRequest()).facts(bound.getRequest(), endpoints.get())
                : null;
    }
}
