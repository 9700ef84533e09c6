package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Decision;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.key.FailureListener;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.PolicyConfiguration;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.web.servlet.RateLimitWebServletAutoConfiguration;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import net.bytebuddy.ByteBuddy;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.ReactiveWebApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;

@ExtendWith(OutputCaptureExtension.class)
class RateLimitAutoConfigurationTests {

    private static final AutoConfigurations OURS =
            AutoConfigurations.of(RateLimitAutoConfiguration.class, RateLimitWebServletAutoConfiguration.class);

    private final ApplicationContextRunner contextRunner = new ApplicationContextRunner()
            .withConfiguration(OURS)
            .withPropertyValues("ratelimit.policies.api.rate=2/1s", "ratelimit.policies.api.key=user");

    @Test
    void providesThrottlersForThePolicies() {
        contextRunner.run(context -> {
            Throttlers throttlers = context.getBean(Throttlers.class);
            assertThat(throttlers.get("api").policy())
                    .isEqualTo(ThrottlePolicy.of("api", BucketSpec.of("2/1s"), "user"));
            assertThat(throttlers.get("api").forKey("alice").decide(3).outcome())
                    .isEqualTo(Decision.Outcome.NEVER_FITS);
        });
    }

    @Test
    void providesWhatAnApplicationWithoutWebCanUse() {
        contextRunner.run(context -> assertThat(ours(context))
                .containsExactlyInAnyOrder(
                        RateLimitAutoConfiguration.class,
                        PolicyConfiguration.class,
                        RateLimitAutoConfiguration.WithoutWeb.class,
                        RateLimitProperties.class,
                        context.getBean("rateLimitPropertyBinding").getClass(),
                        ConfiguredPolicies.class,
                        context.getBean(TimeSource.class).getClass(),
                        context.getBean(BucketStore.class).getClass(),
                        context.getBean(FailureListener.class).getClass(),
                        Throttlers.class,
                        LimitChanges.class));
    }

    @ParameterizedTest
    @ValueSource(strings = {"false", "FALSE", "off", "no", "0"})
    void leavesNoBeanWhenDisabled(String disabled) {
        String property = "ratelimit.enabled=" + disabled;
        contextRunner.withPropertyValues(property).run(context -> assertThat(ours(context))
                .isEmpty());
        webApplication().withPropertyValues(property).run(context -> assertThat(ours(context))
                .isEmpty());
        new ReactiveWebApplicationContextRunner()
                .withConfiguration(OURS)
                .withPropertyValues(property)
                .run(context -> assertThat(ours(context)).isEmpty());
    }

    /** ConditionalOnBooleanProperty accepts only "true", so "yes" would disable limits without a message. */
    @ParameterizedTest
    @ValueSource(strings = {"true", "TRUE", "on", "yes", "1"})
    void isEnabledByEverySpellingOfYes(String enabled) {
        contextRunner.withPropertyValues("ratelimit.enabled=" + enabled).run(context -> assertThat(context)
                .hasSingleBean(Throttlers.class));
        webApplication().withPropertyValues("ratelimit.enabled=" + enabled).run(context -> assertThat(context)
                .hasBean("rateLimitFilterBeforeAuthentication"));
    }

    @Test
    void readsTheTimeFromTheUsersTimeSource() {
        ManualTimeSource time = new ManualTimeSource();
        contextRunner.withBean("clock", TimeSource.class, () -> time).run(context -> {
            assertThat(context).hasSingleBean(TimeSource.class);
            Throttlers throttlers = context.getBean(Throttlers.class);
            assertThat(throttlers.get("api").forKey("alice").decide(2).allowed())
                    .isTrue();
            assertThat(throttlers.get("api").forKey("alice").decide(2).allowed())
                    .isFalse();
            time.advance(Duration.ofSeconds(1));
            assertThat(throttlers.get("api").forKey("alice").decide(2).allowed())
                    .isTrue();
        });
    }

    @Test
    void throttlersOfTheUserMayLackPoliciesOfTheConfiguration() {
        Throttlers own = new Throttlers(
                List.of(), BucketStore.local(TimeSource.system()), TimeSource.system(), ThrottleListener.NONE);
        contextRunner.withBean("own", Throttlers.class, () -> own).run(context -> assertThat(context)
                .hasSingleBean(Throttlers.class));
    }

    @Test
    void asksTheUsersBucketStore() {
        BucketStore store = BucketStore.local(new ManualTimeSource());
        contextRunner.withBean("store", BucketStore.class, () -> store).run(context -> {
            assertThat(context.getBean(BucketStore.class)).isSameAs(store);
            context.getBean(Throttlers.class).get("api").forKey("alice").decide(2);
            assertThat(context.getBean(Throttlers.class)
                            .snapshot("api", "alice")
                            .toString())
                    .isEqualTo(new Throttlers(
                                    List.of(ThrottlePolicy.of("api", BucketSpec.of("2/1s"), "user")),
                                    store,
                                    new ManualTimeSource(),
                                    ThrottleListener.NONE)
                            .snapshot("api", "alice")
                            .toString());
        });
    }

