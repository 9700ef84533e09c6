package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.springframework.aot.hint.predicate.RuntimeHintsPredicates.reflection;
import static org.springframework.aot.hint.predicate.RuntimeHintsPredicates.resource;

import io.ratelimit.Rate;
import io.ratelimit.RetryJitter;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestFacts;
import io.ratelimit.key.RequestKey.RequestLimit;
import io.ratelimit.key.RequestTier;
import io.ratelimit.key.ip.IpNetwork;
import io.ratelimit.policy.RateLimitProperties.MaxWait;
import io.ratelimit.policy.RateLimitProperties.RejectionDelay;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.MDC;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.annotation.ReflectiveRuntimeHintsRegistrar;
import org.springframework.core.io.Resource;
import org.springframework.core.io.support.PathMatchingResourcePatternResolver;
import org.springframework.expression.spel.support.SimpleEvaluationContext;
import org.springframework.security.authentication.AbstractAuthenticationToken;
import org.springframework.security.core.Authentication;
import org.springframework.security.oauth2.core.ClaimAccessor;
import org.springframework.security.oauth2.server.resource.authentication.AbstractOAuth2TokenAuthenticationToken;

/** The hints for native images. {@code AheadOfTimeTests} compares them with what the sample application needs. */
class RateLimitRuntimeHintsTests {

    private final RuntimeHints hints = new RuntimeHints();

    RateLimitRuntimeHintsTests() {
        new RateLimitRuntimeHints().registerHints(hints, getClass().getClassLoader());
    }

    @ParameterizedTest
    @ValueSource(strings = {"redis", "actuate/dashboard"})
    void eachFileIsInTheImage(String folder) throws Exception {
        Resource[] files =
                new PathMatchingResourcePatternResolver().getResources("classpath*:io/ratelimit/" + folder + "/*.*");
        assertThat(Arrays.stream(files).map(Resource::getFilename).filter(name -> !name.endsWith(".class")))
                .isNotEmpty()
                .allMatch(name -> resource()
                        .forResource("io/ratelimit/" + folder + "/" + name)
                        .test(hints));
    }

    @Test
    void expressionsCanReadAllFactsOfARequest() throws Exception {
        Class<?> facts = Class.forName("io.ratelimit.web.servlet.ServletRequestFacts");
        for (Method fact : RequestFacts.class.getMethods()) {
            Method read = facts.getMethod(fact.getName(), fact.getParameterTypes());
            assertThat(reflection().onMethodInvocation(fact)).accepts(hints);
            assertThat(reflection().onMethodInvocation(read)).accepts(hints);
        }
    }

    static Stream<Method> methodsOfValues() throws Exception {
        return Stream.of(
                String.class.getMethod("startsWith", String.class),
                Set.class.getMethod("contains", Object.class),
                Collections.emptySet().getClass().getMethod("size"),
                Collections.unmodifiableSet(Set.of()).getClass().getMethod("contains", Object.class));
    }

    @ParameterizedTest
    @MethodSource("methodsOfValues")
    void expressionsCanCallMethodsOfValues(Method method) {
        assertThat(reflection().onMethodInvocation(method)).accepts(hints);
    }

    @ParameterizedTest
    @ValueSource(
            classes = {
                IpNetwork.class,
                KeyPart.class,
                MaxWait.class,
                Rate.class,
                RejectionDelay.class,
                RequestCondition.class,
                RequestCost.class,
                RequestLimit.class,
                RequestTier.class,
                RetryJitter.class
            })
    void propertiesAreConvertedFromText(Class<?> type) throws Exception {
        assertThat(reflection().onMethodInvocation(type.getMethod("of", String.class)))
                .accepts(hints);
    }

    @ParameterizedTest
    @ValueSource(
            classes = {
                MDC.class,
                Authentication.class,
                AbstractAuthenticationToken.class,
                ClaimAccessor.class,
                AbstractOAuth2TokenAuthenticationToken.class
            })
    void optionalTypesAreFoundByName(Class<?> type) {
        assertThat(reflection().onType(type)).accepts(hints);
    }

    @Test
    void expressionsAreCompiledWhereSpringDoesSoOnRequest() throws Exception {
        assertThat(reflection()
                        .onMethodInvocation(
                                SimpleEvaluationContext.Builder.class.getMethod("withCompilationSupported")))
                .accepts(hints);
    }

    @Test
    void theFallbackOfAnAnnotatedMethodCanBeCalled() throws Exception {
        RuntimeHints ofAnnotations = new RuntimeHints();
        new ReflectiveRuntimeHintsRegistrar().registerRuntimeHints(ofAnnotations, Export.class);

        for (String method : List.of("export", "queued")) {
            assertThat(reflection().onMethodInvocation(Export.class.getDeclaredMethod(method)))
                    .accepts(ofAnnotations);
        }
        assertThat(reflection().onMethodInvocation(Export.class.getDeclaredMethod("other")))
                .rejects(ofAnnotations);
    }

    static class Export {

        @RateLimited(rate = "1/1h", fallback = "queued")
        String export() {
            return "exported";
        }

        private String queued() {
            return other();
        }

        private String other() {
            return "queued";
        }
    }

    @Test
    void anApplicationWithAnotherCaffeineCanBeProcessed() {
        RuntimeHints without = new RuntimeHints();
        new RateLimitRuntimeHints().registerHints(without, ClassLoader.getPlatformClassLoader());
        assertThat(without.reflection().typeHints())
                .noneMatch(hint -> hint.getType().getName().contains("caffeine"));
    }
}
