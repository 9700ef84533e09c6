package io.ratelimit.key;

import io.ratelimit.key.KeyPart.Availability;
import java.util.function.Function;

/** The condition under which a policy applies to a request. If its evaluation fails, the policy applies. Thread-safe. */
public final class RequestCondition {

    private static final String FAILED_FACT = "its condition, so it applied";

    private final RequestExpression expression;

    private RequestCondition(RequestExpression expression) {
        this.expression = expression;
    }

    /**
     * Parses a condition.
     *
     * @throws IllegalArgumentException if the text is no expression, or a constant other than true
     */
    public static RequestCondition of(String text) {
        RequestExpression expression = RequestExpression.of(text);
        if (expression.isConstant()) {
            checkConstant(expression);
        }
        return new RequestCondition(expression);
    }

    private static void checkConstant(RequestExpression expression) {
        if (!(expression.constant() instanceof Boolean value)) {
            throw new IllegalArgumentException("A condition must be true or false, but '" + expression
                    + "' is neither: write \"method == 'POST'\"");
        }
        if (!value) {
            throw new IllegalArgumentException("'" + expression
                    + "' is true for no request, so the policy would limit nothing. For that write 'mode: off'");
        }
    }

    public RequestCondition withBeans(Function<String, KeyResolver> beans) {
        return new RequestCondition(expression.withBeans(beans));
    }

    public Availability availability() {
        return expression.availability();
    }

    /** Returns whether the policy applies to a request: the condition is true, or neither true nor false. */
    public boolean matches(RequestFacts request, String policy, FailureListener failures) {
        try {
            if (expression.value(request) instanceof Boolean value) {
                return value;
            }
            failures.failed(policy, FAILED_FACT, "neither true nor false");
        } catch (Exception | LinkageError | AssertionError | StackOverflowError failure) {
            failures.failed(policy, FAILED_FACT, failure);
        }
        return true;
    }

    @Override
    public String toString() {
        return expression.toString();
    }
}
