package io.ratelimit.annotation;

import java.lang.reflect.Method;
import java.util.List;
import org.springframework.core.KotlinDetector;
import org.springframework.core.ResolvableType;

/**
 * The parameters and the result of a method as its source has them. The compiler gives a {@code suspend} function of Kotlin
 * one more parameter, its continuation, and the result {@code Object}.
 *
 * @param result the type of the result; {@code void} for none
 * @param suspends whether the method is a {@code suspend} function
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
