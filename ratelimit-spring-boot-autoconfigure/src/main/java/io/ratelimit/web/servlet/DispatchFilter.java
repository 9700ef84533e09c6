package io.ratelimit.web.servlet;

import io.ratelimit.web.servlet.rejection.Rejections;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * The filter for all dispatches of a request but the first and includes. It writes delayed rejections when their requests
 * are dispatched again, and passes none of these requests on. It stands before Spring Security: the request has passed
 * everything behind it once.
 *
 * <p>It also rejects requests whose dispatch ends with a denied or interrupted call, as after a forward to a servlet that
 * isn't Spring MVC's. The container would log the exception with its stack trace before other filters see it.
 */
record DispatchFilter(ServerLimits.Late limits) implements Filter {

    @Override
    public void doFilter(ServletRequest servletRequest, ServletResponse servletResponse, FilterChain chain)
            throws IOException, ServletException {
        HttpServletRequest request = (HttpServletRequest) servletRequest;
        HttpServletResponse response = (HttpServletResponse) servletResponse;
        Rejections rejections = limits.get().rejections();
        Throwable failure = null;
        try {
            if (!rejections.writeDelayed(request, response)) {
                chain.doFilter(request, response);
            }
        } catch (ServletException | RuntimeException thrown) {
            failure = thrown;
            if (!rejections.rejectCall(request, response, thrown, () -> {})) {
                throw thrown;
            }
        } catch (IOException | Error thrown) {
            failure = thrown;
            throw thrown;
        } finally {
            noteEnd(request, failure);
        }
    }

    /** Records the end of an asynchronous dispatch. */
    private static void noteEnd(HttpServletRequest request, @Nullable Throwable failure) {
        RequestLedger ledger = RequestLedger.find(request);
        if (ledger != null && request.getDispatcherType() == DispatcherType.ASYNC && !request.isAsyncStarted()) {
            ledger.course().noteHandledLater();
            if (failure != null) {
                ledger.course().noteFailure(failure);
            }
        }
    }
}
