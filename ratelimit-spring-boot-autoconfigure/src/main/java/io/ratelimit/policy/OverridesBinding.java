package io.ratelimit.policy;

import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry.Text;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.AbstractBindHandler;
import org.springframework.boot.context.properties.bind.BindContext;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.core.ResolvableType;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/**
 * Reads a list of overrides in one pass over the names of its source. Spring's binder walks through all names of a file for
 * each list that it binds, and each override has such a list, so that the time would grow with the square of the overrides.
 * A list of another form, such as one with a gap, is left to the binder and its messages.
 */
final class OverridesBinding extends AbstractBindHandler {

    private static final ConfigurationPropertyName POLICIES =
            ConfigurationPropertyName.of(RateLimitProperties.PREFIX + ".policies");

    /** The positions of elements in the name {@code ratelimit.policies.NAME.overrides[I].keys[K][T]}. */
    private static final int OVERRIDE = 4, PROPERTY = 5, KEY = 6, TEXT = 7;

    private static final Pattern INDEX = Pattern.compile("0|[1-9][0-9]{0,8}");

    private static final List<String> PROPERTIES = PolicyNames.namesOf(OverrideEntry.class);

    /** The names below a list, one of which it has if it isn't empty. */
    private static final List<ConfigurationPropertyName> FIRST = Stream.concat(
                    Stream.of("[0]", "[0].keys[0]", "[0].keys[0][0]"),
                    PROPERTIES.stream().map(property -> "[0]." + property))
            .map(ConfigurationPropertyName::of)
            .toList();

    OverridesBinding(BindHandler parent) {
        super(parent);
    }

    @Override
    public <T> @Nullable Bindable<T> onStart(ConfigurationPropertyName name, Bindable<T> target, BindContext context) {
        Bindable<T> start = super.onStart(name, target, context);
        IterableConfigurationPropertySource source = isOverrides(name) ? source(name, context) : null;
        List<Names> overrides = source == null ? null : list(name, source);
        if (source == null || overrides == null) {
            return start;
        }
        throw new Result(new Reading(source, context).read(name, target, overrides));
    }

    /** Notes the rest of a list that the binder has read, such as an empty one or that of environment variables. */
    @Override
    public @Nullable Object onSuccess(
            ConfigurationPropertyName name, Bindable<?> target, BindContext context, Object result) {
        Object read = super.onSuccess(name, target, context, result);
        ConfigurationPropertySource source = isOverrides(name) ? first(name, context) : null;
        if (source != null) {
            noteReplaced(name, source, context);
            if (result instanceof List<?> list && list.isEmpty()) {
                super.onSuccess(name.append("[0]"), Reading.ENTRY, context, result);
            }
        }
        return read;
    }

    /** Returns the list that was read. A handler can replace a failure by a value, but not the start of a binding. */
    @Override
    public @Nullable Object onFailure(
            ConfigurationPropertyName name, Bindable<?> target, BindContext context, Exception error) throws Exception {
        return error instanceof Result result ? result.overrides : super.onFailure(name, target, context, error);
    }

    private static boolean isOverrides(ConfigurationPropertyName name) {
        return name.getNumberOfElements() == OVERRIDE
                && name.getLastElement(Form.UNIFORM).equals("overrides")
                && POLICIES.isAncestorOf(name);
    }

    /**
     * Returns the first source of the list, which alone counts; null if it has the list as one text, doesn't list its names, or
     * has several for each.
     */
    private static @Nullable IterableConfigurationPropertySource source(
            ConfigurationPropertyName name, BindContext context) {
        return first(name, context) instanceof IterableConfigurationPropertySource listed
                        && listed.getConfigurationProperty(name) == null
                        && !(listed.getUnderlyingSource() instanceof SystemEnvironmentPropertySource)
                ? listed
                : null;
    }

    /**
     * Returns the first source of the list; null if there is none. A source that doesn't list its names, such as JNDI, has a
     * list if it has one of the first names.
     */
    private static @Nullable ConfigurationPropertySource first(ConfigurationPropertyName name, BindContext context) {
        for (ConfigurationPropertySource source : context.getSources()) {
            boolean mayHave = source.containsDescendantOf(name) != ConfigurationPropertyState.ABSENT;
            if (source.getConfigurationProperty(name) != null
                    || mayHave && source instanceof IterableConfigurationPropertySource
                    || mayHave
                            && FIRST.stream()
                                    .anyMatch(first -> source.getConfigurationProperty(name.append(first)) != null)) {
                return source;
            }
        }
        return null;
    }

