package io.ratelimit.web.servlet.rejection;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.policy.RateLimitProperties.RejectionDelay;
import io.ratelimit.web.servlet.rejection.PolicyResponses.PolicyResponse;
import io.ratelimit.web.servlet.rejection.PolicyResponses.Status;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.webmvc.autoconfigure.error.ErrorViewResolver;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.web.servlet.ModelAndView;
import org.springframework.web.servlet.View;
import org.springframework.web.servlet.ViewResolver;

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
    private static final String RETRY = ",\"retryAfterMs\":";
    private static final long MILLISECOND = TimeUnit.MILLISECONDS.toNanos(1);

    private final PolicyResponses responses;
    private final ErrorPages pages;

    /**
     * Creates a handler that doesn't use the application's own error pages.
     *
     * @param headers the headers in addition to {@code Retry-After} and {@code X-RetryAfterMs}
     * @param statuses the response status of each policy, by name; 429 for policies that are missing
     */
    public ProblemRejectionHandler(RateLimitHeaders headers, Map<String, Integer> statuses) {
        this(new PolicyResponses(headers), List.of(), List.of());
        statuses.forEach((policy, status) -> responses.add(policy, status, RejectionDelay.NONE, null));
    }

    /**
     * @param responses the status and the headers of each policy
     * @param pages the resolvers of the application's own error pages, in order
     * @param views the resolvers of the names of views, in order
     */
    public ProblemRejectionHandler(PolicyResponses responses, List<ErrorViewResolver> pages, List<ViewResolver> views) {
        this.responses = responses;
        this.pages = new ErrorPages(pages, views);
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
            responses.write(denials, response);
        }
        RejectionBody body = RejectionBody.of(request);
        if (body == RejectionBody.PROBLEM && decision.outcome() == Outcome.DENIED && denials.size() == 1) {
            body.write(request, response, template(decision, denials, status).withMillis(millis));
            return;
        }
        String detail = decision.describe("request");
        if (body != RejectionBody.PAGE
                || !pages.write(request, response, status.code(), model(request, decision, status, detail))) {
            long retryNanos = decision.outcome().isTemporary() ? decision.retryNanos() : 0;
            String content = body == RejectionBody.PROBLEM
                    ? problem(decision, denials, status, detail, millis)
                    : body.content(status.title(), detail, retryNanos);
            body.write(request, response, content.getBytes(StandardCharsets.UTF_8));
        }
    }

    /** Returns the problem of requests that one policy denies for now. */
    private Template template(Decision decision, List<Answer> denials, Status status) {
        PolicyResponse policy = responses.of(denials.get(0).policy());
        Template template = policy.problem;
        if (template == null) {
            template = Template.of(beforeDetail(decision, status), decision, afterDetail(denials));
            policy.problem = template;
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
                        : responses.of(decision.decisiveDenial().policy()).status;
        };
    }

    private static String problem(
            Decision decision, List<Answer> denials, Status status, String detail, String millis) {
        String retry = decision.outcome().isTemporary() ? RETRY + millis : "";
        return beforeDetail(decision, status) + detail + afterDetail(denials) + retry + "}";
    }

    private static String beforeDetail(Decision decision, Status status) {
        String type = decision.outcome() == Outcome.BACKEND_FAILED ? REDUCED_CAPACITY : QUOTA_EXCEEDED;
        return (decision.outcome() == Outcome.MISSING_KEY ? "{" : "{\"type\":\"" + type + "\",") + "\"title\":\""
                + status.title() + "\",\"status\":" + status.code() + ",\"detail\":\"";
    }

    private static String afterDetail(List<Answer> denials) {
        return denials.stream()
                .map(denial -> '"' + denial.policy().name() + '"')
                .collect(Collectors.joining(",", "\",\"violated-policies\":[", "]"));
    }

    private static long millis(Decision decision) {
        return (decision.retryNanos() - 1) / MILLISECOND + 1;
    }

    /**
     * A problem that is encoded except for its two numbers, the milliseconds until a retry. It makes a rejection as cheap as
     * copying its bytes.
     */
    record Template(byte[] start, byte[] middle) {

        /** The end of the sentence that describes a denial: its milliseconds stand before it. */
        private static final String SENTENCE_END = " ms.";

        private static final byte[] END = {'}'};

        static Template of(String beforeDetail, Decision decision, String afterDetail) {
            String detail = decision.describe("request");
            int end = detail.length()
                    - SENTENCE_END.length()
                    - Long.toString(millis(decision)).length();
            return new Template(
                    (beforeDetail + detail.substring(0, end)).getBytes(StandardCharsets.UTF_8),
                    (SENTENCE_END + afterDetail + RETRY).getBytes(StandardCharsets.UTF_8));
        }

        byte[][] withMillis(String millis) {
            byte[] digits = millis.getBytes(StandardCharsets.US_ASCII);
            return new byte[][] {start, digits, middle, digits, END};
        }
    }

    /**
     * The application's own error pages, such as the view {@code error/429}, for rejected requests of browsers. Thread-safe.
     *
     * <p>The views are rendered outside of Spring MVC's servlet, since a rejected request doesn't reach it.
     */
    private static final class ErrorPages {

        private static final Log logger = LogFactory.getLog("io.ratelimit.web.servlet.rejection.ErrorPages");

        private final List<ErrorViewResolver> pages;
        private final List<ViewResolver> views;
        private final AtomicBoolean failed = new AtomicBoolean();

        ErrorPages(List<ErrorViewResolver> pages, List<ViewResolver> views) {
            this.pages = List.copyOf(pages);
            this.views = List.copyOf(views);
        }

        /**
         * Writes the application's page for a status. The first page that fails is reported in the log.
         *
         * @return false if the application has no page for the status, or the page failed; the response is then unchanged, or
         *     committed
         */
        boolean write(HttpServletRequest request, HttpServletResponse response, int code, Map<String, Object> model) {
            HttpStatus status = HttpStatus.resolve(code);
            if (status == null) {
                return false;
            }
            try {
                return write(request, response, status, model);
            } catch (Exception | LinkageError | AssertionError | StackOverflowError failure) {
                if (failed.compareAndSet(false, true)) {
                    logger.warn(
                            "The application's error page for " + code + " failed; rejections use the built-in page",
                            report(failure));
                }
                if (response.isCommitted()) {
                    return true;
                }
                response.resetBuffer();
                return false;
            }
        }

        /** Returns only the types and the stack trace, since the exception's message may contain what a client sent. */
        private static Throwable report(Throwable failure) {
            Throwable cause = NestedExceptionUtils.getMostSpecificCause(failure);
            String type = failure.getClass().getName();
            Throwable report = new IllegalStateException(
                    cause == failure
                            ? type
                            : type + ", caused by " + cause.getClass().getName());
            report.setStackTrace(cause.getStackTrace());
            return report;
        }

        private boolean write(
                HttpServletRequest request, HttpServletResponse response, HttpStatus status, Map<String, Object> model)
                throws Exception {
            for (ErrorViewResolver resolver : pages) {
                ModelAndView page = resolver.resolveErrorView(request, status, model);
                View view = page == null ? null : view(page, request.getLocale());
                if (page != null && view != null) {
                    view.render(page.getModel(), request, response);
                    return true;
                }
            }
            return false;
        }

        private @Nullable View view(ModelAndView page, Locale locale) throws Exception {
            String name = page.getViewName();
            if (name == null) {
                return page.getView();
            }
            for (ViewResolver resolver : views) {
                View view = resolver.resolveViewName(name, locale);
                if (view != null) {
                    return view;
                }
            }
            return null;
        }
    }
}
