package io.ratelimit.annotation;

import org.jspecify.annotations.Nullable;

/**
 * The tokens of a call.
 *
 * @param value gives them; what is no number of at least 1 counts as 1
 */
record CallCost(CallValue value, SampledWarning warning) {

    long of(@Nullable Object[] arguments) {
        try {
            long cost = tokens(value.of(arguments));
            if (cost >= 1) {
                return cost;
            }
            warning.log("is below 1 or no number: the call counts as 1");
        } catch (RuntimeException failed) {
            warning.log("fails with " + failed.getClass().getSimpleName() + ": the call counts as 1");
        }
        return 1;
    }

    boolean isConstant() {
        return value instanceof CallValue.Constant;
    }

    /** A part of a token is a whole one; 0 for what is no number. */
    private static long tokens(@Nullable Object value) {
        if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
            return ((Number) value).longValue();
        }
        return value instanceof Number number ? (long) Math.ceil(number.doubleValue()) : 0;
    }
}