    @Test
    void leavesThrottlersToTheUser() {
        Throttlers own = Throttlers.local(List.of());
        contextRunner
                .withBean("own", Throttlers.class, () -> own)
                .run(context -> assertThat(context.getBean(Throttlers.class)).isSameAs(own));
    }

    @Test
    void aMistakeStopsTheStartInSpiteOfTheUsersThrottlers() {
        contextRunner
                .withBean("own", Throttlers.class, () -> Throttlers.local(List.of()))
                .withPropertyValues("ratelimit.policies.api.capacity=0")
                .run(context -> assertThat(context.getStartupFailure())
                        .rootCause()
                        .hasMessageContaining("capacity must be between 1 and 1,000,000,000,000, but was 0"));
    }

    @Test
    void leavesTheFailureListenerToTheUser() {
        FailureListener listener = (policy, part, reason) -> {};
        contextRunner.withBean("custom", FailureListener.class, () -> listener).run(context -> assertThat(
                        context.getBean(FailureListener.class))
                .isSameAs(listener));
    }

    @Test
    void logsDenialsAndChanges(CapturedOutput output) {
        contextRunner.run(context -> {
            Throttlers throttlers = context.getBean(Throttlers.class);
            throttlers.get("api").forKey("alice").decide(3);
            throttlers.get("api").reconfigure(BucketSpec.of("3/1s"));
        });
        assertThat(output)
                .contains("Throttle policy 'api' denied its first request")
                .contains("Throttle policy 'api' was changed at runtime");
    }

    @Test
    void callsAllListenersInTheirOrder(CapturedOutput output) {
        contextRunner.withUserConfiguration(TwoListeners.class).run(context -> {
            context.getBean(Throttlers.class).get("api").forKey("alice").decide(1);
            context.getBean(Throttlers.class).get("api").forKey("alice").decide(5);
        });
        assertThat(TwoListeners.calls)
                .containsExactly("first ALLOWED", "second ALLOWED", "first NEVER_FITS", "second NEVER_FITS");
        assertThat(output).contains("Throttle policy 'api' denied its first request");
    }

    @Test
    void logsThatNothingIsLimitedWithoutWeb(CapturedOutput output) {
        contextRunner.withPropertyValues("ratelimit.policies.login.rate=5/1m").run(context -> assertThat(output)
                .contains("Throttle policies 'api', 'login': each limits no requests, because this is not a web"
                        + " application; code can use the bean Throttlers"));
    }

    /** Spring Boot detects WebFlux by this class. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aReactiveApplicationStopsTheStart(boolean lazy) {
        ClassLoader withWebFlux = new ByteBuddy()
                .subclass(Object.class)
                .name("org.springframework.web.reactive.HandlerResult")
                .make()
                .load(getClass().getClassLoader())
                .getLoaded()
                .getClassLoader();
        new ReactiveWebApplicationContextRunner()
                .withClassLoader(withWebFlux)
                .withConfiguration(OURS)
                .withInitializer(context -> {
                    if (lazy) {
                        context.addBeanFactoryPostProcessor(new LazyInitializationBeanFactoryPostProcessor());
                    }
                })
                .run(context -> assertThat(context.getStartupFailure())
                        .rootCause()
                        .isInstanceOfSatisfying(RateLimitConfigurationException.class, failure -> {
                            assertThat(failure)
                                    .hasMessage(
                                            "ratelimit limits the requests of servlet applications, but this"
                                                    + " application is reactive (WebFlux): none of its requests would be limited.");
                            assertThat(failure.action())
                                    .isEqualTo("Build on 'spring-boot-starter-webmvc', remove"
                                            + " 'ratelimit-spring-boot-starter', or set 'ratelimit.enabled: false'.");
                        }));
    }

    private WebApplicationContextRunner webApplication() {
        return new WebApplicationContextRunner()
                .withConfiguration(OURS)
                .withPropertyValues("ratelimit.policies.api.rate=2/1s");
    }

    private static List<Class<?>> ours(ApplicationContext context) {
        return Stream.of(context.getBeanDefinitionNames())
                .<Class<?>>map(context::getType)
                .filter(type -> type.getName().startsWith("io.ratelimit."))
                .toList();
    }

    @Configuration(proxyBeanMethods = false)
    static class TwoListeners {
        static final List<String> calls = new ArrayList<>();

        @Bean
        @Order(2)
        ThrottleListener second() {
            return decision -> calls.add("second " + decision.outcome());
        }

        @Bean
        @Order(1)
        ThrottleListener first() {
            return decision -> calls.add("first " + decision.outcome());
        }
    }
}
