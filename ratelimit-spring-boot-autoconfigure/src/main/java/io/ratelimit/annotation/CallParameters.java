package io.ratelimit.annotation;

import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.core.DefaultParameterNameDiscoverer;

/** The places of a method's arguments by the names that an expression may use. */
final class CallParameters {

    private CallParameters() {}

    /**
     * Names like {@code p0} and {@code a0}, those of the method, and before those the ones where the annotation stands.
     *
     * @param annotated the method that the annotation is written on, if it is on one
     */
    static Map<String, Integer> of(Method method, @Nullable Method annotated) {
        Map<String, Integer> places = new HashMap<>();
        for (int i = 0; i < method.getParameterCount(); i++) {
            places.put("p" + i, i);
            places.put("a" + i, i);
        }
        addNames(places, method);
        if (annotated != null && annotated.getParameterCount() == method.getParameterCount()) {
            addNames(places, annotated);
        }
        return Map.copyOf(places);
    }

    private static void addNames(Map<String, Integer> places, Method method) {
        @Nullable String @Nullable [] names = new DefaultParameterNameDiscoverer().getParameterNames(method);
        for (int i = 0; names != null && i < names.length; i++) {
            if (names[i] != null) {
                places.put(names[i], i);
            }
        }
    }
}
