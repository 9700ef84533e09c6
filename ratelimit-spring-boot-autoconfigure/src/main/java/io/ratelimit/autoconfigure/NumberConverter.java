package io.ratelimit.autoconfigure;

import io.ratelimit.Rate;
import io.ratelimit.RetryJitter;
import io.ratelimit.key.IpNetwork;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestTier;
import io.ratelimit.web.servlet.RejectionDelay;
import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.core.convert.TypeDescriptor;
import org.springframework.core.convert.converter.GenericConverter;
import org.springframework.util.ReflectionUtils;

/**
 * Reads a number or a boolean as the text it is: {@code rate: 5} then fails as {@code rate: "5"} does, with file and line
 * and what would do, instead of for want of a converter.
 */
final class NumberConverter implements GenericConverter {

    /** Each has a method {@code of}, by which Spring reads a text. */
    private static final List<Class<?>> TYPES = List.of(
            Rate.class,
            RetryJitter.class,
            RejectionDelay.class,
            MaxWait.class,
            KeyPart.class,
            IpNetwork.class,
            RequestCost.class,
            RequestCondition.class,
            RequestTier.class);

    @Override
    public Set<ConvertiblePair> getConvertibleTypes() {
        Set<ConvertiblePair> pairs = new HashSet<>();
        for (Class<?> type : TYPES) {
            pairs.add(new ConvertiblePair(Number.class, type));
            pairs.add(new ConvertiblePair(Boolean.class, type));
        }
        return pairs;
    }

    @Override
    public @Nullable Object convert(@Nullable Object source, TypeDescriptor sourceType, TypeDescriptor targetType) {
        return source == null ? null : ReflectionUtils.invokeMethod(reader(targetType), null, source.toString());
    }

    private static Method reader(TypeDescriptor type) {
        return Objects.requireNonNull(ReflectionUtils.findMethod(type.getType(), "of", String.class), type::toString);
    }
}
