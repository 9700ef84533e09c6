package io.ratelimit.web.servlet.rejection;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import jakarta.servlet.http.HttpServletResponse;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The response headers that show clients their limits. */
public enum RateLimitHeaders {

    /**
     * {@code RateLimit-Policy} and {@code RateLimit} of draft-ietf-httpapi-ratelimit-headers-11. The parameter q is the
     * capacity, w the seconds from empty to full, and r the tokens left. The parameter t is the seconds to the next token,
     * or on a rejection to all requested tokens; it is missing when the bucket is full. Times count from the response, so
     * they don't include a wait in the queue. For a policy that denies a call because of those in flight, q is their number.
     */
    DRAFT_11("RateLimit-Policy", "RateLimit"),

    /** {@code X-RateLimit-Limit}, {@code -Remaining} and {@code -Reset} (in seconds) of the first policy. */
    X_RATELIMIT("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),

    /** Adds no headers. */
    NONE;

    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private final List<String> names;

    RateLimitHeaders(String... names) {
        this.names = List.of(names);
    }

    /** Sets the headers for the policy of an answer. */
    public void write(Answer answer, HttpServletResponse response) {
        if (this == DRAFT_11) {
            PolicyText policy = PolicyText.of(answer);
            response.setHeader("RateLimit-Policy", policy.text);
            StringBuilder limit = new StringBuilder(policy.start.length() + 24);
            response.setHeader("RateLimit", policy.limit(limit, answer).toString());
        } else if (this == X_RATELIMIT) {
            BucketSpec spec = answer.spec();
            long limit = isOfCallsInFlight(answer) ? spec.inFlight() : spec.capacity();
            response.setHeader("X-RateLimit-Limit", Long.toString(limit));
            response.setHeader("X-RateLimit-Remaining", Long.toString(answer.remaining()));
            long reset = Math.max(answer.retryNanos(), answer.resetNanos() - answer.waitNanos());
            response.setHeader("X-RateLimit-Reset", Long.toString(seconds(reset)));
        }
    }

    /** Sets the headers for the policies of these answers, of which there must be at least one. */
    void write(List<Answer> answers, HttpServletResponse response) {
        if (this != DRAFT_11 || answers.size() == 1) {
            write(answers.get(0), response);
            return;
        }
        StringBuilder policies = new StringBuilder(64 * answers.size());
        StringBuilder limits = new StringBuilder(64 * answers.size());
        for (int i = 0; i < answers.size(); i++) {
            PolicyText policy = PolicyText.of(answers.get(i));
            policies.append(i == 0 ? "" : ", ").append(policy.text);
            policy.limit(limits.append(i == 0 ? "" : ", "), answers.get(i));
        }
        response.setHeader("RateLimit-Policy", policies.toString());
        response.setHeader("RateLimit", limits.toString());
    }

    /** Removes the headers that were set while the request was still allowed. */
    public void remove(HttpServletResponse response) {
        for (String name : names) {
            response.setHeader(name, null);
        }
    }

    /** Returns whether an answer is about the number of calls in flight, and not about tokens. */
    private static boolean isOfCallsInFlight(Answer answer) {
        BucketSpec spec = answer.spec();
        boolean queueForSlots = answer.outcome() == Outcome.QUEUE_FULL && answer.resetNanos() == 0;
        return spec.inFlight() > 0
                && (answer.outcome() == Outcome.TOO_MANY_IN_FLIGHT || queueForSlots || !spec.hasRate());
    }

    /** Returns whole seconds, rounded up; zero for negative times. */
    static long seconds(long nanos) {
        return nanos <= 0 ? 0 : (nanos - 1) / SECOND + 1;
    }

    /**
     * The texts for a policy and a spec: {@code RateLimit-Policy}, and the beginning of {@code RateLimit}. The latest are
     * kept; texts that others displaced are composed again. Threads that race may both compose them.
     */
    private static final class PolicyText {

        private static final @Nullable PolicyText[] LATEST = new PolicyText[256];

        private final String name;
        private final BucketSpec spec;
        private final String text;
        private final String start;

        private PolicyText(String name, BucketSpec spec, String quota) {
            this.name = name;
            this.spec = spec;
            this.text = '"' + name + "\";q=" + quota;
            this.start = '"' + name + "\";r=";
        }

        StringBuilder limit(StringBuilder text, Answer answer) {
            text.append(start).append(answer.remaining());
            long wait = Math.max(answer.retryNanos(), answer.nextTokenNanos() - answer.waitNanos());
            return wait > 0 ? text.append(";t=").append(seconds(wait)) : text;
        }

        static PolicyText of(Answer answer) {
            String name = answer.policy().name();
            BucketSpec spec = answer.spec();
            if (isOfCallsInFlight(answer)) {
                return new PolicyText(name, spec, spec.inFlight() + ";qu=\"concurrent-requests\"");
            }
            int place = System.identityHashCode(spec) & LATEST.length - 1;
            PolicyText latest = LATEST[place];
            if (latest == null || latest.spec != spec || !latest.name.equals(name)) {
                String seconds = Long.toString(seconds(spec.timeToFull().toNanos()));
                latest = new PolicyText(name, spec, spec.capacity() + ";w=" + seconds);
                LATEST[place] = latest;
            }
            return latest;
        }
    }
}
