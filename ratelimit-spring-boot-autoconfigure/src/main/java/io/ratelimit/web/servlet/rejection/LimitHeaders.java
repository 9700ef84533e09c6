package io.ratelimit.web.servlet.rejection;

import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottlePolicy;
import jakarta.servlet.http.HttpServletResponse;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The response headers that show clients their limits, by policy.
 *
 * @param common the headers of all policies that {@code ofPolicies} doesn't contain
 * @param ofPolicies the headers of single policies, by name
 */
public record LimitHeaders(RateLimitHeaders common, Map<String, RateLimitHeaders> ofPolicies) {

    public LimitHeaders {
        ofPolicies = Map.copyOf(ofPolicies);
    }

    /** Returns the headers of a policy. */
    public RateLimitHeaders of(ThrottlePolicy policy) {
        return ofPolicies.isEmpty() ? common : ofPolicies.getOrDefault(policy.name(), common);
    }

    /** Shows the limit of an answer on an allowed response, in place of that of another answer. */
    public void replace(@Nullable Answer before, Answer shown, HttpServletResponse response) {
        RateLimitHeaders headers = of(shown.policy());
        if (before != null && of(before.policy()) != headers) {
            of(before.policy()).remove(response);
        }
        headers.write(shown, response);
    }

    /** Sets the headers for the policies of these answers. Policies with the same headers share them. */
    void write(List<Answer> answers, HttpServletResponse response) {
        if (ofPolicies.isEmpty()) {
            common.write(answers, response);
            return;
        }
        for (RateLimitHeaders headers : RateLimitHeaders.values()) {
            List<Answer> shown = answers.stream()
                    .filter(answer -> of(answer.policy()) == headers)
                    .toList();
            if (!shown.isEmpty()) {
                headers.write(shown, response);
            }
        }
    }

    /** Removes the headers that were set while the request was still allowed. */
    void remove(HttpServletResponse response) {
        common.remove(response);
        if (!ofPolicies.isEmpty()) {
            EnumSet.copyOf(ofPolicies.values()).forEach(used -> used.remove(response));
        }
    }
}
