package io.ratelimit.annotation;

/**
 * The actual costs of the current request, for policies with {@code settle: code}. A handler of Spring MVC gets it as an
 * argument, and may pass it to other threads:
 *
 * <pre>
 * &#064;PostMapping("/chat")
 * Answer chat(&#064;RequestBody Question question, ActualCost cost) {
 *     Answer answer = model.ask(question);
 *     cost.settle("tokens", answer.usage().totalTokens());
 *     return answer;
 * }
 * </pre>
 *
 * <p>The request is settled when its response is complete. An asynchronous one whose handler has set no cost by then, since
 * its client disconnected, is settled when it sets one. Thread-safe.
 */
public interface ActualCost {

    /**
     * Sets the actual cost of the request, in place of the estimate that was taken before the work. If the method is
     * called several times, the last cost before the response is complete counts.
     *
     * @param policy the name of a policy with {@code settle: code}
     * @param cost the tokens, from 0 to 10^12; more than the policy's {@code max-cost} counts as that
     * @return false if the cost has no effect: the policy didn't charge the request, the response was complete with a
     *     cost or after a timeout, or the cost is outside its range, which is logged and counted
     * @throws IllegalArgumentException if no policy of that name has {@code settle: code}; the message names those that do
     */
    boolean settle(String policy, long cost);
}
