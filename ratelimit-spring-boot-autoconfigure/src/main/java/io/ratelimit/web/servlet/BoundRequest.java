package io.ratelimit.web.servlet;

import io.ratelimit.key.RequestFacts;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import jakarta.servlet.http.HttpServletRequest;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

/** The request that Spring has bound to the current thread. Threads of asynchronous work usually have none. */
final class BoundRequest implements Current {

    private final Supplier<Endpoints> endpoints;
    private final ClientIpResolver clientIps;

    /**
     * @param endpoints supplies the endpoints when the first request needs them
     */
    public BoundRequest(Supplier<Endpoints> endpoints, ClientIpResolver clientIps) {
        this.endpoints = endpoints;
        this.clientIps = clientIps;
    }

    @Override
    public @Nullable RequestFacts facts() {
        return RequestContextHolder.getRequestAttributes() instanceof ServletRequestAttributes bound
                ? facts(bound.getRequest())
                : null;
    }

    @Override
    public void noteRejectedCall(RuntimeException rejected) {
        if (RequestContextHolder.getRequestAttributes() instanceof ServletRequestAttributes bound) {
            try {
                RequestLedger.of(bound.getRequest()).rejectedCall(rejected);
            } catch (IllegalStateException requestIsOver) {
                // there is no response to replace
            }
        }
    }

    /** Returns null if the request is over: a thread may outlive its request, and the container then denies all access. */
    private @Nullable RequestFacts facts(HttpServletRequest request) {
        try {
            return RequestLedger.of(request).facts(request, endpoints.get(), clientIps);
        } catch (IllegalStateException requestIsOver) {
            return null;
        }
    }
}
