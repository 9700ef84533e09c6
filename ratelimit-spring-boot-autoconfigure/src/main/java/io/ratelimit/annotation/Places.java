package io.ratelimit.annotation;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.stream.Collectors;

/** How messages name where something stands. */
final class Places {

    private Places() {}

    /** As in {@code com.example.Orders.place(Order)}. */
    static String of(Class<?> type, Method method) {
        return type.getName() + "." + signature(method);
    }

    static String signature(Method method) {
        return method.getName()
                + Arrays.stream(method.getParameterTypes())
                        .map(Class::getSimpleName)
                        .collect(Collectors.joining(", ", "(", ")"));
    }
}
