package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestKey.MissingKey;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.support.StaticListableBeanFactory;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** The charges of calls of annotated methods. */
class RateLimitedTests extends AnnotatedCalls {

    @Test
    void aDeniedCallIsNotMadeAndThrows() {
        runner.withBean(Searches.class).run(context -> {
            Searches searches = context.getBean(Searches.class);
            assertThat(searches.search()).isEqualTo(1);
            assertThat(searches.search()).isEqualTo(2);
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(searches::search)
                    .withMessage("The call is throttled by 'search' policy, please retry after 1800000 ms.")
                    .satisfies(refused -> {
                        assertThat(refused.policy()).isEqualTo("search");
                        assertThat(refused.retryAfter()).isEqualTo(Duration.ofMinutes(30));
                        assertThat(refused.decision().outcome()).isEqualTo(Outcome.DENIED);
                        assertThat(refused.getStackTrace()).isEmpty();
                    });

            context.getBean(ManualTimeSource.class).advance(Duration.ofMinutes(30));

            assertThat(searches.search()).isEqualTo(3);
        });
    }

    @Test
    void aCallOfABeanToItselfIsNotLimited() {
        runner.withBean(Searches.class)
                .run(context ->
                        assertThat(context.getBean(Searches.class).all(10)).isEqualTo(10));
    }

    static class Batch {

        private final Exports exports;

        Batch(Exports exports) {
            this.exports = exports;
        }

        void run(int calls) {
            for (int i = 0; i < calls; i++) {
                exports.one("key");
            }
        }
    }

    static class Exports {

        @RateLimited(name = "one", rate = "1000/1d", key = "#id")
        void one(String id) {}
    }

    @Test
    void aBatchOfAHundredCallsTakesAHundredTokens() {
        runner.withBean(Exports.class).withBean(Batch.class).run(context -> {
            context.getBean(Batch.class).run(100);
            assertThat(available(context, "one", "key")).isEqualTo(900);
        });
    }

    static class Keys {

        @RateLimited(name = "argument", rate = "1/1h", key = "#id")
        void argument(Object id) {}

        @RateLimited(name = "place", rate = "1/1h", key = "#p1")
        void place(String first, String second) {}

        @RateLimited(name = "property", rate = "1/1h", key = "#tenant.id")
        void property(Tenant tenant) {}

        @RateLimited(name = "pair", rate = "1/1h", key = "{#a, #b}")
        void pair(String a, int b) {}

        @RateLimited(name = "array", rate = "1/1h", key = "#parts")
        void array(String... parts) {}

        @RateLimited(name = "constant", rate = "1/1h", key = "'all'")
        void constant() {}

        @RateLimited(
                name = "elements",
                rate = "1/1h",
                key = "#tenants.?[id.length() > 1 and #this != null].![id + '/']")
        void elements(List<Tenant> tenants) {}

        @RateLimited(policy = "search", key = "#id")
        void global(String id) {}
    }

    public record Tenant(String id) {}

    @Test
    void eachKeyHasItsOwnBucket() {
        runner.withBean(Keys.class).run(context -> {
            Keys keys = context.getBean(Keys.class);
            keys.argument("a");
            keys.argument("b");
            assertDenied(() -> keys.argument("A"));
            keys.argument(1);
            assertDenied(() -> keys.argument(1L));
            keys.place("x", "a");
            assertDenied(() -> keys.place("y", "a"));
            keys.place("x", "b");
            keys.property(new Tenant("a"));
            assertDenied(() -> keys.property(new Tenant("a")));
            keys.property(new Tenant("b"));
            keys.pair("a", 1);
            keys.pair("a", 2);
            assertDenied(() -> keys.pair("a", 1));
            keys.array("a", "b");
            keys.array("ab");
            assertDenied(() -> keys.array("a", "b"));
            keys.elements(List.of(new Tenant("aa"), new Tenant("b"), new Tenant("cc")));
            assertDenied(() -> keys.elements(List.of(new Tenant("aa"), new Tenant("cc"))));
            keys.elements(List.of(new Tenant("aa"), new Tenant("bb")));
            keys.constant();
            assertDenied(keys::constant);
            assertThat(available(context, "constant", "all")).isZero();
        });
    }

    @ParameterizedTest
    @CsvSource({
        "1, 1.0",
        "1.00, 1",
        "100, 1E2",
        "0.00, 0",
        "10E999999998, 1E999999999",
        "1.0000000000000000000000000000000000000000000000000000, 1"
    })
    void equalDecimalsWithDifferentZerosAreOneKey(BigDecimal one, BigDecimal same) {
        runner.withBean(Keys.class).run(context -> {
            Keys keys = context.getBean(Keys.class);
            keys.argument(one);
            assertDenied(() -> keys.argument(same));
            keys.argument(one.add(BigDecimal.ONE, MathContext.DECIMAL32).multiply(new BigDecimal("1.01")));
        });
    }

