package io.ratelimit.web.servlet.rejection;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision.Answer;
import jakarta.servlet.http.HttpServletResponse;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

/** The response headers that show clients their limits. */
public enum RateLimitHeaders {

    /**
     * {@code RateLimit-Policy} and {@code RateLimit} of draft-ietf-httpapi-ratelimit-headers-11. The parameter q is the
     * capacity, w the seconds from empty to full, and r the tokens left. The parameter t is the seconds to the next token,
     * or on a rejection to all requested tokens; it is missing when the bucket is full. Times count from the response, so
     * they don't include a wait in the queue.
     */
    DRAFT_11("RateLimit-Policy", "RateLimit") {
        @Override
        public void write(List<Answer> answers, HttpServletResponse response) {
            StringBuilder text = new StringBuilder(64);
            response.setHeader("RateLimit-Policy", list(answers, text, RateLimitHeaders::policy));
            text.setLength(0);
            response.setHeader("RateLimit", list(answers, text, RateLimitHeaders::limit));
        }
    },

    /** {@code X-RateLimit-Limit}, {@code -Remaining} and {@code -Reset} (in seconds) of the first policy. */
    X_RATELIMIT("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset") {
        @Override
        public void write(List<Answer> answers, HttpServletResponse response) {
            Answer first = answers.get(0);
            response.setHeader(
                    "X-RateLimit-Limit", Long.toString(first.charge().spec().capacity()));
            response.setHeader("X-RateLimit-Remaining", Long.toString(first.remaining()));
            response.setHeader("X-RateLimit-Reset", Long.toString(seconds(first.resetNanos() - first.waitNanos())));
        }
    },

    /** Adds no headers. */
    NONE {
        @Override
        public void write(List<Answer> answers, HttpServletResponse response) {}
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
        text.append(";r=").append(answer.remaining());
        long wait = Math.max(answer.retryNanos(), answer.nextTokenNanos() - answer.waitNanos());
        if (wait > 0) {
            text.append(";t=").append(seconds(wait));
        }
    }

    /** Sets the headers for the policies of these answers, of which there must be at least one. */
    public abstract void write(List<Answer> answers, HttpServletResponse response);

    /** Removes the headers that were set while the request was still allowed. */
    public void remove(HttpServletResponse response) {
        names.forEach(name -> response.setHeader(name, null));
    }

    /** Returns whole seconds, rounded up; zero for negative times. */
    static long seconds(long nanos) {
        return nanos <= 0 ? 0 : (nanos - 1) / SECOND + 1;
    }
}
