package io.ratelimit.autoconfigure;

import io.ratelimit.key.KeyPart;
import io.ratelimit.key.KeyResolver;
import io.ratelimit.key.RequestTier;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ListableBeanFactory;

/** Finds the beans that the keys of policies name. */
public final class KeyBeans {

    private final ListableBeanFactory beans;

    public KeyBeans(ListableBeanFactory beans) {
        this.beans = beans;
    }

    /**
     * The parts of a key with their beans.
     *
     * @param property of the key
     * @throws RateLimitConfigurationException if there is no such bean, or it is no {@link KeyResolver}
     */
    public List<KeyPart> resolve(String property, List<KeyPart> key) {
        List<KeyPart> resolved = new ArrayList<>(key.size());
        for (KeyPart part : key) {
            resolved.add(part.withBean(name -> find(property, name)));
        }
        return resolved;
    }

    /**
     * What tells which tier a request belongs to, with its bean; null for null.
     *
     * @param property of the tier
     * @throws RateLimitConfigurationException if there is no such bean, or it is no {@link KeyResolver}
     */
    public @Nullable RequestTier resolve(String property, @Nullable RequestTier tier) {
        return tier == null ? null : tier.withBean(name -> find(property, name));
    }

    private KeyResolver find(String property, String name) {
        if (!beans.containsBean(name)) {
            throw failure(property, "there is no bean '" + name + "'");
        }
        if (beans.getBean(name) instanceof KeyResolver resolver) {
            return resolver;
        }
        throw failure(property, "the bean '" + name + "' is no KeyResolver");
    }

    private RateLimitConfigurationException failure(String property, String what) {
        List<String> names = List.of(BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, KeyResolver.class));
        return new RateLimitConfigurationException(
                "'" + property + "' names a bean, but " + what + ".",
                names.isEmpty()
                        ? "Declare a bean of the type io.ratelimit.key.KeyResolver, and name it."
                        : "Name one of the beans of the type io.ratelimit.key.KeyResolver: " + String.join(", ", names)
                                + ".",
                property);
    }
}
