package io.ratelimit.web.servlet;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.springframework.http.HttpHeaders;

/**
 * The answer to a request that was interrupted while it waited in line, as when the server stops. No policy has refused
 * it, so no {@link RejectionHandler} is asked.
 */
final class InterruptedAnswer {

    private static final String DETAIL = "The request was interrupted while it waited in line, please retry.";
    private static final String PROBLEM =
            "{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\","
                    + "\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"" + DETAIL + "\"}";

    private InterruptedAnswer() {}

    static void write(HttpServletRequest request, HttpServletResponse response) throws IOException {
        response.setStatus(HttpServletResponse.SC_SERVICE_UNAVAILABLE);
        response.setHeader(HttpHeaders.CACHE_CONTROL, "no-store");
        response.setHeader(HttpHeaders.RETRY_AFTER, "1");
        boolean text = AcceptHeader.prefersText(request.getHeader(HttpHeaders.ACCEPT));
        new RejectionBody(text, text ? DETAIL + "\n" : PROBLEM).write(request, response);
    }
}
