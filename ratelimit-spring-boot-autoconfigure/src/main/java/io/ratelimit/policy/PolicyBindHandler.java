package io.ratelimit.policy;

import io.ratelimit.policy.RateLimitProperties.OverrideEntry;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry.Text;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.AbstractBindHandler;
import org.springframework.boot.context.properties.bind.BindContext;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/**
 * Binds policies in less time than Spring's binder, which walks through all names of each source for each list or map.
 *
 * <ul>
 *   <li>The handler skips the properties of a policy that no source contains. A policy has few of its many properties.
 *   <li>It reads the keys of overrides by look-ups. Each override has a list of keys, so that the time of Spring's binder would
 *       grow with the square of the overrides.
 * </ul>
 */
final class PolicyBindHandler extends AbstractBindHandler {

    private static final ConfigurationPropertyName POLICIES =
            ConfigurationPropertyName.of(RateLimitProperties.PREFIX + ".policies");

    /** The number of elements in the name of a policy's property. */
    private static final int ELEMENTS = 4;

    private static final List<String> LIMITS = PolicyNames.namesOf(OverrideEntry.class).stream()
            .filter(name -> !name.equals("keys"))
            .toList();

    /** The names of policies' properties, and of what is below, that some source contains; null if they aren't known. */
    private @Nullable Set<ConfigurationPropertyName> present;

    private boolean read;
    private @Nullable List<List<Text>> keys;

    PolicyBindHandler(BindHandler parent) {
        super(parent);
    }

    /** Returns null, so that the binder skips an absent property and keys that were read, or what the binder is to read. */
    @Override
    public <T> @Nullable Bindable<T> onStart(ConfigurationPropertyName name, Bindable<T> target, BindContext context) {
        Bindable<T> start = super.onStart(name, target, context);
        boolean isOfPolicy = name.getNumberOfElements() >= ELEMENTS && POLICIES.isAncestorOf(name);
        return isOfPolicy && (isAbsent(name, context) || isReadAsKeys(name, target, context)) ? null : start;
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

    /** Returns whether the property is {@code ratelimit.policies.NAME.overrides[N].keys}, whose texts are then read. */
    private boolean isReadAsKeys(ConfigurationPropertyName name, Bindable<?> target, BindContext context) {
        if (name.getNumberOfElements() != 6
                || !name.getLastElement(Form.UNIFORM).equals("keys")
                || !name.getElement(3, Form.UNIFORM).equals("overrides")
                || !hasLimit(name.getParent(), context)) {
            return false;
        }
        List<List<Text>> texts = new ArrayList<>();
        for (var key = readKey(name, 0, context); !key.isEmpty(); key = readKey(name, texts.size(), context)) {
            texts.add(key);
        }
        if (texts.isEmpty()) {
            return false;
        }
        super.onSuccess(name, target, context, texts);
        keys = texts;
        return true;
    }

    /** An override of nothing but its keys would be none at all without them, and the binder could not report it. */
    private static boolean hasLimit(ConfigurationPropertyName override, BindContext context) {
        return LIMITS.stream().anyMatch(limit -> exists(override.append(limit), context));
    }

    /** Returns the text of a key, or the texts of its parts; none if there is no such key. */
    private List<Text> readKey(ConfigurationPropertyName keys, int index, BindContext context) {
        ConfigurationPropertyName key = keys.append("[" + index + "]");
        if (exists(key, context)) {
            return List.of(readText(key, context));
        }
        List<Text> texts = new ArrayList<>();
        for (var part = key.append("[0]"); exists(part, context); part = key.append("[" + texts.size() + "]")) {
            texts.add(readText(part, context));
        }
        return texts;
    }

    /** Notifies the parents, one of which reports the names that nothing has read. */
    private Text readText(ConfigurationPropertyName name, BindContext context) {
        Bindable<Text> target = Bindable.of(Text.class);
        Text text = context.getBinder().bind(name, target).get();
        super.onSuccess(name, target, context, text);
        return text;
    }

    /** The list of overrides comes from one source, which is then the only one of the context. */
    private static boolean exists(ConfigurationPropertyName name, BindContext context) {
        for (var source : context.getSources()) {
            if (source.getConfigurationProperty(name) != null) {
                return true;
            }
        }
        return false;
    }

    @Override
    public @Nullable Object onSuccess(
            ConfigurationPropertyName name, Bindable<?> target, BindContext context, Object result) {
        Object bound = super.onSuccess(name, target, context, result);
        List<List<Text>> texts = keys;
        if (texts == null || !(bound instanceof OverrideEntry entry)) {
            return bound;
        }
        keys = null;
        return new OverrideEntry(texts, entry.rate(), entry.capacity(), entry.inFlight(), entry.mode());
    }
}
