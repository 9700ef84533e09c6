package io.ratelimit.annotation;

import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestFacts;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestTier;
import java.math.BigDecimal;
import java.security.Principal;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ObjectUtils;

/**
 * The charge of one limit for the calls of one method.
 *
 * @param annotation the annotation as messages name it
 * @param limit a policy of the configuration, or an inline limit
 * @param key the key in place of the policy's
 * @param cost the tokens in place of the policy's cost
 * @param settle the actual cost
 * @param tier the name of the tier in place of the policy's; a call without a name belongs to no tier
 * @param maxWait the longest wait of a call in place of the policy's
 */
record MethodCharge(
        String annotation,
        AnnotatedPolicy limit,
        @Nullable Key key,
        @Nullable CallValue cost,
        @Nullable Written condition,
        @Nullable Written settle,
        @Nullable CallValue tier,
        @Nullable Duration maxWait,
        RateLimitedOperation.@Nullable Fallback fallback,
        Current current) {

    ThrottlePolicy policy() {
        return limit.policy();
    }

    int keySize() {
        return Math.max(policy().key().size(), key == null ? 0 : 1);
    }

    /** Returns what the annotation replaces or adds. The key of an inline limit is the limit's own, and needs no mention. */
    String describe(boolean isInline) {
        return (isInline || key == null ? "" : ", a bucket for each " + key.text())
                + (maxWait == null
                        ? ""
                        : ", where " + policy().withMaxWait(maxWait).describeWaiting())
                + (settle == null ? "" : ", settled by " + settle.text())
                + (condition == null ? "" : ", if " + condition.text());
    }

    boolean mayWait() {
        return !(maxWait == null ? policy().maxWait() : maxWait).isZero();
    }

    boolean settlesOneBucket() {
        return settle != null && (key == null ? policy().isGlobal() : key.isConstant());
    }

    /** Returns whether the policy, one of its tiers or an override of its calls limits how many calls are in flight. */
    boolean limitsInFlight() {
        return (key == null ? limit.key() : key.texts()).overrides().limitInFlight(policy());
    }

    /** Returns whether the charge is the same for all calls, as long as the policy is. */
    boolean isConstant() {
        boolean constantKey = key == null
                ? limit.key().parts().isEmpty() && limit.key().lane().isEmpty()
                : key.isConstant() && key.texts().overrides().isEmpty();
        boolean constantCost = cost == null ? limit.cost().constant() != null : cost instanceof CallValue.Constant;
        boolean constantLimit =
                tier == null && limit.key().tier() == null && limit.key().limit() == null;
        boolean constantCondition = condition == null || condition.value() instanceof CallValue.Constant;
        return isOff() || constantKey && constantCost && constantLimit && constantCondition;
    }

    private boolean isOff() {
        return policy().mode() == ThrottlePolicy.Mode.OFF;
    }

    /** Returns the charge of a call; null if the policy doesn't apply to the call. */
    @Nullable
    Charge charge(@Nullable Object[] arguments) {
        Charge charge = isOff() || !applies(arguments) ? null : chargeWithoutWait(arguments);
        return charge == null || maxWait == null ? charge : charge.withMaxWait(maxWait);
    }

    /** Returns whether the limit applies to a call: the condition is true, or neither true nor false. */
    boolean applies(@Nullable Object[] arguments) {
        if (condition == null) {
            return true;
        }
        String failed = "the condition of " + annotation + ", so the limit applied";
        try {
            if (condition.value().value(arguments) instanceof Boolean value) {
                return value;
            }
            failed(failed, "neither true nor false");
        } catch (RuntimeException | LinkageError | AssertionError | StackOverflowError failure) {
            failed(failed, failure);
        }
        return true;
    }

    private void failed(String fact, String reason) {
        limit.key().failures().failed(policy().name(), fact, reason);
    }

    private void failed(String fact, Throwable failure) {
        limit.key().failures().failed(policy().name(), fact, failure);
    }

    private @Nullable Charge chargeWithoutWait(@Nullable Object[] arguments) {
        long tokens = cost == null
                ? limit.cost(current)
                : limit.cost()
                        .tokens(
                                () -> cost.value(arguments),
                                policy().name(),
                                "the cost of " + annotation,
                                limit.key().failures());
        RequestFacts request = key == null || limit.key().tier() != null ? current.facts() : null;
        String tierName = tier == null ? limit.key().tier(policy(), request) : tierName(tier, arguments);
        if (key == null) {
            return limit.key().charge(policy(), tokens, request, tierName);
        }
        return key.texts().charge(policy(), keyTexts(key, arguments), tokens, current, tierName);
    }

    /** @param mayWait whether this thread may wait for a remote store */
    void settle(Answer taken, @Nullable Object[] argumentsAndResult, Throttlers throttlers, boolean mayWait) {
        Written actual = settle;
        if (actual != null) {
            limit.cost()
                    .settle(
                            taken,
                            () -> actual.value().value(argumentsAndResult),
                            "the actual cost of " + annotation,
                            throttlers,
                            mayWait,
                            limit.key().failures());
        }
    }

    private @Nullable String tierName(CallValue tier, @Nullable Object[] arguments) {
        try {
            Object value = tier.value(arguments);
            String name = value instanceof Enum<?> constant ? constant.name() : value == null ? null : value.toString();
            return name == null ? null : RequestTier.name(name);
        } catch (RuntimeException | LinkageError | AssertionError | StackOverflowError failure) {
            failed("the tier of " + annotation + ", so the policy's own rate applied", failure);
            return null;
        }
    }

    /** Returns the texts of the key's parts; null for a part that is missing. */
    private @Nullable String[] keyTexts(Key key, @Nullable Object[] arguments) {
        @Nullable Object[] parts = keyParts(key, arguments);
        @Nullable String[] texts = new String[parts.length];
        for (int i = 0; i < texts.length; i++) {
            Object part = parts[i];
            if (part != null && !Key.isText(part)) {
                failed(keyFailure(), part.getClass().getName() + " isn't a text");
            } else if (part != null) {
                texts[i] = Key.text(part);
            }
        }
        return texts;
    }

    private @Nullable Object[] keyParts(Key key, @Nullable Object[] arguments) {
        try {
            return key.parts(arguments);
        } catch (RuntimeException | LinkageError | AssertionError | StackOverflowError failure) {
            failed(keyFailure(), failure);
            return new @Nullable Object[1];
        }
    }

    private String keyFailure() {
        return "the key of " + annotation + ", so it was missing";
    }

    /** An attribute as it is written, and its value. The result is an argument of an actual cost, after the others. */
    record Written(String text, CallValue value) {}

    /**
     * @param value the value of the attribute: one part or several
     * @param texts the policy's key, for texts in place of its parts
     */
    record Key(String text, CallValue value, RequestKey texts) {

        private static final List<Class<?>> TEXTS = List.of(
                CharSequence.class,
                Number.class,
                UUID.class,
                Character.class,
                Boolean.class,
                Enum.class,
                Principal.class);

        private static final int MAX_PLAIN_DIGITS = 40;
        private static final int MAX_STRIPPED_DIGITS = 1000;
        private static final int MAX_STRIPPED_SCALE = 1_000_000_000;

        /** Returns whether the key is the same text for all calls, and is never missing. */
        boolean isConstant() {
            return value instanceof CallValue.Constant constant
                    && constant.value() instanceof String constantText
                    && !constantText.isBlank();
        }

        /** Returns the parts of the key of a call, at least one; null for a part that is missing. */
        @Nullable
        Object[] parts(@Nullable Object[] arguments) {
            Object parts = value.value(arguments);
            @Nullable
            Object[] array = parts instanceof Collection<?> collection
                    ? collection.toArray()
                    : parts != null && parts.getClass().isArray()
                            ? ObjectUtils.toObjectArray(parts)
                            : new @Nullable Object[] {parts};
            return array.length == 0 ? new @Nullable Object[1] : array;
        }

        /**
         * Returns whether a part always has the same text for the same value. Other objects are no keys: each instance could
         * have a text of its own, and so a fresh bucket.
         */
        static boolean isText(Object part) {
            return isValue(part) || part instanceof Enum<?> || part instanceof Principal;
        }

        /** Returns whether all values of a type are such parts. */
        static boolean isTextType(Class<?> type) {
            return TEXTS.stream().anyMatch(text -> text.isAssignableFrom(type));
        }

        private static boolean isValue(Object part) {
            return part instanceof CharSequence
                    || part instanceof Number
                    || part instanceof UUID
                    || part instanceof Character
                    || part instanceof Boolean;
        }

        /** Returns the text of a part; null for a user whose principal has no lasting name. */
        static @Nullable String text(Object part) {
            if (part instanceof BigDecimal number) {
                return text(number);
            } else if (isValue(part)) {
                return part.toString();
            } else if (part instanceof Enum<?> constant) {
                return constant.name();
            }
            return part instanceof Principal user ? KeyPart.userOf(user) : null;
        }

        /** Returns one text for 1, 1.0 and 1.00. A number such as 1e999999999 keeps its short text. */
        private static String text(BigDecimal number) {
            if (number.precision() > MAX_STRIPPED_DIGITS || Math.abs((long) number.scale()) > MAX_STRIPPED_SCALE) {
                return number.toString(); // stripping the zeros would be slow, or overflow the scale
            }
            BigDecimal stripped = number.stripTrailingZeros();
            int digits = stripped.precision() + Math.abs(stripped.scale());
            return digits > MAX_PLAIN_DIGITS ? stripped.toString() : stripped.toPlainString();
        }
    }
}
