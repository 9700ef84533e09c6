package io.ratelimit.autoconfigure;

import io.ratelimit.key.RequestFacts;
import io.ratelimit.policy.RateLimitProperties;
import java.lang.reflect.RecordComponent;
import java.util.Collections;
import java.util.LinkedList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.aot.hint.MemberCategory;
import org.springframework.aot.hint.ReflectionHints;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.RuntimeHintsRegistrar;
import org.springframework.aot.hint.TypeReference;
import org.springframework.core.ResolvableType;
import org.springframework.expression.spel.support.SimpleEvaluationContext;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * The resources and the reflection that a native image can't see in the code. Spring contributes the properties, the
 * operations of endpoints with their declared results, and annotated methods.
 */
final class RateLimitRuntimeHints implements RuntimeHintsRegistrar {

    private static final String CAFFEINE = "com.github.benmanes.caffeine.cache.";

    /**
     * Caffeine composes the names of the classes of a cache and of its entries from the options of the builder. It finds
     * fields of the other three by methods that an analysis may not follow.
     */
    private static final List<String> CACHES = List.of(
            "SI",
            "PW",
            "SSA",
            "PSW",
            "SSMWW",
            "PSWMW",
            "SSMWA",
            "PSAMW",
            "StripedBuffer",
            "BaseMpscLinkedArrayQueue",
            "BBHeader$ReadAndWriteCounterRef");

    /** Types that are looked up by name, and those whose methods {@code UserName} searches. */
    private static final List<String> OPTIONAL = List.of(
            "org.slf4j.MDC",
            "org.springframework.security.authentication.AbstractAuthenticationToken",
            "org.springframework.security.core.Authentication",
            "org.springframework.security.core.CredentialsContainer",
            "org.springframework.security.oauth2.core.ClaimAccessor",
            "org.springframework.security.oauth2.server.resource.authentication.AbstractOAuth2TokenAuthenticationToken",
            "org.springframework.web.context.request.ServletRequestAttributes");

    @Override
    public void registerHints(RuntimeHints hints, @Nullable ClassLoader classLoader) {
        hints.resources().registerPattern("io/ratelimit/redis/*.lua");
        hints.resources().registerPattern("io/ratelimit/jdbc/schema-*.sql");
        hints.resources().registerPattern("io/ratelimit/actuate/dashboard/*");
        registerValues(hints.reflection(), ResolvableType.forClass(RateLimitProperties.class));
        // Also absent types: a native image must know that a look-up finds none.
        OPTIONAL.forEach(name -> hints.reflection().registerType(TypeReference.of(name), type -> {}));
        registerExpressions(hints.reflection());
        CACHES.stream()
                .map(name -> CAFFEINE + name)
                .filter(name -> ClassUtils.isPresent(name, classLoader)) // the application may have another version
                .forEach(name -> registerWithParents(hints.reflection(), name, classLoader));
    }

    /** Registers the types of properties that Spring converts from text by the type's method {@code of(String)}. */
    private static void registerValues(ReflectionHints reflection, ResolvableType property) {
        Class<?> type = property.toClass();
        if (ReflectionUtils.findMethod(type, "of", String.class) != null) {
            reflection.registerType(type, MemberCategory.INVOKE_PUBLIC_METHODS);
        } else if (type.isRecord()) {
            for (RecordComponent component : type.getRecordComponents()) {
                registerValues(reflection, ResolvableType.forType(component.getGenericType()));
            }
        }
        for (ResolvableType element : property.getGenerics()) {
            registerValues(reflection, element);
        }
    }

    /** Registers the facts of a request, and the values of facts with the methods that expressions may call. */
    private static void registerExpressions(ReflectionHints reflection) {
        TypeReference facts = TypeReference.of("io.ratelimit.web.servlet.ServletRequestFacts");
        Stream<Class<?>> values = Stream.of(
                RequestFacts.class,
                String.class,
                Set.class,
                Collections.emptySet().getClass(),
                Collections.unmodifiableSet(Set.of()).getClass(),
                List.class,
                Collections.unmodifiableCollection(List.of()).getClass(),
                Collections.unmodifiableList(new LinkedList<>()).getClass(),
                Collections.unmodifiableList(List.of()).getClass());
        Stream.concat(Stream.of(facts), values.map(TypeReference::of))
                .forEach(type -> reflection.registerType(type, MemberCategory.INVOKE_PUBLIC_METHODS));
        reflection.registerType(SimpleEvaluationContext.Builder.class, MemberCategory.INVOKE_PUBLIC_METHODS);
    }

    private static void registerWithParents(
            ReflectionHints reflection, String name, @Nullable ClassLoader classLoader) {
        Class<?> type = ClassUtils.resolveClassName(name, classLoader);
        while (type != null && type.getName().startsWith(CAFFEINE)) {
            reflection.registerType(
                    type, MemberCategory.INVOKE_DECLARED_CONSTRUCTORS, MemberCategory.ACCESS_DECLARED_FIELDS);
            type = type.getSuperclass();
        }
    }
}