    /** Notes the names of longer lists in later sources as read, since the list of a source replaces the whole of them. */
    private void noteReplaced(ConfigurationPropertyName list, ConfigurationPropertySource source, BindContext context) {
        ConfigurationPropertyName first = list.append("[0]");
        PROPERTIES.forEach(property -> super.onStart(first.append(property), Reading.ENTRY, context));
        boolean later = false;
        for (ConfigurationPropertySource candidate : context.getSources()) {
            if (later && candidate instanceof IterableConfigurationPropertySource listed) {
                for (ConfigurationPropertyName name : listed) {
                    if (list.isAncestorOf(name) && isKey(name)) {
                        super.onSuccess(name.getParent(), Reading.KEYS, context, List.of());
                    }
                }
            }
            later |= candidate == source;
        }
    }

    /** Returns the names of each override; null if the list has another form. */
    private static @Nullable List<Names> list(
            ConfigurationPropertyName list, IterableConfigurationPropertySource source) {
        SortedMap<Integer, Names> overrides = new TreeMap<>();
        for (ConfigurationPropertyName name : source) {
            if (list.isAncestorOf(name)) {
                Integer index = index(name, OVERRIDE);
                if (index == null
                        || !overrides.computeIfAbsent(index, i -> new Names()).add(name)) {
                    return null;
                }
            }
        }
        return !overrides.isEmpty()
                        && isComplete(overrides)
                        && overrides.values().stream().allMatch(Names::areComplete)
                ? List.copyOf(overrides.values())
                : null;
    }

    /** Returns an index; null if there is none, or if it is written in a form that the binder doesn't look up. */
    private static @Nullable Integer index(ConfigurationPropertyName name, int position) {
        String text = name.isNumericIndex(position) ? name.getElement(position, Form.ORIGINAL) : "";
        return INDEX.matcher(text).matches() ? Integer.valueOf(text) : null;
    }

    /** Returns whether a name is that of a key, or of a key's part. */
    private static boolean isKey(ConfigurationPropertyName name) {
        int elements = name.getNumberOfElements();
        return (elements == KEY + 1 || elements == TEXT + 1)
                && name.isNumericIndex(OVERRIDE)
                && name.getElement(PROPERTY, Form.UNIFORM).equals("keys")
                && name.isNumericIndex(KEY)
                && name.isLastElementIndexed();
    }

    private static boolean isComplete(SortedMap<Integer, ?> list) {
        return list.isEmpty() || list.firstKey() == 0 && list.lastKey() == list.size() - 1;
    }

    /** The names of an override's properties, and those of the texts of its keys. */
    private record Names(
            Map<String, ConfigurationPropertyName> properties,
            SortedMap<Integer, SortedMap<Integer, ConfigurationPropertyName>> keys) {

        Names() {
            this(new HashMap<>(), new TreeMap<>());
        }

        /** Returns false if the name has another form. A name whose last element is unknown is reported after binding. */
        boolean add(ConfigurationPropertyName name) {
            int elements = name.getNumberOfElements();
            if (elements == PROPERTY + 1) {
                properties.put(name.getElement(PROPERTY, Form.UNIFORM), name);
                return true;
            }
            Integer key = elements > KEY && elements <= TEXT + 1 ? index(name, KEY) : null;
            Integer text = elements > TEXT ? index(name, TEXT) : Integer.valueOf(0);
            return key != null
                    && text != null
                    && name.getElement(PROPERTY, Form.UNIFORM).equals("keys")
                    && keys.computeIfAbsent(key, k -> new TreeMap<>()).put(text, name) == null;
        }

        boolean areComplete() {
            return (keys.isEmpty() || !properties.containsKey("keys"))
                    && isComplete(keys)
                    && keys.values().stream().allMatch(OverridesBinding::isComplete);
        }
    }

    /** The overrides that were read. */
    @SuppressWarnings("serial")
    private static final class Result extends RuntimeException {

        private final List<OverrideEntry> overrides;

        Result(List<OverrideEntry> overrides) {
            super(null, null, false, false);
            this.overrides = overrides;
        }
    }

