package io.ratelimit.web.servlet.rejection;

import io.micrometer.common.KeyValue;
import io.ratelimit.Decision;
import io.ratelimit.ThrottleListener;
import io.ratelimit.TimeSource;
import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimitInterruptedException;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import io.ratelimit.web.servlet.rejection.DelayedRejections.DelayedRejection;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.UndeclaredThrowableException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.i18n.LocaleContextHolder;
import org.springframework.http.HttpHeaders;
import org.springframework.http.server.observation.ServerRequestObservationContext;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.filter.ServerHttpObservationFilter;

/**
 * The responses to rejected requests: removes the headers of an allowed request, adds the headers of CORS, and has the
 * {@link RejectionHandler} write the response, at once or after the policies' delay. Thread-safe.
 */
public final class Rejections {

    private static final String REJECTED = Rejections.class.getName();
    private static final String INTERRUPTED = "The request was interrupted while it waited in the queue, please retry.";
    private static final String INTERRUPTED_PROBLEM =
            "{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\","
                    + "\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"" + INTERRUPTED + "\"}";

    private static final int MAX_WRAPPERS = 10;

    /** They describe the replaced body: a client that unzips the rejection, or caches it under an ETag, reads nonsense. */
    private static final List<String> BODY_HEADERS = List.of(
            HttpHeaders.CONTENT_ENCODING,
            HttpHeaders.CONTENT_LANGUAGE,
            HttpHeaders.CONTENT_DISPOSITION,
            HttpHeaders.CONTENT_LOCATION,
            HttpHeaders.CONTENT_RANGE,
            HttpHeaders.ETAG,
            HttpHeaders.LAST_MODIFIED);

    private final RejectionHandler handler;
    private final PolicyResponses responses;
    private final DelayedRejections delayed;
    private final RejectionCors cors;

    private Rejections(
            RejectionHandler handler, PolicyResponses responses, DelayedRejections delayed, RejectionCors cors) {
        this.handler = handler;
        this.responses = responses;
        this.delayed = delayed;
        this.cors = cors;
    }

    /**
     * Returns the rejections of the application's own server.
     *
     * @param responses the headers and the delay of each policy
     * @param listener is notified of delayed rejections
     * @param cors the CORS configuration for requests without one in Spring MVC
     */
    public static Rejections of(
            RejectionHandler handler,
            PolicyResponses responses,
            TimeSource time,
            ThrottleListener listener,
            Endpoints endpoints,
            CorsConfigurationSource cors) {
        DelayedRejections delayed = new DelayedRejections(responses, time, listener);
        return new Rejections(handler, responses, delayed, new RejectionCors(endpoints, cors));
    }

    /** Returns the rejections of another server. Both share the limit of delayed rejections. */
    public Rejections forServer(RejectionHandler handler, Endpoints endpoints, CorsConfigurationSource cors) {
        return new Rejections(handler, responses, delayed, new RejectionCors(endpoints, cors));
    }

    public PolicyResponses responses() {
        return responses;
    }

    /** Returns whether the response is a rejection, with headers that aren't those of the request's handler. */
    public static boolean isRejected(HttpServletRequest request) {
        return request.getAttribute(REJECTED) != null;
    }

    /** Rejects a request; the caller has given its tokens back. */
    public void reject(HttpServletRequest request, HttpServletResponse response, Decision decision) throws IOException {
        begin(request, response);
        if (!delayed.defer(request, decision)) {
            write(request, response, decision);
        }
    }

    private void begin(HttpServletRequest request, HttpServletResponse response) {
        request.setAttribute(REJECTED, true);
        responses.remove(response);
    }

    /**
     * Writes the delayed rejection of a request that is dispatched again, unless its response has been committed in the
     * meantime.
     *
     * @return false if the request has no delayed rejection
     */
    public boolean writeDelayed(HttpServletRequest dispatched, HttpServletResponse response) throws IOException {
        DelayedRejection rejection = DelayedRejection.claim(dispatched);
        if (rejection != null && !response.isCommitted()) {
            response.resetBuffer();
            write(rejection.request(), response, rejection.decision());
        }
        return rejection != null;
    }

    private void write(HttpServletRequest request, HttpServletResponse response, Decision decision) throws IOException {
        ServerHttpObservationFilter.findObservationContext(request).ifPresent(context -> describe(decision, context));
        if (RequestContextHolder.getRequestAttributes() == null && mayRunCodeOfApplication(request)) {
            writeInContext(request, response, decision);
        } else {
            cors.apply(request, response);
            handler.reject(request, response, decision);
        }
    }

    /** Returns whether the application may write the response, render its page, or select its CORS headers. */
    private boolean mayRunCodeOfApplication(HttpServletRequest request) {
        return !(handler instanceof ProblemRejectionHandler)
                || request.getHeader(HttpHeaders.ORIGIN) != null
                || RejectionBody.of(request) == RejectionBody.PAGE;
    }

