package io.ratelimit.web.servlet.rejection;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.web.servlet.rejection.RejectionBody.Form;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
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
    private final Map<String, Template> templates = new ConcurrentHashMap<>();

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

    /** A problem that is encoded except for its two numbers, the milliseconds until a retry. */
    private record Template(byte[] beforeDetail, byte[] beforeMember) {

        private static final String DETAIL = "retry after ";
        private static final String MEMBER = "\"retryAfterMs\":";

        static Template of(String problem) {
            int detail = problem.indexOf(DETAIL) + DETAIL.length();
            int member = problem.lastIndexOf(MEMBER) + MEMBER.length();
            String rest = problem.substring(problem.indexOf(' ', detail), member);
            return new Template(
                    problem.substring(0, detail).getBytes(StandardCharsets.UTF_8),
                    rest.getBytes(StandardCharsets.UTF_8));
        }

        byte[] withMillis(String millis) {
            byte[] problem = new byte[beforeDetail.length + beforeMember.length + 2 * millis.length() + 1];
            int end = append(problem, 0, beforeDetail);
            end = append(problem, append(problem, end, millis), beforeMember);
            problem[append(problem, end, millis)] = '}';
            return problem;
        }

        private static int append(byte[] to, int end, byte[] bytes) {
            System.arraycopy(bytes, 0, to, end, bytes.length);
            return end + bytes.length;
        }

        private static int append(byte[] to, int end, String digits) {
            for (int i = 0; i < digits.length(); i++) {
                to[end + i] = (byte) digits.charAt(i);
            }
            return end + digits.length();
        }
    }

    /**
     * Creates a handler that doesn't use the application's own error pages.
     *
     * @see #ProblemRejectionHandler(LimitHeaders, Map, ErrorPages)
     */
    public ProblemRejectionHandler(RateLimitHeaders headers, Map<String, Integer> statuses) {
        this(new LimitHeaders(headers, Map.of()), statuses, new ErrorPages(List.of(), List.of()));
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
        Form form = Form.of(request);
        if (form == Form.PROBLEM && decision.outcome() == Outcome.DENIED && denials.size() == 1) {
            new RejectionBody(form, template(decision, denials, status).withMillis(millis)).write(request, response);
            return;
        }
        String detail = decision.describe("request");
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

    /** Returns the problem of requests that one policy denies for now. */
    private Template template(Decision decision, List<Answer> denials, Status status) {
        String policy = denials.get(0).policy().name();
        Template template = templates.get(policy);
        if (template == null) {
            template = Template.of(problem(decision, denials, status, decision.describe("request"), ""));
            templates.put(policy, template);
        }
        return template;
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
