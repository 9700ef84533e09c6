package io.ratelimit.web.servlet.rejection;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.web.servlet.rejection.RejectionBody.Form;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;

/**
 * The built-in handler: writes a problem (RFC 9457) of a type that the RateLimit headers draft registers, one line of text
 * for clients that prefer it, or a page for browsers: the application's own error page for the status if it has one.
 * Thread-safe.
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
    private final ErrorPages pages;

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
     * Creates a handler that doesn't use the application's own error pages.
     *
     * @see #ProblemRejectionHandler(LimitHeaders, Map, ErrorPages)
     */
    public ProblemRejectionHandler(RateLimitHeaders headers, Map<String, Integer> statuses) {
        this(new LimitHeaders(headers, Map.of()), statuses, new ErrorPages(List::of, List::of));
    }

    /**
     * @param headers the headers in addition to {@code Retry-After} and {@code X-RetryAfterMs}
     * @param statuses the response status of each policy, by name; 429 for policies that are missing
     * @param pages the application's own error pages
     */
    public ProblemRejectionHandler(LimitHeaders headers, Map<String, Integer> statuses, ErrorPages pages) {
        this.headers = headers;
        this.pages = pages;
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
        Form form = Form.of(request);
        if (form != Form.PAGE
                || !pages.write(request, response, status.code(), model(request, decision, status, detail))) {
            long retryNanos = decision.outcome().isTemporary() ? decision.retryNanos() : 0;
            RejectionBody.of(
                            form,
                            status.title(),
                            detail,
                            retryNanos,
                            () -> problem(decision, denials, status, detail, millis))
                    .write(request, response);
        }
    }

    /** Returns the attributes of an error page: those that Spring Boot's error pages have, the policies and the retry time. */
    private static Map<String, Object> model(
            HttpServletRequest request, Decision decision, Status status, String detail) {
        Map<String, Object> model = new HashMap<>();
        model.put("timestamp", new Date());
        model.put("status", status.code());
        model.put("error", status.title());
        model.put("message", detail);
        model.put("path", request.getRequestURI());
        model.put(
                "violatedPolicies",
                decision.denials().stream()
                        .map(denial -> denial.policy().name())
                        .toList());
        if (decision.outcome().isTemporary()) {
            model.put("retryAfterMs", millis(decision));
        }
        return model;
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
