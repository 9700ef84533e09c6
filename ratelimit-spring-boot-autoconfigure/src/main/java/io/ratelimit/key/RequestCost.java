package io.ratelimit.key;

import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import io.ratelimit.key.KeyPart.Availability;
import java.math.BigDecimal;
import java.util.concurrent.Callable;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The tokens that a request takes: a number, or the value of an expression over the request. Fractions are rounded up, and
 * a number too large for a {@code long} counts as the largest {@code long}. Thread-safe.
 */
public final class RequestCost {

    private static final String NAME = "its cost";
    private static final long NO_MAXIMUM = Long.MAX_VALUE;
    private static final BigDecimal MAX_SETTLED = BigDecimal.valueOf(Throttlers.MAX_SETTLED_COST);

    /** One token for each request. */
    public static final RequestCost ONE = of(1);

    private final @Nullable RequestExpression expression;
    private final long constant;
    private final long maximum;

    private RequestCost(@Nullable RequestExpression expression, long constant, long maximum) {
        this.expression = expression;
        this.constant = constant;
        this.maximum = maximum;
    }

    /** Creates a cost that is the same for all requests. */
    public static RequestCost of(long tokens) {
        return new RequestCost(null, tokens, NO_MAXIMUM);
    }

    /**
     * Parses a number or an expression.
     *
     * @throws IllegalArgumentException if the text is neither, or a constant that is not a whole number
     */
    public static RequestCost of(String text) {
        BigDecimal number = text.chars().allMatch(c -> c < 128) ? NumberText.read(text) : null;
        if (number != null) {
            return of(whole(number, text));
        }
        RequestExpression expression = RequestExpression.of(text);
        return expression.isConstant()
                ? of(whole(constant(expression), text))
                : new RequestCost(expression, 0, NO_MAXIMUM);
    }

    /**
     * Returns the tokens that a value is or spells, rounded up to a whole number.
     *
     * @throws NumberFormatException if the value is no number
     */
    public static long tokens(@Nullable Object value) {
        return NumberText.ceiling(value);
    }

    private static BigDecimal constant(RequestExpression expression) {
        BigDecimal number = expression.constant() instanceof Number value && Double.isFinite(value.doubleValue())
                ? NumberText.read(value.toString())
                : null;
        if (number == null) {
            throw new IllegalArgumentException("A cost must be a number, but '" + expression + "' is not a number");
        }
        return number;
    }

    private static long whole(BigDecimal number, String text) {
        long tokens = NumberText.ceiling(number);
        if (Math.abs(tokens) < Long.MAX_VALUE && number.compareTo(BigDecimal.valueOf(tokens)) != 0) {
            throw new IllegalArgumentException("A cost must be a whole number, but was " + text.strip());
        }
        return tokens;
    }

    /** Returns this cost with a maximum; a larger cost counts as the maximum. */
    public RequestCost withMaximum(long maximum) {
        return new RequestCost(expression, constant, maximum);
    }

    /** Returns this cost with the beans that it reads; itself if it reads none. */
    public RequestCost withBeans(Function<String, KeyResolver> beans) {
        return expression == null ? this : new RequestCost(expression.withBeans(beans), constant, maximum);
    }

    /** Returns the number that was configured, regardless of the maximum; null if the cost depends on the request. */
    public @Nullable Long constant() {
        return expression == null ? constant : null;
    }

    /** Returns the smallest number of tokens that a request takes. */
    public long minTokens() {
        return expression == null ? capped(Math.max(constant, 1)) : 1;
    }

    public Availability availability() {
        return expression == null ? Availability.IMMEDIATE : expression.availability();
    }

    /**
     * Returns the tokens that a request takes, at least 1.
     *
     * @param failures receives a call if the expression has no usable value
     */
    public long tokens(RequestFacts request, String policy, FailureListener failures) {
        return expression == null ? minTokens() : tokens(() -> expression.value(request), policy, NAME, failures);
    }

    /**
     * Returns the tokens that the value of an expression comes to, at least 1. A missing or blank value and a number below 1
     * count as 1. A value that is no number and an expression that throws count as the maximum, if the policy has one, and
     * otherwise as 1.
     *
     * @param name the cost as messages name it
     * @param failures receives a call for each value that counts as 1 or as failed
     */
    public long tokens(Callable<@Nullable Object> expression, String policy, String name, FailureListener failures) {
        try {
            Object value = expression.call();
            boolean isMissing = value == null || value instanceof String text && text.isBlank();
            long tokens = isMissing ? 0 : NumberText.ceiling(value);
            if (tokens >= 1) {
                return capped(tokens);
            }
            failures.failed(policy, name + ", which counted as 1", isMissing ? "missing" : "below 1");
            return 1;
        } catch (Exception | LinkageError | AssertionError | StackOverflowError failure) {
            failures.failed(policy, name + ", which counted as " + failedTokens(), failure);
            return failedTokens();
        }
    }

    private long failedTokens() {
        return maximum == NO_MAXIMUM ? 1 : maximum;
    }

    /**
     * Settles a call at its actual cost, rounded up and at most the maximum. If the value is no number from 0 to 10^12, or
     * the settlement fails, the estimate stands.
     *
     * @param taken the answer that the call took its tokens with
     * @param actual returns the actual cost: a number or its text; null or a blank text if there is none
     * @param name the actual cost as messages name it
     * @param mayWait whether this thread may wait for a remote store; otherwise the call is {@linkplain
     *     Throttlers#settleLater settled later}
     * @param failures receives a call for each value that is no actual cost
     */
    public void settle(
            Answer taken,
            Callable<? extends @Nullable Object> actual,
            String name,
            Throttlers throttlers,
            boolean mayWait,
            FailureListener failures) {
        String policy = taken.policy().name();
        String fact = name + ", so the estimate stands";
        try {
            Object value = actual.call();
            if (value == null
                    || value instanceof CharSequence text && text.toString().isBlank()) {
                return;
            }
            BigDecimal number = NumberText.read(value.toString());
            if (number != null && number.signum() >= 0 && number.compareTo(MAX_SETTLED) <= 0) {
                settle(taken, capped(NumberText.ceiling(number)), throttlers, mayWait);
                return;
            }
            failures.failed(policy, fact, "it must be a number between 0 and " + Throttlers.MAX_SETTLED_COST);
        } catch (Exception | LinkageError | AssertionError | StackOverflowError failure) {
            failures.failed(policy, fact, failure);
        }
        throttlers.listener().eventOccurred(taken.policy(), ThrottleListener.Event.SETTLE_FAILURE);
    }

    private static void settle(Answer taken, long cost, Throttlers throttlers, boolean mayWait) {
        if (mayWait) {
            throttlers.settle(taken, cost);
        } else {
            throttlers.settleLater(taken, cost);
        }
    }

    /** Caps a cost that was computed elsewhere at this cost's maximum. */
    public long capped(long tokens) {
        return Math.min(tokens, maximum);
    }

    /** Returns a description for the log, such as {@code 5 tokens a request}. */
    public String describe() {
        return expression == null
                ? minTokens() + " tokens a request"
                : expression + " tokens a request" + (maximum == NO_MAXIMUM ? "" : ", at most " + maximum);
    }

    @Override
    public String toString() {
        return expression == null ? Long.toString(constant) : expression.toString();
    }
}
