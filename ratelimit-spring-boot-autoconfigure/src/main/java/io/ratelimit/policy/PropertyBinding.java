package io.ratelimit.policy;

import io.ratelimit.policy.RateLimitProperties.OverrideEntry.Text;
import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationPropertiesBindHandlerAdvisor;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.core.convert.TypeDescriptor;
import org.springframework.core.convert.converter.ConditionalGenericConverter;
import org.springframework.util.ReflectionUtils;

/**
 * Binds what Spring can't: it converts the scalars of YAML to the types of the properties, and reads the keys of overrides.
 *
 * <ul>
 *   <li>A number or a boolean is read as text by the type's method {@code of(String)}. {@code rate: 5} then fails as
 *       {@code rate: "5"} does, with file, line and advice, and not for a missing converter.
 *   <li>A key of an override, and a text instead of a list of keys, is read as it is written: the name of a user may
 *       contain a comma. A number or a boolean is rejected: {@code 007} would be the key 7, and {@code 1.10} the key 1.1.
 * </ul>
 */
final class PropertyBinding implements ConditionalGenericConverter, ConfigurationPropertiesBindHandlerAdvisor {

    /** Listed one by one, since Spring's own converter from String to Collection precedes any from Object. */
    private static final List<Class<?>> SCALARS =
            List.of(String.class, CharSequence.class, Number.class, Boolean.class);

    private static final String OURS = "io.ratelimit.";

    @Override
    public BindHandler apply(BindHandler parent) {
        return new OverridesBinding(parent);
    }

    @Override
    public Set<ConvertiblePair> getConvertibleTypes() {
        Set<ConvertiblePair> pairs = new HashSet<>();
        for (Class<?> scalar : SCALARS) {
            pairs.add(new ConvertiblePair(scalar, Text.class));
            pairs.add(new ConvertiblePair(scalar, List.class));
        }
        pairs.add(new ConvertiblePair(Number.class, Object.class));
        pairs.add(new ConvertiblePair(Boolean.class, Object.class));
        return pairs;
    }

    @Override
    public boolean matches(TypeDescriptor source, TypeDescriptor target) {
        return isText(target)
                || !CharSequence.class.isAssignableFrom(source.getType())
                        && target.getType().getName().startsWith(OURS)
                        && factoryMethod(target) != null;
    }

    private static boolean isText(TypeDescriptor target) {
        TypeDescriptor element = target.getElementTypeDescriptor();
        return target.getType() == Text.class || element != null && element.getType() == Text.class;
    }

    private static @Nullable Method factoryMethod(TypeDescriptor target) {
        return ReflectionUtils.findMethod(target.getType(), "of", String.class);
    }

    @Override
    public @Nullable Object convert(@Nullable Object source, TypeDescriptor sourceType, TypeDescriptor targetType) {
        if (source == null) {
            return null;
        }
        if (isText(targetType)) {
            return text(source, targetType);
        }
        Method factory = Objects.requireNonNull(factoryMethod(targetType));
        return ReflectionUtils.invokeMethod(factory, null, source.toString());
    }

    private static Object text(Object source, TypeDescriptor targetType) {
        if (!(source instanceof CharSequence)) {
            throw new IllegalArgumentException(
                    "YAML reads this key as a " + (source instanceof Number ? "number" : "boolean")
                            + ", which may differ from what is written: put the key in quotes");
        }
        Text text = new Text(source.toString());
        return targetType.getType() == Text.class ? text : List.of(text);
    }
}
