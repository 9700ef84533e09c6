package io.ratelimit.web.servlet;

import io.ratelimit.Decision;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** Writes the answer to a refused request. A bean of this type replaces the built-in one. */
@FunctionalInterface
public interface RejectionHandler {

    /**
     * Writes status, headers and body. By then the request's tokens have been given back, and the headers that CORS
     * asks for are set. Don't call {@code sendError}: the error dispatch it starts goes through the security filters,
     * which may turn it into another answer.
     *
     * <p>With a {@code rejection-delay} it is called late, on another thread than that of the request: the request is there
     * as it was, but not what is bound to the thread, such as the security context.
     *
     * @param decision why; never allowed
     */
    void reject(HttpServletRequest request, HttpServletResponse response, Decision decision) throws IOException;
}
