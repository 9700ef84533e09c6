package io.ratelimit.annotation;

import org.jspecify.annotations.Nullable;

/** What a call gives for an expression of an annotation. */
@FunctionalInterface
interface CallValue {

    /**
     * @throws RuntimeException if the expression fails
     */
    @Nullable
    Object of(@Nullable Object[] arguments);

    /** The same for all calls. */
    record Constant(@Nullable Object value) implements CallValue {

        @Override
        public @Nullable Object of(@Nullable Object[] arguments) {
            return value;
        }
    }

    /** An argument as it is. */
    record Argument(int index) implements CallValue {

        @Override
        public @Nullable Object of(@Nullable Object[] arguments) {
            return arguments[index];
        }
    }
}
