package io.ratelimit.web.servlet;

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
 * Answers a refused request with a problem (RFC 9457) of the type that the RateLimit headers draft registers, or with
 * one line of text for clients that prefer it. Needs no JSON library: nothing in the answer comes from the client.
 */
public final class ProblemRejectionHandler implements RejectionHandler {

    private static final String QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded";
    private static final String REDUCED_CAPACITY =
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
    private static final long MILLISECOND = TimeUnit.MILLISECONDS.toNanos(1);

    private final RateLimitHeaders headers;
    private final Map<String, Status> statuses = new HashMap<>();

    /** The status of an answer, and its name. */
    private record Status(int code, String title) {

        private static final Status TOO_MANY_REQUESTS = of(HttpStatus.TOO_MANY_REQUESTS.value());
        private static final Status FORBIDDEN = of(HttpStatus.FORBIDDEN.value());
        private static final Status UNAVAILABLE = of(HttpStatus.SERVICE_UNAVAILABLE.value());

        static Status of(int code) {
            HttpStatus known = HttpStatus.resolve(code);
            return new Status(code, known == null ? "Request Refused" : known.getReasonPhrase());
        }
    }

    /**
     * @param headers beside {@code Retry-After} and {@code X-RetryAfterMs}
     * @param statuses of refusals by the names of their policies; 429 for others
     */
    public ProblemRejectionHandler(RateLimitHeaders headers, Map<String, Integer> statuses) {
        this.headers = headers;
        statuses.forEach((policy, status) -> this.statuses.put(policy, Status.of(status)));
    }

    @Override
    public void reject(HttpServletRequest request, HttpServletResponse response, Decision decision) throws IOException {
        List<Answer> violations = decision.violations();
        Answer first = decision.heaviestViolation();
        Status status = status(decision, first);
        response.setStatus(status.code());
        response.setHeader(HttpHeaders.CACHE_CONTROL, "no-store");
        String millis = Long.toString(millis(decision));
        if (decision.outcome().isTemporary()) {
            response.setHeader(
                    HttpHeaders.RETRY_AFTER,
                    Long.toString(Math.max(1, RateLimitHeaders.seconds(decision.retryNanos()))));
            response.setHeader("X-RetryAfterMs", millis);
        }
        if (decision.outcome() != Outcome.MISSING_KEY && decision.outcome() != Outcome.BACKEND_FAILED) {
            headers.write(violations, response);
        }
        boolean text = AcceptHeader.prefersText(request.getHeader(HttpHeaders.ACCEPT));
        String detail = detail(decision, first, millis);
        String body = text ? detail + "\n" : problem(decision, violations, status, detail, millis);
        new RejectionBody(text, body).write(request, response);
    }

    private Status status(Decision decision, Answer first) {
        return switch (decision.outcome()) {
            case MISSING_KEY -> Status.FORBIDDEN;
            case BACKEND_FAILED -> Status.UNAVAILABLE;
            default -> statuses.getOrDefault(first.policy().name(), Status.TOO_MANY_REQUESTS);
        };
    }

    private static String detail(Decision decision, Answer first, String millis) {
        String policy = "'" + first.policy().name() + "' policy";
        return switch (decision.outcome()) {
            case NEVER_FITS -> "The request can never be allowed by " + policy + ", it costs more than the limit.";
            case MISSING_KEY -> "The request is refused by " + policy + ", it lacks what the limit is counted by.";
            case TOO_LONG ->
                "The request would have to wait too long for " + policy + ", please retry after " + millis + " ms.";
            case QUEUE_FULL ->
                "Too many requests wait for " + policy + " already, please retry after " + millis + " ms.";
            case BACKEND_FAILED ->
                "The limit of " + policy + " can't be asked at the moment, please retry after " + millis + " ms.";
            default -> "The request is throttled by " + policy + ", please retry after " + millis + " ms.";
        };
    }

    private static String problem(
            Decision decision, List<Answer> violations, Status status, String detail, String millis) {
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
        for (int i = 0; i < violations.size(); i++) {
            json.append(i == 0 ? "\"" : ",\"")
                    .append(violations.get(i).policy().name())
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
