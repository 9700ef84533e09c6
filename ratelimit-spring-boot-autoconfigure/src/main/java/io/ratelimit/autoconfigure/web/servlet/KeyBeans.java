package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.autoconfigure.RateLimitConfigurationException;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.KeyResolver;
import java.util.List;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ListableBeanFactory;

/** Finds the beans that the keys of policies name. */
final class KeyBeans {

    private final ListableBeanFactory beans;

    KeyBeans(ListableBeanFactory beans) {
        this.beans = beans;
    }

    /**
     * The parts of a key with their beans.
     *
     * @param property of the key
     * @throws RateLimitConfigurationException if there is no such bean, or it is no {@link KeyResolver}
     */
    List<KeyPart> resolve(String property, List<KeyPart> key) {
        return key.stream()
                .map(part -> part.withBean(name -> find(property, name)))
                .toList();
    }

    /**
     * The bean of a name.
     *
     * @param property that names it
     * @throws RateLimitConfigurationException if there is no such bean, or it is no {@link KeyResolver}
     */
    KeyResolver find(String property, String name) {
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
