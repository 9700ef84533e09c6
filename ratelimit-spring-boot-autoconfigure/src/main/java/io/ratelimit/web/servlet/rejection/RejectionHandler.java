package io.ratelimit.web.servlet.rejection;

import io.ratelimit.Decision;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** The writer of responses to rejected requests. A bean of this type replaces {@link ProblemRejectionHandler}. */
@FunctionalInterface
public interface RejectionHandler {

    /**
     * Writes status, headers and body. The request's tokens have been given back before, and the headers of CORS are set.
     *
     * <p>Don't call {@code sendError}: its error dispatch goes through the security filters, which may change the response.
     *
     * <p>With a {@code rejection-delay} this method is called later, on another thread. The request still has its
     * attributes and headers, but objects bound to the first thread, such as the security context, are missing.
     *
     * @param decision the reason; never an allowed decision. It has no answers of single policies if the exception of a denied
     *     call was serialized, as by another process
     * @throws IOException if the response can't be written
     */
    void reject(HttpServletRequest request, HttpServletResponse response, Decision decision) throws IOException;
}
