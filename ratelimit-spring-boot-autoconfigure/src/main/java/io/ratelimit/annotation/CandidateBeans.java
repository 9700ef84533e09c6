package io.ratelimit.annotation;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
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

/** The beans of a factory that may have {@link RateLimited} methods, with the classes behind their proxies. */
record CandidateBeans(ConfigurableListableBeanFactory factory) {

    private static final Log logger = LogFactory.getLog(CandidateBeans.class);

    /**
     * @param type the class whose methods finally run, behind all proxies, as far as it is known
     * @param isCreated whether the bean exists already; a lazy bean is created at its first use
     * @param isAdvised whether the bean has a proxy that enforces limits
     */
    record CandidateBean(String name, Class<?> type, boolean isCreated, boolean isAdvised) {}

    List<CandidateBean> candidates() {
        List<CandidateBean> candidates = new ArrayList<>();
        for (Iterator<String> names = factory.getBeanNamesIterator(); names.hasNext(); ) {
            CandidateBean bean = read(names.next());
            if (bean != null && RateLimitedScanner.isCandidate(bean.type)) {
                candidates.add(bean);
            }
        }
        return candidates;
    }

    private @Nullable CandidateBean read(String name) {
        Class<?> type = definedType(name);
        Object bean = factory.containsSingleton(name) ? factory.getSingleton(name) : null;
        if (bean instanceof FactoryBean<?>) {
            bean = type != null && RateLimitedScanner.isCandidate(type) && factory.isSingleton(name)
                    ? factory.getBean(name)
                    : null;
        }
        if (bean instanceof ScopedObject) {
            return null; // the target is a bean with a name of its own
        }
        return bean != null
                ? read(name, bean)
                : type != null ? new CandidateBean(name, ClassUtils.getUserClass(type), false, false) : null;
    }

    private @Nullable Class<?> definedType(String name) {
        try {
            boolean isAbstract = factory.containsBeanDefinition(name)
                    && factory.getMergedBeanDefinition(name).isAbstract();
            return isAbstract ? null : factory.getType(name, false);
        } catch (RuntimeException | LinkageError unknown) { // such as a lazy bean whose class is missing
            logger.debug("The type of the bean '" + name + "' can't be determined", unknown);
            return null;
        }
    }

    /** Returns the class behind the proxy that enforces limits. Without one, returns the class behind all proxies. */
    private static CandidateBean read(String name, Object bean) {
        Object current = bean;
        while (current instanceof Advised proxy) {
            Object target = target(proxy);
            Class<?> type = target != null ? target.getClass() : proxy.getTargetClass();
            boolean isAdvised = Stream.of(proxy.getAdvisors()).anyMatch(RateLimitedAdvisor.class::isInstance);
            if (isAdvised || target == null) {
                return new CandidateBean(name, type == null ? bean.getClass() : type, true, isAdvised);
            }
            current = target;
        }
        return new CandidateBean(name, ClassUtils.getUserClass(current), true, false);
    }

    private static @Nullable Object target(Advised proxy) {
        TargetSource source = proxy.getTargetSource();
        try {
            return source.isStatic() ? source.getTarget() : null;
        } catch (Exception unknown) {
            return null;
        }
    }

    /** @throws IllegalArgumentException if the class has several beans */
    String nameOf(Class<?> type) {
        List<String> names = candidates().stream()
                .filter(bean -> bean.type == type)
                .map(bean -> withoutScope(bean.name))
                .distinct()
                .toList();
        if (names.size() > 1) {
            throw new IllegalArgumentException("the class " + type.getName() + " has several beans ("
                    + String.join(", ", names) + "), so the limit can't be named after one of them");
        }
        return names.isEmpty() ? Objects.requireNonNull(ClassUtils.getShortNameAsProperty(type)) : names.get(0);
    }

    private static String withoutScope(String name) {
        return ScopedProxyUtils.isScopedTarget(name) ? ScopedProxyUtils.getOriginalBeanName(name) : name;
    }
}
