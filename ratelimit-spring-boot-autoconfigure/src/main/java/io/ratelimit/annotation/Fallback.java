package io.ratelimit.annotation;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ReflectionUtils;

/**
 * The method that answers in place of a refused call.
 *
 * @param withException whether its last parameter is the exception
 */
record Fallback(Method method, boolean withException) {

    /**
     * @throws IllegalArgumentException if the class has none of that name that fits
     */
    static Fallback find(String name, Method refused, Class<?> type) {
        Fallback found = Stream.of(ReflectionUtils.getUniqueDeclaredMethods(type))
                .filter(method -> method.getName().equals(name) && !method.isBridge())
                .flatMap(method -> fitting(method, refused))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("there is none in " + type.getName()
                        + " with the same parameters, and the RateLimitExceededException as the last if wanted"));
        if (!refused.getReturnType().isAssignableFrom(found.method.getReturnType())) {
            throw new IllegalArgumentException(
                    "it returns " + found.method.getReturnType().getTypeName() + ", which is no "
                            + refused.getReturnType().getTypeName());
        }
        ReflectionUtils.makeAccessible(found.method);
        return found;
    }

    private static Stream<Fallback> fitting(Method method, Method refused) {
        Class<?>[] wanted = refused.getParameterTypes();
        Class<?>[] types = method.getParameterTypes();
        if (Arrays.equals(wanted, types)) {
            return Stream.of(new Fallback(method, false));
        }
        boolean withException = types.length == wanted.length + 1
                && types[wanted.length].isAssignableFrom(RateLimitExceededException.class)
                && Arrays.equals(wanted, Arrays.copyOf(types, wanted.length));
        return withException ? Stream.of(new Fallback(method, true)) : Stream.empty();
    }

    @Nullable
    Object call(@Nullable Object target, @Nullable Object[] arguments, RateLimitExceededException refused)
            throws Throwable {
        @Nullable Object[] all = arguments;
        if (withException) {
            all = Arrays.copyOf(arguments, arguments.length + 1);
            all[arguments.length] = refused;
        }
        try {
            return method.invoke(target, all);
        } catch (InvocationTargetException failed) {
            throw failed.getTargetException();
        }
    }
}
