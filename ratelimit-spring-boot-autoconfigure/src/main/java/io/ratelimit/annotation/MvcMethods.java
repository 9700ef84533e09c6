package io.ratelimit.annotation;

import java.lang.reflect.Method;
import java.util.stream.Stream;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.stereotype.Controller;

/** What Spring MVC calls of a controller, by the names of its annotations: it may not be there. */
final class MvcMethods {

    private static final String ANNOTATIONS = "org.springframework.web.bind.annotation.";
    private static final String HANDLER = ANNOTATIONS + "RequestMapping";

    private MvcMethods() {}

    static boolean isController(Class<?> type) {
        MergedAnnotations annotations = MergedAnnotations.from(type, SearchStrategy.TYPE_HIERARCHY);
        return annotations.isPresent(Controller.class) || annotations.isPresent(HANDLER);
    }

    static boolean isCalled(Method method) {
        return isHandler(method) || isAroundHandlers(method);
    }

    private static boolean isHandler(Method method) {
        return MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY).isPresent(HANDLER);
    }

    /** Whether it is called before or after a handler, and is none itself. */
    static boolean isAroundHandlers(Method method) {
        MergedAnnotations annotations = MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY);
        return !annotations.isPresent(HANDLER)
                && Stream.of("ModelAttribute", "InitBinder", "ExceptionHandler")
                        .anyMatch(name -> annotations.isPresent(ANNOTATIONS + name));
    }
}
