package io.ratelimit.annotation;

import io.ratelimit.policy.RateLimitConfigurationException;
import java.lang.reflect.Method;
import java.util.List;
import java.util.stream.Collectors;
import org.springframework.core.KotlinDetector;
import org.springframework.core.ResolvableType;

/**
 * A method that has an annotation, by itself or from its type, as messages name it.
 *
 * @param type the class of the bean
 */
record SourceLocation(Class<?> type, Method method) {

    /** Returns the name of the method with its parameters, as in {@code place(Order)}. */
    String signature() {
        return method.getName()
                + Signature.of(method).parameters().stream()
                        .map(Class::getSimpleName)
                        .collect(Collectors.joining(", ", "(", ")"));
    }

    /** Returns the annotation as messages name it, as in {@code @RateLimited on com.example.Orders.place(Order)}. */
    String annotation() {
        return "@RateLimited on " + this;
    }

    RateLimitConfigurationException invalid(String problem, String action) {
        return new RateLimitConfigurationException(annotation() + " " + problem + ".", action);
    }

    RateLimitConfigurationException invalid(String problem, String action, Throwable cause) {
        RateLimitConfigurationException invalid = invalid(problem, action);
        invalid.initCause(cause);
        return invalid;
    }

    @Override
    public String toString() {
        return type.getName() + "." + signature();
    }

    /**
     * The parameters and the result of a method as its source has them. The compiler gives a {@code suspend} function of Kotlin
     * one more parameter, its continuation, and the result {@code Object}.
     *
     * @param result the type of the result; {@code void} for none
     */
    record Signature(List<Class<?>> parameters, Class<?> result, boolean suspends) {

        static Signature of(Method method) {
            List<Class<?>> types = List.of(method.getParameterTypes());
            if (!KotlinDetector.isSuspendingFunction(method)) {
                return new Signature(types, method.getReturnType(), false);
            }
            int last = types.size() - 1;
            Class<?> result =
                    ResolvableType.forMethodParameter(method, last).getGeneric().resolve(Object.class);
            boolean isNothing = result.getName().equals("kotlin.Unit");
            return new Signature(types.subList(0, last), isNothing ? void.class : result, true);
        }
    }
}
