package io.ratelimit.policy;

import io.ratelimit.policy.RateLimitProperties.OverrideEntry;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry.Text;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.AbstractBindHandler;
import org.springframework.boot.context.properties.bind.BindContext;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;

/**
 * Reads the keys of overrides by look-ups. Spring's binder walks through all names of a file for each list that it binds,
 * and each override has such a list, so that the time would grow with the square of the overrides.
 */
final class OverrideKeysBinding extends AbstractBindHandler {

    private static final ConfigurationPropertyName POLICIES =
            ConfigurationPropertyName.of(RateLimitProperties.PREFIX + ".policies");
    private static final List<String> LIMITS = PolicyNames.namesOf(OverrideEntry.class).stream()
            .filter(name -> !name.equals("keys"))
            .toList();

    private @Nullable List<List<Text>> keys;

    OverrideKeysBinding(BindHandler parent) {
        super(parent);
    }

    /** Returns null, so that the binder skips the keys that were read, or what the binder is to read. */
    @Override
    public <T> @Nullable Bindable<T> onStart(ConfigurationPropertyName name, Bindable<T> target, BindContext context) {
        Bindable<T> start = super.onStart(name, target, context);
        if (!isKeysOfOverride(name) || !hasLimit(name.getParent(), context)) {
            return start;
        }
        List<List<Text>> read = readKeys(name, context);
        if (read.isEmpty()) {
            return start;
        }
        super.onSuccess(name, target, context, read);
        keys = read;
        return null;
    }

    /** Whether the name is {@code ratelimit.policies.NAME.overrides[N].keys}. */
    private static boolean isKeysOfOverride(ConfigurationPropertyName name) {
        return name.getNumberOfElements() == 6
                && name.getLastElement(Form.UNIFORM).equals("keys")
                && name.getElement(3, Form.UNIFORM).equals("overrides")
                && POLICIES.isAncestorOf(name);
    }

    /** An override of nothing but its keys would be none at all without them, and the binder could not report it. */
    private static boolean hasLimit(ConfigurationPropertyName override, BindContext context) {
        return LIMITS.stream().anyMatch(limit -> exists(override.append(limit), context));
    }

    private List<List<Text>> readKeys(ConfigurationPropertyName name, BindContext context) {
        List<List<Text>> read = new ArrayList<>();
        while (true) {
            ConfigurationPropertyName key = name.append("[" + read.size() + "]");
            List<Text> texts = exists(key, context) ? List.of(readText(key, context)) : readTexts(key, context);
            if (texts.isEmpty()) {
                return read;
            }
            read.add(texts);
        }
    }

    private List<Text> readTexts(ConfigurationPropertyName key, BindContext context) {
        List<Text> texts = new ArrayList<>();
        while (true) {
            ConfigurationPropertyName text = key.append("[" + texts.size() + "]");
            if (!exists(text, context)) {
                return texts;
            }
            texts.add(readText(text, context));
        }
    }

    /** Tells the parents, one of which reports the names that nothing has read. */
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
        List<List<Text>> read = keys;
        if (read == null || !(bound instanceof OverrideEntry entry)) {
            return bound;
        }
        keys = null;
        return new OverrideEntry(read, entry.rate(), entry.capacity(), entry.inFlight(), entry.mode());
    }
}
