package io.ratelimit.web.servlet.rejection;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;

/**
 * The built-in handler: writes a problem (RFC 9457) of a type that the RateLimit headers draft registers, or one line of
 * text for clients that prefer it. Thread-safe.
 *
 * <p>It needs no JSON library, because no part of the response comes from the client.
 */
public final class ProblemRejectionHandler implements RejectionHandler {

    private static final String QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded";
    private static final String REDUCED_CAPACITY =
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
    private static final long MILLISECOND = TimeUnit.MILLISECONDS.toNanos(1);

    private final LimitHeaders headers;
    private final Map<String, Status> statuses = new HashMap<>();

    /** A status code and its name. */
    private record Status(int code, String title) {

        private static final Status TOO_MANY_REQUESTS = of(HttpStatus.TOO_MANY_REQUESTS.value());
        private static final Status FORBIDDEN = of(HttpStatus.FORBIDDEN.value());
        private static final Status UNAVAILABLE = of(HttpStatus.SERVICE_UNAVAILABLE.value());

        static Status of(int code) {
            HttpStatus status = HttpStatus.resolve(code);
            return new Status(code, status == null ? "Request Rejected" : status.getReasonPhrase());
        }
    }

    /**
     * @param headers the headers in addition to {@code Retry-After} and {@code X-RetryAfterMs}
     * @param statuses the response status of each policy, by name; 429 for policies that are missing
     */
    public ProblemRejectionHandler(RateLimitHeaders headers, Map<String, Integer> statuses) {
        this(new LimitHeaders(headers, Map.of()), statuses);
    }

    /**
     * @param headers the headers in addition to {@code Retry-After} and {@code X-RetryAfterMs}
     * @param statuses the response status of each policy, by name; 429 for policies that are missing
     */
    public ProblemRejectionHandler(LimitHeaders headers, Map<String, Integer> statuses) {
        this.headers = headers;
        statuses.forEach((policy, status) -> this.statuses.put(policy, Status.of(status)));
    }

    @Override
    public void reject(HttpServletRequest request, HttpServletResponse response, Decision decision) throws IOException {
        List<Answer> denials = decision.denials();
        Status status = status(decision);
        response.setStatus(status.code());
        response.setHeader(HttpHeaders.CACHE_CONTROL, "no-store");
        String millis = Long.toString(millis(decision));
        if (decision.outcome().isTemporary()) {
            response.setHeader(
                    HttpHeaders.RETRY_AFTER,
                    Long.toString(Math.max(1, RateLimitHeaders.seconds(decision.retryNanos()))));
            response.setHeader("X-RetryAfterMs", millis);
        }
        boolean isQuota = decision.outcome() != Outcome.MISSING_KEY && decision.outcome() != Outcome.BACKEND_FAILED;
        if (isQuota && !denials.isEmpty()) {
            headers.write(denials, response);
        }
        String detail = decision.describe("request");
        RejectionBody.of(request, detail, () -> problem(decision, denials, status, detail, millis))
                .write(request, response);
    }

    /** Returns 429 also for a decision without answers, as that of another process. */
    private Status status(Decision decision) {
        return switch (decision.outcome()) {
            case MISSING_KEY -> Status.FORBIDDEN;
            case BACKEND_FAILED -> Status.UNAVAILABLE;
            default ->
                decision.answers().isEmpty()
                        ? Status.TOO_MANY_REQUESTS
                        : statuses.getOrDefault(
                                decision.decisiveDenial().policy().name(), Status.TOO_MANY_REQUESTS);
        };
    }

    private static String problem(
            Decision decision, List<Answer> denials, Status status, String detail, String millis) {
        StringBuilder json = new StringBuilder(320).append('{');
        if (decision.outcome() != Outcome.MISSING_KEY) {
            String type = decision.outcome() == Outcome.BACKEND_FAILED ? REDUCED_CAPACITY : QUOTA_EXCEEDED;
            json.append("\"type\":\"").append(type).append("\",");
        }
        json.append("\"title\":\"")
                .append(status.title())
                .append("\",\"status\":")
                .append(status.code());
        json.append(",\"detail\":\"").append(detail).append("\",\"violated-policies\":[");
        for (int i = 0; i < denials.size(); i++) {
            json.append(i == 0 ? "\"" : ",\"")
                    .append(denials.get(i).policy().name())
                    .append('"');
        }
        json.append(']');
        if (decision.outcome().isTemporary()) {
            json.append(",\"retryAfterMs\":").append(millis);
        }
        return json.append('}').toString();
    }

    private static long millis(Decision decision) {
        return (decision.retryNanos() - 1) / MILLISECOND + 1;
    }
}
