package io.ratelimit.annotation;

import io.ratelimit.Keys;
import org.jspecify.annotations.Nullable;

/**
 * The tier that a call belongs to.
 *
 * @param value gives its name; a call for which it gives nothing or fails belongs to none
 */
record CallTier(CallValue value, SampledWarning warning) {

    @Nullable
    String of(@Nullable Object[] arguments) {
        try {
            Object tier = value.of(arguments);
            String name = tier instanceof Enum<?> constant ? constant.name() : tier == null ? null : tier.toString();
            return name == null ? null : Keys.part(name, true);
        } catch (RuntimeException failed) {
            warning.log("fails with " + failed.getClass().getSimpleName() + ": the call belongs to no tier");
            return null;
        }
    }
}
