package io.ratelimit.autoconfigure;

import io.ratelimit.key.KeyPart;
import io.ratelimit.key.KeyResolver;
import java.util.List;
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
        return key.stream()
                .map(part -> part.withBean(name -> bean(property, name)))
                .toList();
    }

    private KeyResolver bean(String property, String name) {
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
                "'" + property + "' has a part of a bean, but " + what + ".",
                names.isEmpty()
                        ? "Declare a bean of the type io.ratelimit.key.KeyResolver, and name it."
                        : "Name one of the beans of the type io.ratelimit.key.KeyResolver: " + String.join(", ", names)
                                + ".",
                property);
    }
}