    /** One reading, which notifies the parents: one of them reports the names that nothing has read. */
    private final class Reading {

        private static final Bindable<List<List<Text>>> KEYS = Bindable.of(ResolvableType.forClassWithGenerics(
                List.class, ResolvableType.forClassWithGenerics(List.class, Text.class)));
        private static final Bindable<Text> TEXT_OF_KEY = Bindable.of(Text.class);
        private static final Bindable<Rate> RATE = Bindable.of(Rate.class);
        private static final Bindable<Long> CAPACITY = Bindable.of(Long.class);
        private static final Bindable<Integer> IN_FLIGHT = Bindable.of(Integer.class);
        private static final Bindable<Mode> MODE = Bindable.of(Mode.class);
        private static final Bindable<OverrideEntry> ENTRY = Bindable.of(OverrideEntry.class);

        private final ConfigurationPropertySource source;
        private final BindContext context;

        Reading(ConfigurationPropertySource source, BindContext context) {
            this.source = source;
            this.context = context;
        }

        List<OverrideEntry> read(ConfigurationPropertyName list, Bindable<?> target, List<Names> overrides) {
            noteReplaced(list, source, context);
            List<OverrideEntry> entries = new ArrayList<>();
            for (Names names : overrides) {
                ConfigurationPropertyName name = list.append("[" + entries.size() + "]");
                OverrideEntry entry = read(name, names);
                noteRead(name, ENTRY, entry);
                entries.add(entry);
            }
            noteRead(list, target, entries);
            return entries;
        }

        private OverrideEntry read(ConfigurationPropertyName name, Names names) {
            Map<String, ConfigurationPropertyName> properties = names.properties();
            List<List<Text>> keys = value(properties.get("keys"), KEYS, raw -> null);
            return new OverrideEntry(
                    keys == null ? keys(name, names) : keys,
                    value(properties.get("rate"), RATE, OverridesBinding::rate),
                    value(
                            properties.get("capacity"),
                            CAPACITY,
                            raw -> raw instanceof Integer number ? number.longValue() : null),
                    value(properties.get("inflight"), IN_FLIGHT, raw -> raw instanceof Integer number ? number : null),
                    value(properties.get("mode"), MODE, raw -> null));
        }

        private List<List<Text>> keys(ConfigurationPropertyName override, Names names) {
            List<List<Text>> keys = new ArrayList<>();
            for (SortedMap<Integer, ConfigurationPropertyName> key :
                    names.keys().values()) {
                List<Text> texts = new ArrayList<>();
                for (ConfigurationPropertyName name : key.values()) {
                    Text text = value(name, TEXT_OF_KEY, OverridesBinding::text);
                    if (text == null) { // a map may contain names without a value: the binder's lists end there too
                        noteRead(name.getParent(), KEYS, keys);
                        break;
                    }
                    texts.add(text);
                }
                if (texts.isEmpty()) {
                    break;
                }
                keys.add(texts);
            }
            if (!keys.isEmpty()) {
                noteRead(override.append("keys"), KEYS, keys);
            }
            return keys;
        }

        /** Returns a value: as it is in the source if that is enough, or bound, with the binder's failures. */
        private <T> @Nullable T value(
                @Nullable ConfigurationPropertyName name, Bindable<T> target, Function<Object, @Nullable T> plain) {
            ConfigurationProperty property = name == null ? null : source.getConfigurationProperty(name);
            if (name == null || property == null) {
                return null;
            }
            T read = plain.apply(property.getValue());
            T value = read == null ? context.getBinder().bind(name, target).orElse(null) : read;
            if (value != null) {
                noteRead(name, target, value);
            }
            return value;
        }

        private void noteRead(ConfigurationPropertyName name, Bindable<?> target, Object value) {
            OverridesBinding.super.onSuccess(name, target, context, value);
        }
    }

    private static @Nullable Text text(Object raw) {
        return isText(raw) ? new Text(raw.toString()) : null;
    }

    private static @Nullable Rate rate(Object raw) {
        try {
            return isText(raw) ? Rate.of(raw.toString()) : null;
        } catch (IllegalArgumentException reportedByTheBinder) {
            return null;
        }
    }

    private static boolean isText(Object raw) {
        return raw instanceof String text && !text.isEmpty() && !text.contains("${");
    }
}
