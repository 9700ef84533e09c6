package io.ratelimit.key;

/** To which requests a policy applies. Where that can't be told it applies. Thread-safe. */
public final class RequestCondition {

    private static final String WHAT = "its condition, so it applied";

    private final RequestExpression expression;

    private RequestCondition(RequestExpression expression) {
        this.expression = expression;
    }

    /**
     * @throws IllegalArgumentException if the text is no expression, or one that is never true
     */
    public static RequestCondition of(String text) {
        RequestExpression expression = RequestExpression.of(text);
        if (expression.isConstant()) {
            check(expression);
        }
        return new RequestCondition(expression);
    }

    private static void check(RequestExpression expression) {
        if (!(expression.constant() instanceof Boolean value)) {
            throw new IllegalArgumentException(
                    "A condition must be true or false, but '" + expression + "' is neither: say \"method == 'POST'\"");
        }
        if (!value) {
            throw new IllegalArgumentException("'" + expression
                    + "' is true for no request, so the policy would limit nothing. For that say 'mode: off'");
        }
    }

    /** From when on it can be told. */
    public Known known() {
        return expression.known();
    }

    /**
     * Whether the policy applies to a request: it does where this is true, and where it is neither true nor false.
     *
     * @param policy its name
     * @param failures is told where it is neither
     */
    public boolean holds(RequestFacts request, String policy, FailureListener failures) {
        try {
            if (expression.value(request) instanceof Boolean value) {
                return value;
            }
            failures.failed(policy, WHAT, "neither true nor false");
        } catch (Exception failure) {
            failures.failed(policy, WHAT, failure);
        }
        return true;
    }

    /** As it is written. */
    @Override
    public String toString() {
        return expression.toString();
    }
}
