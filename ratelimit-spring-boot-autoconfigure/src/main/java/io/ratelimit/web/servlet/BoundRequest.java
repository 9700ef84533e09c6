package io.ratelimit.web.servlet;

import io.ratelimit.key.CurrentRequest;
import io.ratelimit.key.RequestFacts;
import jakarta.servlet.http.HttpServletRequest;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

/** The request that Spring has bound to the thread: on the threads of asynchronous work most often none. */
public final class BoundRequest implements CurrentRequest {

    private final Supplier<Endpoints> endpoints;
    private final ClientAddresses addresses;

    /**
     * @param endpoints asked for with the first request
     */
    public BoundRequest(Supplier<Endpoints> endpoints, ClientAddresses addresses) {
        this.endpoints = endpoints;
        this.addresses = addresses;
    }

    @Override
    public @Nullable RequestFacts facts() {
        return RequestContextHolder.getRequestAttributes() instanceof ServletRequestAttributes bound
                ? facts(bound.getRequest())
                : null;
    }

    /** A thread that was given the request may go on when that is over, and the container then denies all access. */
    private @Nullable RequestFacts facts(HttpServletRequest request) {
        try {
            return RequestBill.of(request).facts(request, endpoints.get(), addresses);
        } catch (IllegalStateException over) {
            return null;
        }
    }
}
