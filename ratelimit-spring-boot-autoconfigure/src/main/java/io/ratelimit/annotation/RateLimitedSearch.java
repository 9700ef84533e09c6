package io.ratelimit.annotation;

import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * Finds {@link RateLimited} on methods and types, as a meta-annotation, on superclasses and on interfaces. What is
 * nearest to a method counts alone, and what is on methods before what is on types.
 */
final class RateLimitedSearch {

    /** Whether a type itself, or one of its own methods, has the annotation: most beans are told apart by this. */
    private static final ClassValue<Boolean> MENTIONS = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            return !isOfOthers(type) && (isOn(type) || isOnAny(type));
        }
    };

    /** Where we are, which is no proof of what is ours: that is in the same jar. */
    private static final String OURS = "io.ratelimit.";

    private RateLimitedSearch() {}

    /**
     * Whether a type is the JDK's, ours or, by its jar, Spring's own. Most beans of an application are: to read all of
     * their annotations takes longer than all else that is done at the start.
     */
    private static boolean isOfOthers(Class<?> type) {
        String name = type.getName();
        if (name.startsWith(OURS)) {
            return type.getProtectionDomain() == RateLimitedSearch.class.getProtectionDomain();
        }
        if (!name.startsWith("org.springframework.")) {
            return name.startsWith("java.");
        }
        String jar = type.getPackage().getImplementationTitle();
        return jar != null && jar.regionMatches(true, 0, "spring", 0, "spring".length());
    }

    /** Whether some method of the type may have it. */
    static boolean isCandidate(Class<?> type) {
        if (isOfOthers(type)) {
            return false;
        }
        for (Class<?> up = type; up != null && up != Object.class; up = up.getSuperclass()) {
            if (MENTIONS.get(up)) {
                return true;
            }
        }
        for (Class<?> implemented : ClassUtils.getAllInterfacesForClassAsSet(type)) {
            if (MENTIONS.get(implemented)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isOnAny(Class<?> type) {
        for (Method method : methods(type)) {
            if (isOn(method)) {
                return true;
            }
        }
        return false;
    }

    /** Methods of a type that misses an optional class can't be read, here or by anybody: no bean can be made of it. */
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

    static boolean isOnHierarchyOf(Class<?> type) {
        return !nearest(type).isEmpty();
    }

    /** What holds for calls of a method of beans of a class; empty if nothing does. */
    static List<MergedAnnotation<RateLimited>> find(Method method, Class<?> beanClass) {
        Class<?> type = ClassUtils.getUserClass(beanClass);
        List<MergedAnnotation<RateLimited>> onMethod = onMethod(method, type);
        return onMethod.isEmpty() && isCoveredByType(method) ? onType(method, type) : onMethod;
    }

    /** A controller's request is a call of its handler; what is called around that isn't another one. */
    private static List<MergedAnnotation<RateLimited>> onType(Method method, Class<?> type) {
        List<MergedAnnotation<RateLimited>> found = nearest(type);
        return found.isEmpty() || MvcMethods.isAroundHandlers(method) ? List.of() : found;
    }

    private static List<MergedAnnotation<RateLimited>> onMethod(Method method, Class<?> type) {
        Method specific = AopUtils.getMostSpecificMethod(method, type);
        List<MergedAnnotation<RateLimited>> found = nearest(specific);
        if (found.isEmpty() && !specific.equals(method)) {
            found = nearest(method);
        }
        return found.isEmpty() && !Modifier.isPrivate(specific.getModifiers()) ? onInterfaces(specific, type) : found;
    }

    /** A superclass may have the method of an interface that only the bean's class implements. */
    private static List<MergedAnnotation<RateLimited>> onInterfaces(Method specific, Class<?> type) {
        return ClassUtils.getAllInterfacesForClassAsSet(type).stream()
                .filter(MENTIONS::get)
                .flatMap(declaring -> Stream.of(methods(declaring)))
                .filter(method -> method.getName().equals(specific.getName())
                        && AopUtils.getMostSpecificMethod(method, type).equals(specific))
                .map(RateLimitedSearch::nearest)
                .filter(found -> !found.isEmpty())
                .findFirst()
                .orElse(List.of());
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

    /** The method that an annotation is written on, or null if it is on a type. */
    static @Nullable Method methodOf(MergedAnnotation<RateLimited> annotation) {
        return annotation.getSource() instanceof Method method ? method : null;
    }
}