    @ParameterizedTest
    @ValueSource(ints = {Integer.MIN_VALUE, Integer.MAX_VALUE})
    void aDecimalOfAnyScaleIsAKey(int scale) {
        runner.withBean(Keys.class).run(context -> {
            Keys keys = context.getBean(Keys.class);
            BigDecimal number = new BigDecimal(BigInteger.TEN, scale);
            keys.argument(number);
            assertDenied(() -> keys.argument(number));
        });
    }

    @Test
    void aGlobalPolicyIsPartitionedByTheKeyOfTheAnnotation() {
        runner.withBean(Keys.class).run(context -> {
            Keys keys = context.getBean(Keys.class);
            keys.global("a");
            keys.global("a");
            assertDenied(() -> keys.global("a"));
            keys.global("b");
            assertThat(available(context, "search"))
                    .as("tokens of the bucket without a key")
                    .isEqualTo(2);
        });
    }

    /** Compiled SpEL can fail where interpreted SpEL doesn't. */
    @Test
    void aCompiledExpressionGivesTheSameKey() {
        runner.withBean(Compiled.class).run(context -> {
            Compiled compiled = context.getBean(Compiled.class);
            for (int i = 0; i < 1000; i++) {
                compiled.property(new Tenant("a"));
            }
            assertDenied(() -> compiled.property(new Tenant("a")));
            compiled.property(new Tenant("b"));
            compiled.property(null);
            assertThat(available(context, "compiled", "b")).isEqualTo(999);
        });
    }

    static class Compiled {

        @RateLimited(name = "compiled", rate = "1000/1h", key = "#tenant.id")
        void property(Tenant tenant) {}
    }

    @ParameterizedTest
    @CsvSource({"client-ip, 2", "shared, 2", "skip, 5", "deny, 0"})
    void aMissingKeyFollowsTheRuleOfThePolicy(String rule, int allowed) {
        runner.withPropertyValues("ratelimit.policies.search.on-missing-key=" + rule)
                .withBean(Missing.class)
                .run(context -> {
                    Missing missing = context.getBean(Missing.class);
                    List<Runnable> calls = List.of(
                            () -> missing.call(null),
                            () -> missing.call(new Tenant(null)),
                            () -> missing.call(new Tenant(" ")),
                            () -> missing.call(new Tenant("\t")),
                            () -> missing.noText(new Object()));
                    assertThat(calls.stream().filter(RateLimitedTests::isAllowed))
                            .hasSize(allowed);
                });
    }

    static class Missing {

        @RateLimited(policy = "search", key = "#tenant.id")
        void call(Tenant tenant) {}

        @RateLimited(policy = "search", key = "#any")
        void noText(Object any) {}
    }

    @Test
    void outsideARequestThePartsOfAPolicysKeyAreMissing() {
        runner.withPropertyValues("ratelimit.policies.search.key=user,ip")
                .withBean(Searches.class)
                .run(context -> {
                    Searches searches = context.getBean(Searches.class);
                    searches.search();
                    searches.search();
                    assertDenied(searches::search);
                });
    }

    @Test
    void overridesApplyToKeysOfAnnotations() {
        runner.withPropertyValues(
                        "ratelimit.policies.search.key=user",
                        "ratelimit.policies.search.overrides[0].keys=root",
                        "ratelimit.policies.search.overrides[0].mode=off",
                        "ratelimit.policies.search.overrides[1].keys=big",
                        "ratelimit.policies.search.overrides[1].rate=4/1h")
                .withBean(Keys.class)
                .run(context -> {
                    Keys keys = context.getBean(Keys.class);
                    for (int i = 0; i < 4; i++) {
                        keys.global("root");
                        keys.global("Big");
                    }
                    keys.global("root");
                    assertDenied(() -> keys.global("big"));
                    keys.global("a");
                    keys.global("a");
                    assertDenied(() -> keys.global("a"));
                });
    }

    @ParameterizedTest
    @ValueSource(strings = {"10.0.0.0/8", "10.1.2.3"})
    void overridesOfAddressesDoNotApplyToKeysOfAnnotations(String address) {
        runner.withPropertyValues(
                        "ratelimit.policies.search.key=ip",
                        "ratelimit.policies.search.overrides[0].keys=" + address,
                        "ratelimit.policies.search.overrides[0].mode=off")
                .withBean(Keys.class)
                .run(context -> {
                    Keys keys = context.getBean(Keys.class);
                    keys.global("10.1.2.3");
                    keys.global("10.1.2.3");
                    assertDenied(() -> keys.global("10.1.2.3"));
                });
    }

    static class Tiers {

