package io.ratelimit.policy;

import io.ratelimit.policy.RateLimitProperties.OverrideEntry;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.policy.RateLimitProperties.Tier;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.core.ResolvableType;
import org.springframework.util.ClassUtils;

/** A property below {@code ratelimit} that doesn't exist, and the place of the name that is wrong. */
final class UnknownName {

    private final ConfigurationProperty property;
    private final Class<?> owner;
    private final int index;

    UnknownName(ConfigurationProperty property) {
        this.property = property;
        ConfigurationPropertyName name = property.getName();
        Class<?> type = RateLimitProperties.class;
        int at = 1;
        while (at < name.getNumberOfElements()) {
            ResolvableType component = component(type, element(name, at));
            int next = at + (isCollection(component) ? 2 : 1);
            ResolvableType value =
                    isCollection(component) ? component.getGeneric(component.getGenerics().length - 1) : component;
            if (!isGroup(value.toClass()) || next >= name.getNumberOfElements()) {
                break;
            }
            type = value.toClass();
            at = next;
        }
        this.owner = type;
        this.index = at;
    }

    /** Returns whether a type consists of properties; the other records of ours are read from a text. */
    private static boolean isGroup(Class<?> type) {
        return type.isRecord()
                && (type.getEnclosingClass() == RateLimitProperties.class
                        || BackendProperties.class.isAssignableFrom(type))
                && !ClassUtils.hasMethod(type, "of", String.class);
    }

    private static boolean isCollection(ResolvableType type) {
        return Map.class.isAssignableFrom(type.toClass()) || Collection.class.isAssignableFrom(type.toClass());
    }

    private static ResolvableType component(Class<?> type, String name) {
        int index = PolicyNames.namesOf(type).indexOf(name);
        return index < 0
                ? ResolvableType.NONE
                : ResolvableType.forType(type.getRecordComponents()[index].getGenericType());
    }

    private static String element(ConfigurationPropertyName name, int index) {
        return name.getElement(index, Form.ORIGINAL);
    }

    /** Returns the name as it is written, its value, and where it is. */
    String describe() {
        return "\n    "
                + (PolicyNames.hasOtherPrefix(property) ? PolicyNames.written(property) : property.getName())
                + ", with the value \"" + property.getValue() + "\": " + property.getOrigin();
    }

    /** Returns what to type: the nearest property, or else the list of all. */
    List<String> actions() {
        List<String> actions = new ArrayList<>();
        ConfigurationPropertyName name = property.getName();
        List<String> names = PolicyNames.namesOf(owner);
        String nearest = NearestName.of(element(name, index), names);
        if (nearest != null && !PolicyNames.hasOtherPrefix(property)) {
            ConfigurationPropertyName meant = name.chop(index).append(nearest);
            actions.add("Write '" + meant + "' in place of '" + name.chop(index + 1) + "'.");
        } else {
            actions.add("Correct or remove the property.");
            actions.add("The properties " + place() + " are: "
                    + String.join(", ", names.stream().sorted().toList()) + ".");
        }
        if (PolicyNames.hasOtherPrefix(property)) {
            actions.add(PolicyNames.ONE_PREFIX
                    + "if the property is not meant for this library, rename it, for example to 'app."
                    + PolicyNames.written(property) + "'.");
        }
        return actions;
    }

    private String place() {
        if (owner == Policy.class) {
            return "of a policy, whose name has no dot,";
        }
        return owner == OverrideEntry.class
                ? "of an override"
                : owner == Tier.class
                        ? "of a tier"
                        : "below '" + property.getName().chop(index) + "'";
    }
}
