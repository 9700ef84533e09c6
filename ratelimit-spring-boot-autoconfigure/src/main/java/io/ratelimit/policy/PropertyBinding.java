package io.ratelimit.policy;

import io.ratelimit.policy.RateLimitProperties.OverrideEntry.Text;
import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationPropertiesBindHandlerAdvisor;
import org.springframework.boot.context.properties.bind.AbstractBindHandler;
import org.springframework.boot.context.properties.bind.BindContext;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.core.convert.TypeDescriptor;
import org.springframework.core.convert.converter.ConditionalGenericConverter;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.util.ReflectionUtils;

/**
 * Binds what Spring can't: it converts the scalars of YAML to the types of the properties, and reads the keys of overrides.
 * It skips the properties of policies that are absent.
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
        return new PolicyBindHandler(parent);
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

    /**
     * Binds policies in less time than Spring's binder, which walks through all names of each source for each list or map. A
     * policy has few of its many properties, so the handler skips those that no source contains.
     */
    private static final class PolicyBindHandler extends AbstractBindHandler {

        private static final ConfigurationPropertyName POLICIES =
                ConfigurationPropertyName.of(RateLimitProperties.PREFIX + ".policies");

        /** The number of elements in the name of a policy's property. */
        private static final int ELEMENTS = 4;

        /** The names of policies' properties that some source contains; null if they aren't known. */
        private @Nullable Set<ConfigurationPropertyName> present;

        private boolean read;

        PolicyBindHandler(BindHandler parent) {
            super(new OverridesBinding(parent));
        }

        /** Returns null, so that the binder skips an absent property. */
        @Override
        public <T> @Nullable Bindable<T> onStart(
                ConfigurationPropertyName name, Bindable<T> target, BindContext context) {
            Bindable<T> start = super.onStart(name, target, context);
            boolean isOfPolicy = name.getNumberOfElements() == ELEMENTS && POLICIES.isAncestorOf(name);
            return isOfPolicy && isAbsent(name, context) ? null : start;
        }

        private boolean isAbsent(ConfigurationPropertyName name, BindContext context) {
            if (!read) {
                present = present(context);
                read = true;
            }
            return present != null && !present.contains(name);
        }

        /** Returns null if a source doesn't list its names, or if environment variables, which have several names, set policies. */
        private static @Nullable Set<ConfigurationPropertyName> present(BindContext context) {
            Set<ConfigurationPropertyName> present = new HashSet<>();
            for (ConfigurationPropertySource source : context.getSources()) {
                if (source.containsDescendantOf(POLICIES) == ConfigurationPropertyState.ABSENT) {
                    continue;
                }
                if (source.getUnderlyingSource() instanceof SystemEnvironmentPropertySource
                        || !(source instanceof IterableConfigurationPropertySource listed)) {
                    return null;
                }
                ConfigurationPropertyName last = POLICIES;
                for (ConfigurationPropertyName name : listed) {
                    if (name.getNumberOfElements() >= ELEMENTS
                            && POLICIES.isAncestorOf(name)
                            && (last == POLICIES || !last.equals(name) && !last.isAncestorOf(name))) {
                        last = name.chop(ELEMENTS);
                        present.add(last);
                    }
                }
            }
            return present;
        }
    }
}