        @RateLimited(policy = "tiered", key = "#id", tier = "#tier")
        void call(String id, Object tier) {}
    }

    @Test
    void eachTierHasItsOwnLimit() {
        ThrottlePolicy policy = ThrottlePolicy.of("tiered", BucketSpec.of("1/1h"), "id")
                .withTiers(Map.of("gold", BucketSpec.of("3/1h")));
        new ApplicationContextRunner()
                .withBean(Tiers.class)
                .withBean(ManualTimeSource.class)
                .run(context -> {
                    Throttlers throttlers = Throttlers.local(List.of(policy), context.getBean(ManualTimeSource.class));
                    RequestKey key = new RequestKey(
                            List.of(KeyPart.of("user")),
                            MissingKey.DENY,
                            (name, what, why) -> {},
                            ThrottleListener.NONE);
                    RateLimitedOperations operations = new RateLimitedOperations(
                            List.of(new AnnotatedPolicy(throttlers.get("tiered"), key, RequestCost.of(1))),
                            ThrottlePolicy.Mode.ENFORCE,
                            throttlers,
                            Current.NONE,
                            (name, what, why) -> {},
                            context.getBeanFactory());
                    ProxyFactory factory = new ProxyFactory(context.getBean(Tiers.class));
                    factory.addAdvisor(
                            new RateLimitedAdvisor(new StaticListableBeanFactory(Map.of("operations", operations))));
                    Tiers tiers = (Tiers) factory.getProxy();
                    for (int i = 0; i < 3; i++) {
                        tiers.call("a", "gold");
                    }
                    assertDenied(() -> tiers.call("a", "gold"));
                    tiers.call("a", "unknown");
                    assertDenied(() -> tiers.call("a", null));
                    assertDenied(() -> tiers.call(null, "gold"));
                    assertThat(throttlers
                                    .get("tiered")
                                    .forKey("a")
                                    .inTier("gold")
                                    .tryAcquire(1))
                            .isFalse();
                });
    }

    static class Several {

        @RateLimited(policy = "search", key = "#id")
        @RateLimited(name = "burst", rate = "3/1h")
        void call(String id) {}

        @RateLimited({"search", "export"})
        void both() {}
    }

    @Test
    void allLimitsAllowACallOrNoneIsCharged() {
        runner.withBean(Several.class).run(context -> {
            Several several = context.getBean(Several.class);
            several.call("a");
            several.call("a");
            assertDenied(() -> several.call("a"));
            assertThat(available(context, "burst"))
                    .as("tokens left after the returned one")
                    .isEqualTo(1);
            several.call("b");
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> several.call("b"))
                    .satisfies(denied -> assertThat(denied.policy()).isEqualTo("burst"));
            several.both();
            several.both();
            assertDenied(several::both);
            assertThat(available(context, "export")).isEqualTo(4);
        });
    }

    @RateLimited(rate = "5/1h")
    static class HTTPReportService {

        void onType() {}

        void onTypeAsWell() {}

        @RateLimited(rate = "${my.rate}", capacity = "${my.capacity:7}")
        void makePDFReport() {}
    }

    @Test
    void anInlineLimitIsNamedAfterBeanAndMethod() {
        runner.withBean("HTTPReportService", HTTPReportService.class)
                .withPropertyValues("my.rate=3/1h")
                .run(context -> {
                    HTTPReportService reports = context.getBean(HTTPReportService.class);
                    reports.makePDFReport();
                    assertThat(available(context, "http-report-service-make-pdf-report"))
                            .isEqualTo(6);
                    reports.onType();
                    reports.onTypeAsWell();
                    assertThat(available(context, "http-report-service"))
                            .as("one bucket for all methods without an annotation of their own")
                            .isEqualTo(3);
                    assertThat(reports).hasToString(reports.toString());
                    assertThat(available(context, "http-report-service")).isEqualTo(3);
                });
    }

    @Test
    void theModeOfTheApplicationAppliesToInlineLimits() {
        runner.withPropertyValues("ratelimit.mode=shadow", "my.rate=1/1h", "my.capacity=1")
                .withBean("r", HTTPReportService.class)
                .run(context -> {
                    HTTPReportService reports = context.getBean(HTTPReportService.class);
                    reports.makePDFReport();
                    reports.makePDFReport();
                    assertThat(available(context, "r-make-pdf-report")).isZero();
                });
        runner.withPropertyValues("ratelimit.mode=off", "my.rate=1/1h", "my.capacity=1")
                .withBean("r", HTTPReportService.class)
                .run(context -> {
                    HTTPReportService reports = context.getBean(HTTPReportService.class);
                    reports.makePDFReport();
                    reports.makePDFReport();
                    assertThat(available(context, "r-make-pdf-report")).isEqualTo(1);
                });
    }
}
