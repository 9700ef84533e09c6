package io.ratelimit.autoconfigure;

import io.ratelimit.Rate;
import io.ratelimit.RetryJitter;
import io.ratelimit.key.IpNetwork;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestTier;
import io.ratelimit.web.servlet.RejectionDelay;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.convert.TypeDescriptor;
import org.springframework.core.convert.converter.GenericConverter;

/**
 * Reads a number or a boolean as the text it is: {@code rate: 5} then fails as {@code rate: "5"} does, with file and line
 * and what would do, instead of for want of a converter.
 */
final class NumberConverter implements GenericConverter {

    private static final Map<Class<?>, Function<String, Object>> READERS = Map.of(
            Rate.class, Rate::of,
            RetryJitter.class, RetryJitter::of,
            RejectionDelay.class, RejectionDelay::of,
            MaxWait.class, MaxWait::of,
            KeyPart.class, KeyPart::of,
            IpNetwork.class, IpNetwork::of,
            RequestCost.class, RequestCost::of,
            RequestCondition.class, RequestCondition::of,
            RequestTier.class, RequestTier::of);

    @Override
    public Set<ConvertiblePair> getConvertibleTypes() {
        return READERS.keySet().stream()
                .flatMap(
                        type -> Stream.of(Number.class, Boolean.class).map(source -> new ConvertiblePair(source, type)))
                .collect(Collectors.toSet());
    }

    @Override
    public @Nullable Object convert(@Nullable Object source, TypeDescriptor sourceType, TypeDescriptor targetType) {
        Function<String, Object> reader = READERS.get(targetType.getType());
        return source == null || reader == null ? null : reader.apply(source.toString());
    }
}
