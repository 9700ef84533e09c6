package io.ratelimit.annotation;

import io.ratelimit.annotation.BeanTypes.BeanType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * Reads all annotations at the start, also those of beans that are made later, and stops the start where one is wrong or
 * would not be enforced.
 */
public final class RateLimitedCheck {

    private final RateLimitedOperations operations;

    public RateLimitedCheck(RateLimitedOperations operations) {
        this.operations = operations;
    }

    /**
     * @throws InvalidRateLimitedException if an annotation is wrong or would not be enforced
     */
    public void check() {
        for (BeanType candidate : operations.beans().candidates()) {
            check(candidate);
        }
    }

    private void check(BeanType bean) {
        List<Method> methods = methods(bean.type());
        methods.forEach(method -> checkCanBeProxied(method, bean.type()));
        List<Method> limited = methods.stream()
                .filter(method -> !RateLimitedSearch.find(method, bean.type()).isEmpty())
                .toList();
        if (limited.isEmpty()) {
            return;
        }
        if (!bean.type().isInterface()) { // otherwise the class is known when the bean is made
            limited.forEach(method -> operations.of(method, bean.type()));
        }
        if (bean.isThere() && !bean.isAdvised()) {
            throw new InvalidRateLimitedException(
                    "@RateLimited on " + Places.of(bean.type(), limited.get(0)) + " would not be enforced: the bean '"
                            + bean.name() + "' has no proxy that does. It was made by hand, or before limits could be"
                            + " put around it, as what a BeanPostProcessor depends on is.",
                    "Have Spring make the bean, or break up what depends on it so early.");
        }
        if (MvcMethods.isController(bean.type())) {
            methods.forEach(method -> checkController(method, bean.type()));
        }
    }

    private static List<Method> methods(Class<?> type) {
        Stream<Method> declared = Proxy.isProxyClass(type)
                ? Stream.empty()
                : Stream.of(ReflectionUtils.getUniqueDeclaredMethods(type)).filter(method -> !method.isBridge());
        Set<Class<?>> interfaces = ClassUtils.getAllInterfacesForClassAsSet(type);
        Stream<Method> inherited = interfaces.stream()
                .flatMap(declaring -> Stream.of(ReflectionUtils.getDeclaredMethods(declaring)))
                .filter(method -> Proxy.isProxyClass(type) || method.isDefault())
                .filter(method -> !Modifier.isStatic(method.getModifiers()));
        return Stream.concat(declared, inherited).toList();
    }

    /** A method that a proxy can't override runs unlimited, and on a proxy of a class without the bean's fields. */
    private static void checkCanBeProxied(Method method, Class<?> type) {
        String reason = reason(method);
        boolean written = reason != null && RateLimitedSearch.isOn(method);
        boolean covered = "final".equals(reason)
                && !Proxy.isProxyClass(type)
                && RateLimitedSearch.isOnHierarchyOf(method.getDeclaringClass())
                && !RateLimitedSearch.find(method, type).isEmpty();
        if (written || covered) {
            throw new InvalidRateLimitedException(
                    "@RateLimited on " + Places.of(type, method) + " can't be enforced: the method is " + reason
                            + ", and no proxy can stand before it.",
                    "Make it a public method that can be overridden, or put the annotation on one that calls it from"
                            + " another bean.");
        }
    }

    private static @Nullable String reason(Method method) {
        int modifiers = method.getModifiers();
        return Modifier.isPrivate(modifiers)
                ? "private"
                : Modifier.isStatic(modifiers) ? "static" : Modifier.isFinal(modifiers) ? "final" : null;
    }

    private static void checkController(Method method, Class<?> type) {
        String reason = reason(method);
        if (reason != null && !reason.equals("static") && MvcMethods.isCalled(method)) {
            throw new InvalidRateLimitedException(
                    type.getName() + " has @RateLimited methods and so a proxy, and " + Places.of(type, method) + " is "
                            + reason + ": Spring MVC would call it on the proxy, whose fields are null.",
                    "Make the method public and not final.");
        }
    }
}
