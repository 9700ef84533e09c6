package io.ratelimit.web.servlet;

import jakarta.servlet.http.HttpServletRequest;
import org.springframework.context.ApplicationListener;
import org.springframework.security.authentication.event.AbstractAuthenticationFailureEvent;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

/**
 * Records failed authentications of the request that is bound to the thread, such as in a controller that calls the
 * authentication manager.
 */
public final class FailedAuthenticationListener implements ApplicationListener<AbstractAuthenticationFailureEvent> {

    @Override
    public void onApplicationEvent(AbstractAuthenticationFailureEvent event) {
        if (RequestContextHolder.getRequestAttributes() instanceof ServletRequestAttributes bound) {
            record(bound.getRequest());
        }
    }

    private static void record(HttpServletRequest request) {
        try {
            RequestLedger ledger = RequestLedger.find(request);
            if (ledger != null) {
                ledger.noteFailedAuthentication();
            }
        } catch (IllegalStateException requestIsOver) {
            // a thread may outlive its request: the response is complete, so nothing can be refunded
        }
    }
}
