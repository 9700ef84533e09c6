package io.ratelimit.annotation;

import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.stereotype.Controller;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * The search for {@link RateLimited} on methods and types, on superclasses and interfaces, and as a meta-annotation. Only
 * the annotations nearest to a method count, and annotations on methods come before those on types. A nearer
 * {@link RateLimitExempt} on the method frees its calls.
 */
final class RateLimitedScanner {

    private static final String OUR_PACKAGES = "io.ratelimit.";
    private static final String SPRING = "org.springframework.";

    /** The package of Spring's examples, which are applications: the jar of one has the title "spring-petclinic". */
    private static final String EXAMPLES = SPRING + "samples.";

    /** Annotations of Spring MVC, by name because Spring MVC is optional. */
    private static final String MVC_ANNOTATIONS = "org.springframework.web.bind.annotation.";

    private static final String REQUEST_MAPPING = MVC_ANNOTATIONS + "RequestMapping";

    /** Caches whether a type itself, or a method that it declares, has either annotation. Most types have none. */
    private static final ClassValue<Boolean> HAS_ANNOTATION = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            return !isOfPlatform(type) && (isOn(type) || isOnAnyMethod(type));
        }
    };

    private RateLimitedScanner() {}

    /**
     * Returns whether a type belongs to the JDK, to this library or, by its jar, to Spring. Most beans of an application
     * do, and to read all of their annotations would take most of the time of the start. The package alone doesn't show
     * that a type belongs to this library, so its jar is compared.
     */
    private static boolean isOfPlatform(Class<?> type) {
        String name = type.getName();
        if (name.startsWith(OUR_PACKAGES)) {
            return type.getProtectionDomain() == RateLimitedScanner.class.getProtectionDomain();
        }
        if (!name.startsWith(SPRING) || name.startsWith(EXAMPLES)) {
            return name.startsWith("java.");
        }
        String jar = type.getPackage().getImplementationTitle();
        return jar != null && jar.regionMatches(true, 0, "spring", 0, "spring".length());
    }

    static boolean isCandidate(Class<?> type) {
        if (isOfPlatform(type)) {
            return false;
        }
        for (Class<?> up = type; up != null && up != Object.class; up = up.getSuperclass()) {
            if (HAS_ANNOTATION.get(up)) {
                return true;
            }
        }
        for (Class<?> implemented : interfaces(type)) {
            if (HAS_ANNOTATION.get(implemented)) {
                return true;
            }
        }
        return false;
    }

    /** Returns all interfaces of a type: its own, those of its superclasses, and those that they extend. */
    static Set<Class<?>> interfaces(Class<?> type) {
        Set<Class<?>> all = new LinkedHashSet<>();
        if (type.isInterface()) {
            all.add(type);
        }
        for (Class<?> up = type; up != null; up = up.getSuperclass()) {
            addInterfaces(up, all);
        }
        return all;
    }

    private static void addInterfaces(Class<?> type, Set<Class<?>> all) {
        for (Class<?> implemented : type.getInterfaces()) {
            if (all.add(implemented)) {
                addInterfaces(implemented, all);
            }
        }
    }

    private static boolean isOnAnyMethod(Class<?> type) {
        for (Method method : methods(type)) {
            if (isOn(method) || isExempt(method)) {
                return true;
            }
        }
        return false;
    }

    /** Returns no methods for a type that refers to a missing optional class. Spring can't create a bean of it either. */
    private static Method[] methods(Class<?> type) {
        try {
            return ReflectionUtils.getDeclaredMethods(type);
        } catch (IllegalStateException unreadable) {
            return new Method[0];
        }
    }

    static boolean isOn(AnnotatedElement element) {
        return MergedAnnotations.from(element).isPresent(RateLimited.class);
    }

    static boolean isExempt(AnnotatedElement element) {
        return MergedAnnotations.from(element).isPresent(RateLimitExempt.class);
    }

    static boolean isOnHierarchyOf(Class<?> type) {
        return !nearest(type).isEmpty();
    }

    /** Returns the annotations that limit calls of a method of a bean; empty if the calls have no limit. */
    static List<MergedAnnotation<RateLimited>> find(Method method, Class<?> beanClass) {
        Class<?> type = ClassUtils.getUserClass(beanClass);
        List<MergedAnnotation<RateLimited>> onMethod = onMethod(method, type);
        return onMethod != null ? onMethod : isCoveredByType(method) ? onType(method, type) : List.of();
    }

    /** A request to a controller is one call of the handler. Methods that Spring MVC calls around it aren't charged. */
    private static List<MergedAnnotation<RateLimited>> onType(Method method, Class<?> type) {
        List<MergedAnnotation<RateLimited>> found = nearest(type);
        return found.isEmpty() || isAroundHandlers(method) ? List.of() : found;
    }

    /** Returns the annotations of a method: none if it is exempt; null if nothing stands on it, and its type decides. */
    private static @Nullable List<MergedAnnotation<RateLimited>> onMethod(Method method, Class<?> type) {
        Method specific = AopUtils.getMostSpecificMethod(method, type);
        List<MergedAnnotation<RateLimited>> found = nearestOn(specific);
        if (found == null && !specific.equals(method)) {
            found = nearestOn(method);
        }
        return found == null && !Modifier.isPrivate(specific.getModifiers()) ? onInterfaces(specific, type) : found;
    }

    /** Covers a superclass that declares a method of an interface which only the bean's class implements. */
    private static @Nullable List<MergedAnnotation<RateLimited>> onInterfaces(Method specific, Class<?> type) {
        return interfaces(type).stream()
                .filter(HAS_ANNOTATION::get)
                .flatMap(declaring -> Stream.of(methods(declaring)))
                .filter(method -> method.getName().equals(specific.getName())
                        && AopUtils.getMostSpecificMethod(method, type).equals(specific))
                .map(RateLimitedScanner::nearestOn)
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
    }

    /** Returns the nearest annotations; none if an exemption is nearer, and null if there is neither. */
    private static @Nullable List<MergedAnnotation<RateLimited>> nearestOn(Method method) {
        List<MergedAnnotation<RateLimited>> found = nearest(method);
        MergedAnnotation<RateLimitExempt> exempt =
                MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY).get(RateLimitExempt.class);
        boolean isExempt = exempt.isPresent()
                && (found.isEmpty() || exempt.getAggregateIndex() < found.get(0).getAggregateIndex());
        return isExempt ? List.of() : found.isEmpty() ? null : found;
    }

    private static List<MergedAnnotation<RateLimited>> nearest(AnnotatedElement element) {
        List<MergedAnnotation<RateLimited>> all = MergedAnnotations.from(element, SearchStrategy.TYPE_HIERARCHY).stream(
                        RateLimited.class)
                .toList();
        int nearest =
                all.stream().mapToInt(MergedAnnotation::getAggregateIndex).min().orElse(0);
        return all.stream()
                .filter(found -> found.getAggregateIndex() == nearest)
                .toList();
    }

    private static boolean isCoveredByType(Method method) {
        return method.getDeclaringClass() != Object.class
                && (method.getModifiers() & (Modifier.PRIVATE | Modifier.STATIC)) == 0
                && !ReflectionUtils.isEqualsMethod(method)
                && !ReflectionUtils.isHashCodeMethod(method)
                && !ReflectionUtils.isToStringMethod(method);
    }

    /** Returns the method that has the annotation; null if a type has it. */
    static @Nullable Method annotatedMethod(MergedAnnotation<RateLimited> annotation) {
        return annotation.getSource() instanceof Method method ? method : null;
    }

    static boolean isController(Class<?> type) {
        MergedAnnotations annotations = MergedAnnotations.from(type, SearchStrategy.TYPE_HIERARCHY);
        return annotations.isPresent(Controller.class) || annotations.isPresent(REQUEST_MAPPING);
    }

    /** Returns whether Spring MVC calls a method of a controller: the handlers, and the methods around them. */
    static boolean isCalledByMvc(Method method) {
        return MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY).isPresent(REQUEST_MAPPING)
                || isAroundHandlers(method);
    }

    /** Returns whether Spring MVC calls a method before or after a handler, and the method itself is no handler. */
    private static boolean isAroundHandlers(Method method) {
        MergedAnnotations annotations = MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY);
        return !annotations.isPresent(REQUEST_MAPPING)
                && Stream.of("ModelAttribute", "InitBinder", "ExceptionHandler")
                        .anyMatch(name -> annotations.isPresent(MVC_ANNOTATIONS + name));
    }
}
