package io.ratelimit.web.servlet;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import jakarta.servlet.http.HttpServletResponse;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

/** The headers that tell clients of their limits. */
public enum RateLimitHeaders {

    /**
     * {@code RateLimit-Policy} and {@code RateLimit} of draft-ietf-httpapi-ratelimit-headers-11: q is the capacity, w
     * the seconds from empty to full, r the tokens left, t the seconds to the next token, on a refusal to all that
     * were asked for, left out when full. Times count from the answer, so a wait for it is no part of them.
     */
    DRAFT_11("RateLimit-Policy", "RateLimit") {
        @Override
        void write(List<Answer> answers, HttpServletResponse response) {
            StringBuilder text = new StringBuilder(64);
            response.setHeader("RateLimit-Policy", list(answers, text, RateLimitHeaders::policy));
            text.setLength(0);
            response.setHeader("RateLimit", list(answers, text, RateLimitHeaders::limit));
        }
    },

    /** {@code X-RateLimit-Limit}, {@code -Remaining} and {@code -Reset}, of the first policy; Reset in seconds. */
    X_RATELIMIT("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset") {
        @Override
        void write(List<Answer> answers, HttpServletResponse response) {
            Answer first = answers.get(0);
            response.setHeader(
                    "X-RateLimit-Limit", Long.toString(first.charge().spec().capacity()));
            response.setHeader(
                    "X-RateLimit-Remaining", Long.toString(first.decision().remaining()));
            response.setHeader(
                    "X-RateLimit-Reset",
                    Long.toString(seconds(
                            first.decision().resetNanos() - first.decision().waitNanos())));
        }
    },

    /** None. */
    NONE {
        @Override
        void write(List<Answer> answers, HttpServletResponse response) {}
    };

    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private final List<String> names;

    RateLimitHeaders(String... names) {
        this.names = List.of(names);
    }

    private static String list(List<Answer> answers, StringBuilder text, BiConsumer<StringBuilder, Answer> parameters) {
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            text.append(i == 0 ? "\"" : ", \"").append(answer.policy().name()).append('"');
            parameters.accept(text, answer);
        }
        return text.toString();
    }

    private static void policy(StringBuilder text, Answer answer) {
        BucketSpec spec = answer.charge().spec();
        text.append(";q=").append(spec.capacity());
        text.append(";w=").append(seconds(spec.timeToFull().toNanos()));
    }

    private static void limit(StringBuilder text, Answer answer) {
        Decision decision = answer.decision();
        text.append(";r=").append(decision.remaining());
        long wait = Math.max(decision.retryNanos(), decision.nextTokenNanos() - decision.waitNanos());
        if (wait > 0) {
            text.append(";t=").append(seconds(wait));
        }
    }

    /** Sets the headers for these policies, at least one. */
    abstract void write(List<Answer> answers, HttpServletResponse response);

    /** Takes back what was shown when the request was still allowed. */
    void remove(HttpServletResponse response) {
        names.forEach(name -> response.setHeader(name, null));
    }

    /** Whole seconds, rounded up. */
    static long seconds(long nanos) {
        return nanos <= 0 ? 0 : (nanos - 1) / SECOND + 1;
    }
}
