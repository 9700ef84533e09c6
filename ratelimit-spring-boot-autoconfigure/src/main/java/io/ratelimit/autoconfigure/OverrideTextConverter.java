package io.ratelimit.autoconfigure;

import io.ratelimit.autoconfigure.PolicyOverride.Text;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.core.convert.TypeDescriptor;
import org.springframework.core.convert.converter.ConditionalGenericConverter;

/**
 * Reads the text of a key, or a text in place of a list of them, as it is written: a user may have a comma in the name.
 * A number or a boolean of YAML is none: {@code 007} would be the key 7, and {@code 1.10} the key 1.1.
 */
final class OverrideTextConverter implements ConditionalGenericConverter {

    /** Named one by one: Spring's own converter of a String to a Collection goes before any of an Object. */
    private static final List<Class<?>> SCALARS =
            List.of(String.class, CharSequence.class, Number.class, Boolean.class);

    @Override
    public Set<ConvertiblePair> getConvertibleTypes() {
        Set<ConvertiblePair> pairs = new HashSet<>();
        for (Class<?> scalar : SCALARS) {
            pairs.add(new ConvertiblePair(scalar, Text.class));
            pairs.add(new ConvertiblePair(scalar, List.class));
        }
        return pairs;
    }

    @Override
    public boolean matches(TypeDescriptor source, TypeDescriptor target) {
        return target.getType() == Text.class || isListOfTexts(target);
    }

    private static boolean isListOfTexts(TypeDescriptor target) {
        TypeDescriptor element = target.getElementTypeDescriptor();
        return element != null && element.getType() == Text.class;
    }

    @Override
    public @Nullable Object convert(@Nullable Object source, TypeDescriptor sourceType, TypeDescriptor targetType) {
        if (source == null) {
            return null;
        }
        if (!(source instanceof CharSequence)) {
            throw new IllegalArgumentException(
                    "YAML has read it as a " + (source instanceof Number ? "number" : "boolean")
                            + ", perhaps not as it is written: put the key in quotes");
        }
        Text text = new Text(source.toString());
        return targetType.getType() == Text.class ? text : List.of(text);
    }
}
