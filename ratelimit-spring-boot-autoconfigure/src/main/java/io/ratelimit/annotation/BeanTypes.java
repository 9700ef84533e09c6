package io.ratelimit.annotation;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.TargetSource;
import org.springframework.aop.framework.Advised;
import org.springframework.aop.scope.ScopedObject;
import org.springframework.aop.scope.ScopedProxyUtils;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.util.ClassUtils;

/**
 * The beans that may have {@link RateLimited} methods, by their definitions, with the classes behind their proxies.
 *
 * @param factory where they are
 */
record BeanTypes(ConfigurableListableBeanFactory factory) {

    private static final Log logger = LogFactory.getLog(BeanTypes.class);

    /**
     * A bean.
     *
     * @param type the class whose methods run in the end, behind all proxies, as far as it is known
     * @param isThere whether the bean has been made; a lazy one is made when it is asked for
     * @param isAdvised whether it has a proxy that holds calls to their limits
     */
    record BeanType(String name, Class<?> type, boolean isThere, boolean isAdvised) {}

    List<BeanType> candidates() {
        List<BeanType> candidates = new ArrayList<>();
        for (Iterator<String> names = factory.getBeanNamesIterator(); names.hasNext(); ) {
            BeanType bean = read(names.next());
            if (bean != null && RateLimitedSearch.isCandidate(bean.type)) {
                candidates.add(bean);
            }
        }
        return candidates;
    }

    private @Nullable BeanType read(String name) {
        Class<?> type = definedType(name);
        Object bean = factory.containsSingleton(name) ? factory.getSingleton(name) : null;
        if (bean instanceof FactoryBean<?>) {
            bean = type != null && RateLimitedSearch.isCandidate(type) && factory.isSingleton(name)
                    ? factory.getBean(name)
                    : null;
        }
        if (bean instanceof ScopedObject) {
            return null; // its target is a bean of its own
        }
        return bean != null
                ? of(name, bean)
                : type != null ? new BeanType(name, ClassUtils.getUserClass(type), false, false) : null;
    }

    private @Nullable Class<?> definedType(String name) {
        try {
            boolean isAbstract = factory.containsBeanDefinition(name)
                    && factory.getMergedBeanDefinition(name).isAbstract();
            return isAbstract ? null : factory.getType(name, false);
        } catch (RuntimeException | LinkageError unknown) { // such as a lazy bean of a class that is not there
            logger.debug("The type of the bean '" + name + "' can't be told", unknown);
            return null;
        }
    }

    /** Behind the proxy that holds calls to limits, or, where there is none, behind all proxies. */
    private static BeanType of(String name, Object bean) {
        Object current = bean;
        while (current instanceof Advised proxy) {
            Object target = target(proxy);
            Class<?> type = target != null ? target.getClass() : proxy.getTargetClass();
            boolean isAdvised = List.of(proxy.getAdvisors()).stream().anyMatch(RateLimitedAdvisor.class::isInstance);
            if (isAdvised || target == null) {
                return new BeanType(name, type == null ? bean.getClass() : type, true, isAdvised);
            }
            current = target;
        }
        return new BeanType(name, ClassUtils.getUserClass(current), true, false);
    }

    private static @Nullable Object target(Advised proxy) {
        TargetSource source = proxy.getTargetSource();
        try {
            return source.isStatic() ? source.getTarget() : null;
        } catch (Exception unknown) {
            return null;
        }
    }

    /**
     * The name of the bean of a class.
     *
     * @throws IllegalArgumentException if there are several; the message is a sentence
     */
    String nameOf(Class<?> type) {
        List<String> names = candidates().stream()
                .filter(bean -> bean.type == type)
                .map(bean -> withoutScope(bean.name))
                .distinct()
                .toList();
        if (names.size() > 1) {
            throw new IllegalArgumentException("there are several beans of the class " + type.getName() + ": "
                    + String.join(", ", names) + "; the limit can't be named for one of them");
        }
        return names.isEmpty() ? Objects.requireNonNull(ClassUtils.getShortNameAsProperty(type)) : names.get(0);
    }

    private static String withoutScope(String name) {
        return ScopedProxyUtils.isScopedTarget(name) ? ScopedProxyUtils.getOriginalBeanName(name) : name;
    }
}
