package io.ratelimit.web.servlet.rejection;

import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.policy.RateLimitProperties.RejectionDelay;
import jakarta.servlet.http.HttpServletResponse;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpStatus;

/**
 * The responses of all policies: the headers that show clients their limits, and the status and the delay of rejections.
 * Policies are added at the start; then thread-safe.
 */
public final class PolicyResponses {

    private final RateLimitHeaders common;
    private final Set<RateLimitHeaders> used;
    private final Map<String, PolicyResponse> byName = new ConcurrentHashMap<>();
    private boolean anyDelay;

    /** @param common the headers of policies that have none of their own */
    public PolicyResponses(RateLimitHeaders common) {
        this.common = common;
        this.used = EnumSet.of(common);
    }

    /**
     * Adds a policy. Others have the common headers, and are rejected with 429 at once.
     *
     * @param headers the policy's own headers, or null for the common ones
     */
    public void add(String policy, int status, RejectionDelay delay, @Nullable RateLimitHeaders headers) {
        RateLimitHeaders shown = headers == null ? common : headers;
        used.add(shown);
        anyDelay |= !delay.isNone();
        byName.put(policy, new PolicyResponse(Status.of(status), delay.time().toNanos(), shown));
    }

    PolicyResponse of(ThrottlePolicy policy) {
        PolicyResponse response = byName.get(policy.name());
        return response != null
                ? response
                : byName.computeIfAbsent(
                        policy.name(), unknown -> new PolicyResponse(Status.TOO_MANY_REQUESTS, 0, common));
    }

    boolean anyDelay() {
        return anyDelay;
    }

    private RateLimitHeaders headers(Answer answer) {
        return used.size() == 1 ? common : of(answer.policy()).headers;
    }

    public boolean show(Answer answer) {
        return headers(answer) != RateLimitHeaders.NONE;
    }

    /** Shows the limit of an answer on an allowed response, in place of that of another answer. */
    public void replace(@Nullable Answer before, Answer shown, HttpServletResponse response) {
        RateLimitHeaders headers = headers(shown);
        if (before != null && headers(before) != headers) {
            headers(before).remove(response);
        }
        headers.write(shown, response);
    }

    /** Sets the headers for the policies of these answers. Policies with the same headers share them. */
    void write(List<Answer> answers, HttpServletResponse response) {
        if (used.size() == 1) {
            common.write(answers, response);
            return;
        }
        for (RateLimitHeaders headers : used) {
            List<Answer> shown = answers.stream()
                    .filter(answer -> headers(answer) == headers)
                    .toList();
            if (!shown.isEmpty()) {
                headers.write(shown, response);
            }
        }
    }

    /** Removes the headers that were set while the request was still allowed. */
    void remove(HttpServletResponse response) {
        used.forEach(headers -> headers.remove(response));
    }

    /** The response of one policy. Thread-safe. */
    static final class PolicyResponse {

        final Status status;
        final long delayNanos;
        final RateLimitHeaders headers;

        /** The problem of the policy's plain denials, composed with the first of them. */
        volatile ProblemRejectionHandler.@Nullable Template problem;

        PolicyResponse(Status status, long delayNanos, RateLimitHeaders headers) {
            this.status = status;
            this.delayNanos = delayNanos;
            this.headers = headers;
        }
    }

    record Status(int code, String title) {

        static final Status TOO_MANY_REQUESTS = of(HttpStatus.TOO_MANY_REQUESTS.value());
        static final Status FORBIDDEN = of(HttpStatus.FORBIDDEN.value());
        static final Status UNAVAILABLE = of(HttpStatus.SERVICE_UNAVAILABLE.value());

        static Status of(int code) {
            HttpStatus status = HttpStatus.resolve(code);
            return new Status(code, status == null ? "Request Rejected" : status.getReasonPhrase());
        }
    }
}
