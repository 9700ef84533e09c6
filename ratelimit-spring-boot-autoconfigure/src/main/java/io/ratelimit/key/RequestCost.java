package io.ratelimit.key;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import org.jspecify.annotations.Nullable;
import org.springframework.util.StringUtils;

/**
 * The tokens that a request takes: a number, or what an expression makes of the request. Fractions are rounded up, and
 * what is too large for a {@code long} is the largest; below 1 and what is no number count as 1. Thread-safe.
 */
public final class RequestCost {

    private static final String WHAT = "its cost, which counted as 1";

    /** Of a number in text: longer ones take their time to read, and clients may send them. */
    private static final int LONGEST = 40;

    private static final BigDecimal LARGEST = BigDecimal.valueOf(Long.MAX_VALUE);

    /** One token for each request. */
    public static final RequestCost ONE = of(1);

    private final @Nullable RequestExpression expression;
    private final long constant;
    private final long most;

    private RequestCost(@Nullable RequestExpression expression, long constant, long most) {
        this.expression = expression;
        this.constant = constant;
        this.most = most;
    }

    /** The same for all requests. */
    public static RequestCost of(long tokens) {
        return new RequestCost(null, tokens, Long.MAX_VALUE);
    }

    /**
     * Reads a number or an expression.
     *
     * @throws IllegalArgumentException if it is neither, or the same fraction for all requests
     */
    public static RequestCost of(String text) {
        BigDecimal number = number(text);
        if (number != null) {
            return of(whole(number, text));
        }
        RequestExpression expression = RequestExpression.of(text);
        return expression.isConstant()
                ? of(whole(constant(expression), text))
                : new RequestCost(expression, 0, Long.MAX_VALUE);
    }

    private static BigDecimal constant(RequestExpression expression) {
        BigDecimal number = expression.constant() instanceof Number value ? number(value.toString()) : null;
        if (number == null) {
            throw new IllegalArgumentException("A cost must be a number, but '" + expression + "' is none");
        }
        return number;
    }

    private static long whole(BigDecimal number, String text) {
        long tokens = ceiling(number);
        if (Math.abs(tokens) < Long.MAX_VALUE && number.compareTo(BigDecimal.valueOf(tokens)) != 0) {
            throw new IllegalArgumentException("A cost must be a whole number, but was " + text.strip());
        }
        return tokens;
    }

    /** Cuts what is larger. */
    public RequestCost atMost(long most) {
        return new RequestCost(expression, constant, most);
    }

    /** The number that it is for all requests, as it is written and not cut; null if it depends on the request. */
    public @Nullable Long constant() {
        return expression == null ? constant : null;
    }

    /** What every request takes at least. */
    public long least() {
        return expression == null ? Math.min(Math.max(constant, 1), most) : 1;
    }

    /** From when on it can be told. */
    public Known known() {
        return expression == null ? Known.AT_ONCE : expression.known();
    }

    /**
     * The tokens that a request takes, at least 1.
     *
     * @param policy its name
     * @param failures is told where an expression says nothing that could be taken
     */
    public long tokens(RequestFacts request, String policy, FailureListener failures) {
        long tokens = expression == null ? constant : evaluate(expression, request, policy, failures);
        return Math.min(Math.max(tokens, 1), most);
    }

    /** What a cost that is told elsewhere is cut to, where this one is. */
    public long cut(long tokens) {
        return Math.min(tokens, most);
    }

    private static long evaluate(
            RequestExpression expression, RequestFacts request, String policy, FailureListener failures) {
        try {
            long tokens = tokens(expression.value(request));
            if (tokens < 1) {
                failures.failed(policy, WHAT, "below 1");
            }
            return tokens;
        } catch (Exception failure) {
            failures.failed(policy, WHAT, failure);
            return 1;
        }
    }

    /**
     * The tokens that a value is, also one below 1; a text may be a number.
     *
     * @throws NumberFormatException if it is no number
     */
    public static long tokens(@Nullable Object value) {
        if (value instanceof Long number) {
            return number;
        } else if (value instanceof Integer number) {
            return number;
        } else if (value instanceof Double number && !number.isNaN()) {
            return (long) Math.ceil(number);
        } else if (value instanceof BigInteger number) {
            return ceiling(new BigDecimal(number));
        }
        BigDecimal number = value instanceof BigDecimal decimal ? decimal : number(String.valueOf(value));
        if (number == null) {
            throw new NumberFormatException("it is no number");
        }
        return ceiling(number);
    }

    /** Compares first: a number such as 1e999999999 is short in text alone. */
    private static long ceiling(BigDecimal number) {
        if (number.abs().compareTo(LARGEST) >= 0) {
            return number.signum() * Long.MAX_VALUE;
        }
        boolean small = number.abs().compareTo(BigDecimal.ONE) < 0;
        return small
                ? Math.max(number.signum(), 0)
                : number.setScale(0, RoundingMode.CEILING).longValue();
    }

    /** As Spring reads the arguments of controllers, or some would be read there and not here. Null if it is none. */
    static @Nullable BigDecimal number(String text) {
        String digits = withoutLeadingZeros(StringUtils.trimAllWhitespace(text));
        try {
            return digits.length() > LONGEST ? null : isHex(digits) ? hex(digits) : new BigDecimal(digits);
        } catch (NumberFormatException none) {
            return null;
        }
    }

    private static String withoutLeadingZeros(String text) {
        int zeros = 0;
        while (zeros < text.length() - 1 && text.charAt(zeros) == '0' && Character.isDigit(text.charAt(zeros + 1))) {
            zeros++;
        }
        return text.substring(zeros);
    }

    private static boolean isHex(String digits) {
        return digits.startsWith("0x") || digits.startsWith("0X") || digits.startsWith("#");
    }

    private static BigDecimal hex(String digits) {
        return new BigDecimal(new BigInteger(digits.substring(digits.startsWith("#") ? 1 : 2), 16));
    }

    /** What it comes to, in words: {@code 5 tokens a request}. */
    public String describe() {
        return expression == null
                ? Math.min(Math.max(constant, 1), most) + " tokens a request"
                : expression + " tokens a request" + (most == Long.MAX_VALUE ? "" : ", at most " + most);
    }

    /** As it is written. */
    @Override
    public String toString() {
        return expression == null ? Long.toString(constant) : expression.toString();
    }
}
