package io.ratelimit.web.servlet;

import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Throttlers;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Lets a request through, or has it rejected, by the decision of the policies of one phase that apply to it. Registered
 * once for each phase, before and after Spring Security; whatever is dispatched again passes.
 */
public class RateLimitFilter implements Filter {

    private final Phase phase;
    private final Throttlers throttlers;
    private final Supplier<RequestPolicies> policies;
    private final RateLimitHeaders headers;
    private final Rejection rejection;
    private final RefusedCalls refusedCalls;

    /**
     * @param phase whose policies it asks
     * @param policies of all phases; asked for with the first request, when the endpoints of the application are known
     */
    public RateLimitFilter(
            Phase phase,
            Throttlers throttlers,
            Supplier<RequestPolicies> policies,
            RateLimitHeaders headers,
            Rejection rejection) {
        this.phase = phase;
        this.throttlers = throttlers;
        this.policies = policies;
        this.headers = headers;
        this.rejection = rejection;
        this.refusedCalls = new RefusedCalls(headers, rejection);
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        DispatcherType type = request.getDispatcherType();
        if (type == DispatcherType.ASYNC || type == DispatcherType.ERROR) {
            chain.doFilter(request, response);
        } else {
            enter((HttpServletRequest) request, (HttpServletResponse) response, chain);
        }
    }

    /** Once for each phase, wherever else somebody puts the filter. */
    private void enter(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        RequestBill bill = RequestBill.of(request);
        boolean outermost = bill.isNew();
        if (!bill.enter(phase)) {
            chain.doFilter(request, response);
        } else if (outermost && policies.get().refunds()) {
            settle(bill, request, response, chain);
        } else {
            decide(bill, request, response, chain);
        }
    }

    /** Decides, perhaps after a wait, and when the response is known, gives back what is not to be paid for it. */
    private void settle(RequestBill bill, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        boolean failed = true;
        try {
            decide(bill, request, response, chain);
            failed = false;
        } finally {
            if (failed) {
                int status = HttpServletResponse.SC_INTERNAL_SERVER_ERROR;
                bill.refund(throttlers, response.isCommitted() ? response.getStatus() : status);
            } else {
                Settlement.of(request, () -> bill.refund(throttlers, response.getStatus()));
            }
        }
    }

    private void decide(RequestBill bill, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        List<Charge> charges = policies.get().charges(phase, request, bill);
        Decision decision;
        try {
            decision = throttlers.acquire(charges);
        } catch (InterruptedException stopped) {
            stop(request, response);
            return;
        }
        answer(decision, bill, request, response, chain);
    }

    /** The thread is wanted for something else; that is no reason to let the request pass. */
    private void stop(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Thread.currentThread().interrupt();
        headers.remove(response);
        rejection.writeInterrupted(request, response);
    }

    private void answer(
            Decision decision,
            RequestBill bill,
            HttpServletRequest request,
            HttpServletResponse response,
            FilterChain chain)
            throws ServletException, IOException {
        if (decision.allowed()) {
            Answer shown = bill.scarcest();
            bill.add(decision, policies.get());
            show(bill.scarcest(), shown, response);
            goOn(request, response, chain);
        } else {
            headers.remove(response);
            rejection.write(request, response, decision);
        }
    }

    /** A call that is refused outside Spring MVC, as in another filter, is answered here. */
    private void goOn(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        try {
            chain.doFilter(request, response);
        } catch (ServletException | RuntimeException failure) {
            if (!refusedCalls.answer(request, response, failure)) {
                throw failure;
            }
        }
    }

    private void show(@Nullable Answer scarcest, @Nullable Answer shown, HttpServletResponse response) {
        if (scarcest != null && scarcest != shown) {
            headers.write(List.of(scarcest), response);
        }
    }
}
