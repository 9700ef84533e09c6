package io.ratelimit.policy;

import java.util.HashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.AbstractBindHandler;
import org.springframework.boot.context.properties.bind.BindContext;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/**
 * Binds policies in less time than Spring's binder, which walks through all names of each source for each list or map. A
 * policy has few of its many properties, so the handler skips those that no source contains.
 */
final class PolicyBindHandler extends AbstractBindHandler {

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
    public <T> @Nullable Bindable<T> onStart(ConfigurationPropertyName name, Bindable<T> target, BindContext context) {
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
