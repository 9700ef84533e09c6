package io.ratelimit.web.servlet;

import io.ratelimit.key.RequestFacts;
import io.ratelimit.key.RequestFacts.Current;
import jakarta.servlet.http.HttpServletRequest;
import org.jspecify.annotations.Nullable;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

/** The request that Spring has bound to the current thread. Threads of asynchronous work usually have none. */
final class BoundRequest implements Current {

    private final ServerLimits.Late limits;

    BoundRequest(ServerLimits.Late limits) {
        this.limits = limits;
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
                RequestLedger.of(bound.getRequest(), limits).rejectedCall(rejected);
            } catch (IllegalStateException requestIsOver) {
                // there is no response to replace
            }
        }
    }

    /** Returns null if the request is over: a thread may outlive its request, and the container then denies all access. */
    private @Nullable RequestFacts facts(HttpServletRequest request) {
        try {
            return RequestLedger.of(request, limits).facts(request);
        } catch (IllegalStateException requestIsOver) {
            return null;
        }
    }
}
