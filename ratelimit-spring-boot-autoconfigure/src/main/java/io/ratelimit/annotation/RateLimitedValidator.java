package io.ratelimit.annotation;

import io.ratelimit.annotation.CandidateBeans.CandidateBean;
import io.ratelimit.policy.RateLimitConfigurationException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ReflectionUtils;

/**
 * Reads the annotations of all beans at the start, also of beans that are created later. An annotation that has a mistake
 * or would not be enforced stops the start.
 */
record RateLimitedValidator(RateLimitedOperations operations, CandidateBeans beans) {

    /**
     * @throws RateLimitConfigurationException if an annotation has a mistake or would not be enforced
     */
    void validate() {
        beans.candidates().forEach(this::validate);
    }

    private void validate(CandidateBean bean) {
        List<Method> methods = methods(bean.type());
        methods.forEach(method -> checkCanBeProxied(method, bean.type()));
        List<Method> limited = methods.stream()
                .filter(method -> !RateLimitedScanner.find(method, bean.type()).isEmpty())
                .toList();
        if (limited.isEmpty()) {
            return;
        }
        if (!bean.type().isInterface()) { // of an interface, the class is unknown until the bean is created
            limited.forEach(method -> operations.operation(method, bean.type()));
        }
        if (bean.isCreated() && !bean.isAdvised()) {
            throw new SourceLocation(bean.type(), limited.get(0))
                    .invalid(
                            "would not be enforced: the bean '" + bean.name()
                                    + "' has no proxy that enforces limits. The"
                                    + " bean was proxied by hand, or created too early, as a dependency of a"
                                    + " BeanPostProcessor",
                            "Let Spring create the proxy, or remove the early dependency on the bean.");
        }
        if (RateLimitedScanner.isController(bean.type())) {
            methods.forEach(method -> checkControllerMethod(method, bean.type()));
        }
    }

    private static List<Method> methods(Class<?> type) {
        Stream<Method> declared = Proxy.isProxyClass(type)
                ? Stream.empty()
                : Stream.of(ReflectionUtils.getUniqueDeclaredMethods(type)).filter(method -> !method.isSynthetic());
        Set<Class<?>> interfaces = RateLimitedScanner.interfaces(type);
        Stream<Method> inherited = interfaces.stream()
                .flatMap(declaring -> Stream.of(ReflectionUtils.getDeclaredMethods(declaring)))
                .filter(method -> Proxy.isProxyClass(type) || method.isDefault())
                .filter(method -> !Modifier.isStatic(method.getModifiers()));
        return Stream.concat(declared, inherited).toList();
    }

    /**
     * A method that a proxy can't override would run without a limit. A final one would also run on the proxy itself, whose
     * fields are null.
     */
    private static void checkCanBeProxied(Method method, Class<?> type) {
        String obstacle = obstacle(method);
        boolean isAnnotated = obstacle != null && RateLimitedScanner.isOn(method);
        boolean isCoveredByType = "final".equals(obstacle)
                && !Proxy.isProxyClass(type)
                && RateLimitedScanner.isOnHierarchyOf(method.getDeclaringClass())
                && !RateLimitedScanner.find(method, type).isEmpty();
        if (isAnnotated || isCoveredByType) {
            throw new SourceLocation(type, method)
                    .invalid(
                            "can't be enforced: the method is " + obstacle + ", so no proxy can override it",
                            "Make the method public and not final or static, or move the annotation to a method of another"
                                    + " bean that calls it.");
        }
    }

    private static @Nullable String obstacle(Method method) {
        int modifiers = method.getModifiers();
        return Modifier.isPrivate(modifiers)
                ? "private"
                : Modifier.isStatic(modifiers) ? "static" : Modifier.isFinal(modifiers) ? "final" : null;
    }

    private static void checkControllerMethod(Method method, Class<?> type) {
        String obstacle = obstacle(method);
        if (obstacle != null && !obstacle.equals("static") && RateLimitedScanner.isCalledByMvc(method)) {
            throw new RateLimitConfigurationException(
                    type.getName() + " has a proxy for its @RateLimited methods, but "
                            + new SourceLocation(type, method) + " is " + obstacle
                            + ": Spring MVC would call it on the proxy, whose fields are null.",
                    "Make the method public and not final.");
        }
    }
}
