package io.ratelimit.actuate;

import java.util.Objects;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.util.MimeType;

/**
 * Why a request was not done, as RFC 9457 has it.
 *
 * @param detail in words, without anything of a key
 */
public record Problem(String title, int status, String detail) implements OperationResponseBody {

    private static final MimeType TYPE = new MimeType("application", "problem+json");

    static WebEndpointResponse<Problem> badRequest(Exception why) {
        return response("Bad Request", WebEndpointResponse.STATUS_BAD_REQUEST, why);
    }

    static WebEndpointResponse<Problem> notFound(Exception why) {
        return response("Not Found", WebEndpointResponse.STATUS_NOT_FOUND, why);
    }

    static WebEndpointResponse<Problem> unavailable(Exception why) {
        return response("Service Unavailable", WebEndpointResponse.STATUS_SERVICE_UNAVAILABLE, why);
    }

    private static WebEndpointResponse<Problem> response(String title, int status, Exception why) {
        Problem problem = new Problem(title, status, Objects.requireNonNullElse(why.getMessage(), title));
        return new WebEndpointResponse<>(problem, status, TYPE);
    }
}
