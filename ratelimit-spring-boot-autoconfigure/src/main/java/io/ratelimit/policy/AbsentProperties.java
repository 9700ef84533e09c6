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
 * Skips the properties of a policy that no source contains. A policy has few of its many properties, and Spring's binder looks
 * for each of them in all sources; for a list or a map it walks through all names of each source.
 */
final class AbsentProperties extends AbstractBindHandler {

    private static final ConfigurationPropertyName POLICIES =
            ConfigurationPropertyName.of(RateLimitProperties.PREFIX + ".policies");

    /** The number of elements in the name of a policy's property. */
    private static final int ELEMENTS = 4;

    /** The names of policies' properties, and of what is below, that some source contains; null if they aren't known. */
    private @Nullable Set<ConfigurationPropertyName> present;

    private boolean read;

    AbsentProperties(BindHandler parent) {
        super(parent);
    }

    /** Returns null, so that the binder skips an absent property. */
    @Override
    public <T> @Nullable Bindable<T> onStart(ConfigurationPropertyName name, Bindable<T> target, BindContext context) {
        Bindable<T> start = super.onStart(name, target, context);
        if (name.getNumberOfElements() < ELEMENTS || !POLICIES.isAncestorOf(name)) {
            return start;
        }
        if (!read) {
            present = present(context);
            read = true;
        }
        return present == null || present.contains(name) ? start : null;
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
            for (ConfigurationPropertyName name : listed) {
                if (POLICIES.isAncestorOf(name)) {
                    addWithParents(name, present);
                }
            }
        }
        return present;
    }

    private static void addWithParents(ConfigurationPropertyName name, Set<ConfigurationPropertyName> present) {
        ConfigurationPropertyName up = name;
        while (up.getNumberOfElements() >= ELEMENTS && present.add(up)) {
            up = up.getParent();
        }
    }
}
