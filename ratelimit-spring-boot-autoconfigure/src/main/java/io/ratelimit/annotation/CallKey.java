package io.ratelimit.annotation;

import io.ratelimit.Charge;
import io.ratelimit.key.CurrentRequest;
import java.math.BigDecimal;
import java.security.Principal;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ObjectUtils;

/**
 * The key that an annotation gives to a call.
 *
 * @param place the annotation, as messages name it
 * @param text as it is written
 * @param value gives a part or a list of parts
 * @param limit whose rule holds for a call that lacks a part
 */
record CallKey(String place, String text, CallValue value, AnnotatedPolicy limit, CurrentRequest current) {

    private static final int MOST_DIGITS = 40;
    private static final int MOST_STRIPPED = 1000;
    private static final int LARGEST_SCALE = 1_000_000_000;
    private static final List<@Nullable Object> NOTHING = Collections.singletonList(null);

    /** What the call is charged; null if the policy doesn't apply to it. */
    @Nullable
    Charge charge(long cost, @Nullable String tier, @Nullable Object[] arguments) {
        Object[] parts = parts(arguments);
        @Nullable String[] texts = new String[parts.length];
        for (int i = 0; i < texts.length; i++) {
            texts[i] = text(parts[i]);
        }
        return limit.key().charge(limit.policy(), texts, cost, current, tier);
    }

    /** Whether it is one text for all calls, and no other rule can hold for any. */
    boolean isConstant() {
        return value instanceof CallValue.Constant constant
                && constant.value() instanceof String text
                && !text.isBlank();
    }

    private @Nullable Object[] parts(@Nullable Object[] arguments) {
        try {
            Object value = this.value.of(arguments);
            Object[] parts = value instanceof Collection<?> list
                    ? list.toArray()
                    : value != null && value.getClass().isArray()
                            ? ObjectUtils.toObjectArray(value)
                            : new @Nullable Object[] {value};
            return parts.length == 0 ? NOTHING.toArray() : parts;
        } catch (RuntimeException failure) {
            limit.failures().failed(limit.policy().name(), what(), failure);
            return NOTHING.toArray();
        }
    }

    /**
     * Only of what has one text for each value: by the text that other objects have, each of them could be a fresh
     * bucket.
     */
    private @Nullable String text(@Nullable Object part) {
        if (part instanceof BigDecimal number) {
            return text(number);
        } else if (part instanceof CharSequence
                || part instanceof Number
                || part instanceof UUID
                || part instanceof Character
                || part instanceof Boolean) {
            return part.toString();
        } else if (part instanceof Enum<?> constant) {
            return constant.name();
        } else if (part instanceof Principal user) {
            return user.getName();
        } else if (part != null) {
            limit.failures()
                    .failed(limit.policy().name(), what(), part.getClass().getName() + " is no text");
        }
        return null;
    }

    /** 1, 1.0 and 1.00 are one key; 1e999999999 is not written out. */
    private static String text(BigDecimal number) {
        if (number.precision() > MOST_STRIPPED || Math.abs((long) number.scale()) > LARGEST_SCALE) {
            return number.toString(); // zeros are slow to strip, and there may be no scale for what is left
        }
        BigDecimal stripped = number.stripTrailingZeros();
        int digits = stripped.precision() + Math.abs(stripped.scale());
        return digits > MOST_DIGITS ? stripped.toString() : stripped.toPlainString();
    }

    private String what() {
        return "the key of " + place + ", so it was missing";
    }
}