    /**
     * Adds the policy and the outcome to the observation of the request. The values are for spans only. Tags of the meter
     * {@code http.server.requests} would have to be on all requests, and would change that meter for each application.
     */
    private static void describe(Decision decision, ServerRequestObservationContext context) {
        context.addHighCardinalityKeyValue(KeyValue.of(
                "ratelimit.outcome",
                decision.outcome().name().toLowerCase(Locale.ROOT).replace('_', '-')));
        if (!decision.answers().isEmpty()) {
            context.addHighCardinalityKeyValue(KeyValue.of(
                    "ratelimit.policy", decision.decisiveDenial().policy().name()));
        }
    }

    /**
     * Binds the request and its locale for code of the application. {@code RequestContextFilter} does the same, but stands
     * behind the early filter.
     */
    private void writeInContext(HttpServletRequest request, HttpServletResponse response, Decision decision)
            throws IOException {
        ServletRequestAttributes attributes = new ServletRequestAttributes(request, response);
        LocaleContextHolder.setLocaleContext(request::getLocale);
        RequestContextHolder.setRequestAttributes(attributes);
        try {
            cors.apply(request, response);
            handler.reject(request, response, decision);
        } finally {
            RequestContextHolder.resetRequestAttributes();
            LocaleContextHolder.resetLocaleContext();
            attributes.requestCompleted();
        }
    }

    /**
     * Rejects a request within which a call of an annotated method was denied or interrupted.
     *
     * @param failure the exception that ended the request
     * @param beforeAnswer runs before the response is written, and only if this method returns true
     * @return false if another failure ended the request, or the response is already committed
     */
    public boolean rejectCall(
            HttpServletRequest request, HttpServletResponse response, Throwable failure, Runnable beforeAnswer)
            throws IOException {
        RuntimeException rejected = rejectedCall(failure);
        if (rejected == null || response.isCommitted()) {
            return false;
        }
        resetBody(response);
        if (rejected instanceof RateLimitExceededException exceeded) {
            beforeAnswer.run();
            reject(request, response, exceeded.decision());
        } else {
            rejectInterrupted(request, response, beforeAnswer);
        }
        return true;
    }

    /**
     * Returns the exception of a call that was denied or interrupted, or null if something else failed. Looks through
     * exceptions that wrap any failure, but not through the application's own: the application answers those.
     */
    private static @Nullable RuntimeException rejectedCall(Throwable failure) {
        Throwable current = failure;
        for (int i = 0; i < MAX_WRAPPERS && current != null; i++) {
            if (current instanceof RateLimitExceededException || current instanceof RateLimitInterruptedException) {
                return (RuntimeException) current;
            }
            current = isWrapper(current) ? current.getCause() : null;
        }
        return null;
    }

    private static boolean isWrapper(Throwable failure) {
        return failure instanceof CompletionException
                || failure instanceof ExecutionException
                || failure instanceof ServletException
                || failure instanceof UndeclaredThrowableException
                || failure instanceof InvocationTargetException;
    }

    /** Removes the body that the application had begun, and the headers that describe it. */
    private static void resetBody(HttpServletResponse response) {
        response.resetBuffer();
        response.setLocale(null); // servers keep it beside the header
        BODY_HEADERS.forEach(name -> response.setHeader(name, null));
    }

    /**
     * Answers 503 to a request whose thread was interrupted while it waited for tokens, as when the server stops. No policy
     * has denied the request, so the {@link RejectionHandler} isn't called.
     *
     * <p>The thread's interrupt status is cleared meanwhile: Tomcat writes nothing on an interrupted thread.
     */
    public void rejectInterrupted(HttpServletRequest request, HttpServletResponse response, Runnable beforeAnswer)
            throws IOException {
        begin(request, response);
        boolean interrupted = Thread.interrupted();
        try {
            beforeAnswer.run();
            cors.apply(request, response);
            response.setStatus(HttpServletResponse.SC_SERVICE_UNAVAILABLE);
            response.setHeader(HttpHeaders.CACHE_CONTROL, "no-store");
            response.setHeader(HttpHeaders.RETRY_AFTER, "1");
            RejectionBody body = RejectionBody.of(request);
            String content = body == RejectionBody.PROBLEM
                    ? INTERRUPTED_PROBLEM
                    : body.content("Service Unavailable", INTERRUPTED, 1);
            body.write(request, response, content.getBytes(StandardCharsets.UTF_8));
            response.flushBuffer();
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Returns the lifecycle that writes all delayed rejections when the application stops. */
    public SmartLifecycle lifecycle() {
        return delayed;
    }
}
