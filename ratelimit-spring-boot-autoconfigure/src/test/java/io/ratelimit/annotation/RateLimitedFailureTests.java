package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BucketSpec;
import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitFailoverAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitRedisAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitReportAutoConfiguration;
import io.ratelimit.policy.RateLimitConfigurationException;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.context.PropertyPlaceholderAutoConfiguration;
import org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import reactor.core.publisher.Flux;

/** Mistakes that stop the start, so that no limit is silently off. */
@ExtendWith(OutputCaptureExtension.class)
class RateLimitedFailureTests {

    static final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    RateLimitAutoConfiguration.class,
                    RateLimitAnnotationAutoConfiguration.class,
                    RateLimitReportAutoConfiguration.class))
            .withPropertyValues(
                    "ratelimit.policies.search.rate=2/1h",
                    "ratelimit.policies.search.applies-to=annotated",
                    "ratelimit.policies.requests.rate=2/1h");

    /** The JVM may return the methods of a class in any order, so a message may name either of two. */
    static Stream<Arguments> mistakes() {
        return Stream.of(
                Arguments.of(Unknown.class, "names the throttle policy 'serach', which doesn't exist"),
                Arguments.of(OfRequests.class, "names the throttle policy 'requests', which limits requests"),
                Arguments.of(Both.class, "has both a policy and a rate"),
                Arguments.of(Neither.class, "has neither a policy nor a rate"),
                Arguments.of(NameAlone.class, "has a name or a capacity, but no rate"),
                Arguments.of(TierOfInlineLimit.class, "has both a rate and a tier"),
                Arguments.of(MissingTiers.class, "has a tier, but the throttle policy 'search' has no tiers"),
                Arguments.of(BadRate.class, "'100' has no unit"),
                Arguments.of(BadCapacity.class, "capacity must be a whole number, but was 'ten'"),
                Arguments.of(ArabicCapacity.class, "capacity must be a whole number, but was '\u0661\u0660'"),
                Arguments.of(BadName.class, "the name of a policy must be lower-case letters"),
                Arguments.of(NameOfAPolicy.class, "'search' is already the name of a policy of the configuration"),
                Arguments.of(Overloaded.class, "'o-call' is already the name of another limit: o.call(String"),
                Arguments.of(TwoUnnamed.class, "has two limits with the name 'o-call'"),
                Arguments.of(SameNameOtherRate.class, "'shared' is already the name of another limit: "),
                Arguments.of(BadSpel.class, "has an invalid key '#id +': SpEL can't parse it"),
                Arguments.of(NoSuchParameter.class, "the method has no parameter '#other', only: "),
                Arguments.of(Nested.class, "the method has no parameter '#other', only: "),
                Arguments.of(Unquoted.class, "'all' is neither an argument,"),
                Arguments.of(ArgumentOfAnElement.class, "'id' is neither an argument,"),
                Arguments.of(
                        KeyOfRecord.class,
                        "has an invalid key '#tenant': " + KeyOfRecord.Tenant.class.getName() + " isn't a text"),
                Arguments.of(KeyOfOptional.class, "java.util.Optional isn't a text"),
                Arguments.of(BadCost.class, "has an invalid cost '#':"),
                Arguments.of(NoNumber.class, "has an invalid cost ''two'': it is no number"),
                Arguments.of(SettlesNothing.class, "has a settle, but the method returns nothing"),
                Arguments.of(SettlesFuture.class, "has a settle, but the method returns a java.util.concurrent.Future"),
                Arguments.of(SettlesStream.class, "has a settle, but the method returns a stream of several values"),
                Arguments.of(SettlesUnknown.class, "the method has no parameter '#usage', only: "),
                Arguments.of(SettlesText.class, "has an invalid settle ''two'': it is no number"),
                Arguments.of(SettlesTwice.class, "has a settle, and names the throttle policy 'search' twice"),
                Arguments.of(
                        FallsBackOnce.class, "has two fallbacks, or one and none, for the throttle policy 'search'"),
                Arguments.of(ConditionOfText.class, "has the condition ''no'', which is neither true nor false"),
                Arguments.of(ConditionOfNull.class, "has the condition 'null', which is neither true nor false"),
                Arguments.of(
                        ConditionUnknown.class, "has an invalid condition '#size > 1': the method has no parameter"),
                Arguments.of(Exempt.class, "stands beside a @RateLimitExempt, which would free the calls of the limit"),
                Arguments.of(CostOfCallsInFlight.class, "has a cost, but 'o-call' has no rate"),
                Arguments.of(SettledCallsInFlight.class, "has a settle, but 'o-call' has no rate"),
                Arguments.of(NeverFits.class, "has the cost 3, but the capacity of 'search' is 2"),
                Arguments.of(
                        NoFallback.class,
                        "has an invalid fallback 'later': " + NoFallback.class.getName()
                                + " has no method of that name with"),
                Arguments.of(
                        WrongFallback.class, "it returns java.lang.Object, which isn't assignable to java.lang.String"),
                Arguments.of(FallbackOnType.class, "has the fallback 'later', but stands on a type"),
                Arguments.of(FallbackToItself.class, "has the method itself as the fallback 'call'"));
    }

    @ParameterizedTest
    @MethodSource("mistakes")
    void aMistakeStopsTheStartEvenIfTheBeanIsLazy(Class<?> type, String message) {
        assertStopsTheStart(type, message);
    }

    static void assertStopsTheStart(Class<?> type, String message) {
        runner.withBean("o", type).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains(message));
        runner.withInitializer(context -> context.addBeanFactoryPostProcessor(
                        beans -> beans.getBeanDefinition("o").setLazyInit(true)))
                .withBean("o", type)
                .run(context ->
                        assertThat(messages(context.getStartupFailure())).contains(message));
    }

    @Test
    void sharesHaveNoKeyAndNoWaitOfAnAnnotation() {
        ApplicationContextRunner shares = runner.withPropertyValues("ratelimit.policies.search.shares.batch.leave=30%");
        shares.withBean(KeyOfShares.class).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains("has a key, but the throttle policy 'search' is one bucket with guaranteed shares"));
        shares.withBean(WaitForShares.class).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains("has a maxWait, but the throttle policy 'search' is one bucket with guaranteed shares"));
    }

    /** The tiers and overrides that no call of the annotation has don't matter. */
    @Test
    void aConstantCostFitsTheTiersAndOverridesOfTheCalls() {
        ApplicationContextRunner tiers = runner.withPropertyValues(
                "ratelimit.policies.search.tiers.free.rate=1/1h", "ratelimit.policies.search.tiers.pro.rate=3/1h");
        String free = "has the cost 2, but the capacity of the tier 'free' of 'search' is 1";
        tiers.withBean(CostOfFree.class).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains(free));
        tiers.withBean(CostOfAnyTier.class).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains(free));
        tiers.withBean(CostOfPro.class).withBean(CostOfNoTier.class).run(context -> assertThat(context)
                .hasNotFailed());
        runner.withPropertyValues(
                        "ratelimit.policies.search.key=user",
                        "ratelimit.policies.search.overrides[0].keys=alice",
                        "ratelimit.policies.search.overrides[0].rate=1/1h")
                .withBean(CostOfNoTier.class)
                .run(context -> assertThat(messages(context.getStartupFailure()))
                        .contains("has the cost 2, but the capacity of an override of 'search' is 1"));
    }

    @Test
    void anArgumentThatMayBeATextIsAKey() {
        runner.withBean(KeysOfTexts.class).run(context -> assertThat(context).hasNotFailed());
    }

    /** As the name of a tier, {@code FREE_TRIAL} is {@code free-trial}. */
    @Test
    void aConstantTierIsReadAsThoseOfCalls() {
        ApplicationContextRunner trial = runner.withPropertyValues(
                "ratelimit.policies.search.rate=9/1h", "ratelimit.policies.search.tiers.free-trial.rate=1/1h");
        trial.withBean(CostOfTrial.class).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains("has the cost 2, but the capacity of the tier 'free-trial' of 'search' is 1"));
        runner.withPropertyValues(
                        "ratelimit.policies.search.rate=1/1h", "ratelimit.policies.search.tiers.free-trial.rate=9/1h")
                .withBean(CostOfTrial.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void aConstantTierIsOneOfThePolicy() {
        runner.withPropertyValues("ratelimit.policies.search.tiers.professional.rate=9/1h")
                .withBean(MisspeltTier.class)
                .run(
                        context -> assertThat(messages(context.getStartupFailure()))
                                .contains(
                                        "has the tier 'profesional', but those of the throttle policy 'search' are: professional"));
        runner.withPropertyValues("ratelimit.policies.search.shares.profesional.leave=30%")
                .withBean(MisspeltTier.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void aConstantTierIsOneOfOneOfThePolicies() {
        runner.withPropertyValues(
                        "ratelimit.policies.search.tiers.gold.rate=9/1h",
                        "ratelimit.policies.burst.rate=5/1s",
                        "ratelimit.policies.burst.key=user",
                        "ratelimit.policies.burst.applies-to=annotated",
                        "ratelimit.policies.burst.tiers.silver.rate=9/1s")
                .withBean(GoldOfTwoPolicies.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void aConstantCostFitsWhatAShareLeavesToItsCalls() {
        ApplicationContextRunner shares = runner.withPropertyValues(
                "ratelimit.policies.search.rate=4/1h", "ratelimit.policies.search.shares.pro.leave=30%");
        shares.withBean(CostOfPro.class).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains("has the cost 3, but the capacity of the part of 'search' for 'pro' is 2"));
        shares.withPropertyValues("ratelimit.policies.search.rate=5/1h")
                .withBean(CostOfPro.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThatThrownBy(() -> context.getBean(Throttlers.class)
                                    .get("search")
                                    .reconfigure(BucketSpec.of("4/1h")))
                            .hasMessageContaining("capacity of the part of 'search' for 'pro' must be at least 3");
                });
    }

    @Test
    void callsOfAPolicyWithALeaseDoNotWait() {
        ApplicationContextRunner leased = runner.withConfiguration(AutoConfigurations.of(
                        DataRedisAutoConfiguration.class,
                        RateLimitRedisAutoConfiguration.class,
                        RateLimitFailoverAutoConfiguration.class))
                .withPropertyValues(
                        "spring.data.redis.port=1",
                        "ratelimit.policies.search.backend=redis",
                        "ratelimit.policies.search.lease=50ms");
        leased.withBean(WaitForShares.class).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains("has a maxWait, but the throttle policy 'search' has a lease"));
        leased.withBean(NoWait.class).run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void aPolicyOfCallsInFlightTakesACostWhereATierHasARate() {
        ApplicationContextRunner calls = new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class, RateLimitAnnotationAutoConfiguration.class))
                .withPropertyValues(
                        "ratelimit.policies.search.in-flight=2", "ratelimit.policies.search.applies-to=annotated");
        calls.withBean(CostOfNoTier.class).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains("has a cost, but 'search' has no rate"));
        calls.withPropertyValues("ratelimit.policies.search.tiers.free.rate=2/1h")
                .withBean(CostOfFree.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    static String messages(Throwable failure) {
        StringBuilder messages = new StringBuilder();
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            messages.append(cause.getMessage()).append('\n');
        }
        return messages.toString();
    }

    @Test
    void annotationsOfOnePolicyMayDifferInFallbackByCondition() {
        runner.withBean(FallsBackByCondition.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void anUnknownPolicyIsReportedWithTheNearestName() {
        runner.withBean(Unknown.class).run(context -> {
            RateLimitConfigurationException failure = (RateLimitConfigurationException) context.getStartupFailure();
            assertThat(failure)
                    .hasMessage("@RateLimited on " + Unknown.class.getName()
                            + ".call() names the throttle policy 'serach', which doesn't exist. The policies"
                            + " for annotated methods are: search.");
            assertThat(failure.action())
                    .isEqualTo("Define 'ratelimit.policies.serach' with 'applies-to: annotated', or correct the name:"
                            + " did you mean 'search'?");
        });
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "MissingRate | has the rate '${my.rate}', but there is no property 'my.rate'. | Define 'my.rate', or"
                        + " write a default: '${my.rate:5/1m}'.",
                "MissingPolicy | has the policy '${a}-${b}', but there is no property 'a'. | Define 'a', or write a"
                        + " default: '${a:…}'.",
                "LikeARate | names the throttle policy '5/1m', which looks like a rate. | If it is a rate, write"
                        + " '@RateLimited(rate = \"5/1m\")'.",
                "NameOfAnother | names 'classy', which isn't a policy of the configuration, but the inline limit of"
                        + " another @RateLimited. | To share the limit, write '@RateLimited(name = \"classy\", rate ="
                        + " \"5/1m\", capacity = \"9\")' in both places, or move it to 'ratelimit.policies.classy' with"
                        + " 'applies-to: annotated'.",
                "PartOfTheRequest | has an invalid key 'user': 'user' is neither an argument, which is written '#name', nor"
                        + " a text, which is written in quotes. | Only policies have keys made from the request: define"
                        + " 'ratelimit.policies.NAME: { key: user, rate: 5/1m, applies-to: annotated }', and write"
                        + " '@RateLimited(\"NAME\")'.",
                "AnArgument | has an invalid key 'user': 'user' is neither an argument, which is written '#name', nor"
                        + " a text, which is written in quotes. | Write an expression over the arguments, such as '#id',"
                        + " '#p0' or '#tenant.id'."
            })
    void theActionNamesTheCorrection(String type, String problem, String action) throws ClassNotFoundException {
        Class<?> bean = Class.forName(RateLimitedFailureTests.class.getName() + "$" + type);
        runner.withConfiguration(AutoConfigurations.of(PropertyPlaceholderAutoConfiguration.class))
                .withBean("first", Classy.class)
                .withBean(bean)
                .run(context -> {
                    RateLimitConfigurationException failure =
                            (RateLimitConfigurationException) context.getStartupFailure();
                    assertThat(failure)
                            .hasMessageStartingWith("@RateLimited on " + bean.getName() + ".call(")
                            .hasMessageEndingWith(") " + problem);
                    assertThat(failure.action()).isEqualTo(action);
                });
    }

    @Test
    void aPolicyThatLimitsRequestsIsNotSuggested() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class, RateLimitAnnotationAutoConfiguration.class))
                .withPropertyValues("ratelimit.policies.search.rate=2/1h")
                .withBean(Unknown.class)
                .run(context -> {
                    RateLimitConfigurationException failure =
                            (RateLimitConfigurationException) context.getStartupFailure();
                    assertThat(failure)
                            .hasMessageEndingWith("which doesn't exist. No policy is for annotated methods.");
                    assertThat(failure.action()).endsWith("or correct the name.");
                });
    }

    @Test
    void anInlineLimitOfTwoBeansNeedsAName() {
        runner.withBean("one", Inline.class).withBean("two", Inline.class).run(context -> assertThat(
                        messages(context.getStartupFailure()))
                .contains("the class " + Inline.class.getName()
                        + " has several beans (one, two), so the limit can't be named"));
    }

    @Test
    void annotationsMayShareAnInlineLimitByItsName() {
        runner.withBean("one", Named.class).withBean("two", Named.class).run(context -> assertThat(context)
                .hasNotFailed());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "paths=/a",
                "exclude-paths=/a",
                "methods=GET",
                "phase=after-authentication",
                "condition=true",
                "settle=code"
            })
    void aPolicyForAnnotatedMethodsSelectsNoRequests(String property) {
        runner.withPropertyValues("ratelimit.policies.search." + property)
                .run(context -> assertThat(messages(context.getStartupFailure()))
                        .contains("applies-to: annotated")
                        .contains("ratelimit.policies.search." + property.replaceAll("=.*", "")));
    }

    @Test
    void theLogNamesTheMethodsOfEachPolicyAndPoliciesWithoutMethods(CapturedOutput output) {
        runner.withPropertyValues(
                        "ratelimit.policies.unused.rate=1/1h",
                        "ratelimit.policies.unused.applies-to=annotated",
                        "ratelimit.policies.keyed.rate=1/1h",
                        "ratelimit.policies.keyed.applies-to=annotated")
                .withBean("o", Inline.class)
                .withBean(Used.class)
                .run(context -> assertThat(output)
                        .contains("o-call: 1/1h, capacity 1, one bucket; calls of " + Inline.class.getName()
                                + ".call() (declared by @RateLimited)")
                        .contains("search: 2/1h, capacity 2, one bucket; calls of 2 methods, such as "
                                + Used.class.getName() + ".call()")
                        .contains("keyed: 1/1h, capacity 1, one bucket; calls of " + Used.class.getName()
                                + ".keyed(String), a bucket for each #id")
                        .contains(
                                "Throttle policy 'unused' applies to annotated methods, but no @RateLimited names it, so"
                                        + " only code can use it")
                        .doesNotContain("'search' limits no requests"));
    }

    static class Used {
        @RateLimited("search")
        void call() {}

        @RateLimited("search")
        void other() {}

        @RateLimited(policy = "keyed", key = "#id")
        void keyed(String id) {}
    }

    @Test
    void theLogDescribesAllSettingsOfAPolicy(CapturedOutput output) {
        runner.withPropertyValues(
                        "ratelimit.policies.keyed.rate=7/1h",
                        "ratelimit.policies.keyed.applies-to=annotated",
                        "ratelimit.policies.keyed.key=user",
                        "ratelimit.policies.keyed.on-missing-key=deny",
                        "ratelimit.policies.keyed.status=503",
                        "ratelimit.policies.keyed.cost=2",
                        "ratelimit.policies.keyed.tiers.pro.rate=9/1h",
                        "ratelimit.policies.keyed.tier=role",
                        "ratelimit.policies.keyed.overrides[0].keys=bob",
                        "ratelimit.policies.keyed.overrides[0].mode=off")
                .withBean(Used.class)
                .run(context -> assertThat(output)
                        .contains(
                                "keyed: 7/1h, capacity 7, a bucket for each user (denies a call that lacks one), 2 tokens a call, in tiers (pro: 9/1h, capacity 9) by role, 1 of them overridden; calls of "
                                        + Used.class.getName() + ".keyed(String), a bucket for each #id; status 503"));
    }

    static class Classy {
        @RateLimited(rate = "5/1m", capacity = "9", name = "classy")
        void call() {}
    }

    static class NameOfAnother {
        @RateLimited("classy")
        void call() {}
    }

    static class MissingRate {
        @RateLimited(rate = "${my.rate}")
        void call() {}
    }

    static class MissingPolicy {
        @RateLimited("${a}-${b}")
        void call() {}
    }

    static class LikeARate {
        @RateLimited("5/1m")
        void call() {}
    }

    static class PartOfTheRequest {
        @RateLimited(policy = "search", key = "user")
        void call() {}
    }

    static class AnArgument {
        @RateLimited(policy = "search", key = "user")
        void call(String user) {}
    }

    static class Unknown {
        @RateLimited("serach")
        void call() {}
    }

    static class OfRequests {
        @RateLimited("requests")
        void call() {}
    }

    static class SettlesNothing {
        @RateLimited(policy = "search", settle = "#result")
        void call() {}
    }

    static class SettlesFuture {
        @RateLimited(policy = "search", settle = "#result")
        Future<Long> call() {
            return CompletableFuture.completedFuture(1L);
        }
    }

    static class SettlesStream {
        @RateLimited(policy = "search", settle = "#result")
        Flux<Long> call() {
            return Flux.just(1L);
        }
    }

    static class SettlesUnknown {
        @RateLimited(policy = "search", settle = "#usage.total")
        long call() {
            return 1;
        }
    }

    static class SettlesText {
        @RateLimited(policy = "search", settle = "'two'")
        long call() {
            return 1;
        }
    }

    static class FallsBackByCondition {

        @RateLimited(policy = "search", key = "#user", condition = "#user != null", fallback = "none")
        @RateLimited(policy = "search", key = "#tenant", condition = "#user == null")
        public void call(String user, String tenant) {}

        public void none(String user, String tenant) {}
    }

    static class FallsBackOnce {

        @RateLimited(policy = "search", key = "#user", fallback = "none")
        @RateLimited(policy = "search", key = "#tenant")
        public void call(String user, String tenant) {}

        public void none(String user, String tenant) {}
    }

    static class SettlesTwice {
        @RateLimited(policy = "search", key = "'one'", settle = "#result")
        @RateLimited(policy = "search", key = "'other'")
        long call() {
            return 1;
        }
    }

    static class Both {
        @RateLimited(policy = "search", rate = "1/1h")
        void call() {}
    }

    static class Neither {
        @RateLimited
        void call() {}
    }

    static class NameAlone {
        @RateLimited(policy = "search", name = "name")
        void call() {}
    }

    static class TierOfInlineLimit {
        @RateLimited(rate = "1/1h", tier = "'gold'")
        void call() {}
    }

    static class KeyOfShares {
        @RateLimited(policy = "search", key = "#a")
        void call(String a) {}
    }

    static class WaitForShares {
        @RateLimited(policy = "search", maxWait = "1s")
        void call() {}
    }

    static class MissingTiers {
        @RateLimited(policy = "search", tier = "'gold'")
        void call() {}
    }

    static class GoldOfTwoPolicies {
        @RateLimited(
                policy = {"search", "burst"},
                tier = "'gold'")
        void call() {}
    }

    static class BadRate {
        @RateLimited(rate = "5/100")
        void call() {}
    }

    static class BadCapacity {
        @RateLimited(rate = "1/1h", capacity = "ten")
        void call() {}
    }

    static class ArabicCapacity {
        @RateLimited(rate = "1/1h", capacity = "\u0661\u0660")
        void call() {}
    }

    static class BadName {
        @RateLimited(rate = "1/1h", name = "My Name")
        void call() {}
    }

    static class NameOfAPolicy {
        @RateLimited(rate = "1/1h", name = "search")
        void call() {}
    }

    static class Overloaded {
        @RateLimited(rate = "1/1h", name = "${none:}")
        void call(String text) {}

        @RateLimited(rate = "1/1h")
        void call(String text, int number) {}
    }

    static class TwoUnnamed {
        @RateLimited(rate = "1/1h")
        @RateLimited(rate = "1/1h", cost = "1")
        void call() {}
    }

    static class SameNameOtherRate {
        @RateLimited(rate = "1/1h", name = "shared")
        void one() {}

        @RateLimited(rate = "2/1h", name = "shared")
        void two() {}
    }

    static class BadSpel {
        @RateLimited(policy = "search", key = "#id +")
        void call(String id) {}
    }

    static class NoSuchParameter {
        @RateLimited(policy = "search", key = "#other")
        void call(String id) {}
    }

    static class Nested {
        @RateLimited(policy = "search", cost = "#id.length() > 5 ? 1 : #id.indexOf(#other)")
        void call(String id) {}
    }

    static class Unquoted {
        @RateLimited(policy = "search", key = "all")
        void call() {}
    }

    static class ArgumentOfAnElement {
        @RateLimited(policy = "search", key = "#ids.contains(id)")
        void call(List<String> ids) {}
    }

    static class NoNumber {
        @RateLimited(policy = "search", cost = "'two'")
        void call() {}
    }

    static class BadCost {
        @RateLimited(policy = "search", cost = "#")
        void call() {}
    }

    static class ConditionOfText {
        @RateLimited(policy = "search", condition = "'no'")
        public void call() {}
    }

    static class ConditionOfNull {
        @RateLimited(policy = "search", condition = "null")
        public void call() {}
    }

    static class ConditionUnknown {
        @RateLimited(policy = "search", condition = "#size > 1")
        public void call() {}
    }

    static class Exempt {
        @RateLimited("search")
        @RateLimitExempt
        public void call() {}
    }

    static class NeverFits {
        @RateLimited(policy = "search", cost = "3")
        void call() {}
    }

    static class NoFallback {
        @RateLimited(policy = "search", fallback = "later")
        String call(String text) {
            return text;
        }

        String later(int other) {
            return "";
        }
    }

    static class WrongFallback {
        @RateLimited(policy = "search", fallback = "later")
        String call(String text) {
            return text;
        }

        Object later(String text) {
            return text;
        }
    }

    @RateLimited(policy = "search", fallback = "later")
    static class FallbackOnType {
        void call() {}

        void later() {}
    }

    static class FallbackToItself {
        @RateLimited(policy = "search", fallback = "call")
        void call() {}
    }

    static class Inline {
        @RateLimited(rate = "1/1h")
        void call() {}
    }

    static class Named {
        @RateLimited(rate = "1/1h", name = "named")
        void call() {}
    }

    static class CostOfFree {
        @RateLimited(policy = "search", cost = "2", tier = "'FREE'")
        void call() {}
    }

    static class CostOfPro {
        @RateLimited(policy = "search", cost = "3", tier = "'pro'")
        void call() {}
    }

    static class KeyOfRecord {
        record Tenant(String id) {}

        @RateLimited(policy = "search", key = "#tenant")
        void call(Tenant tenant) {}
    }

    static class KeyOfOptional {
        @RateLimited(policy = "search", key = "#p0")
        void call(Optional<String> user) {}
    }

    static class KeysOfTexts {
        @RateLimited(policy = "search", key = "#p0")
        void ofNumber(int id) {}

        @RateLimited(policy = "search", key = "#p0")
        void ofArray(String[] ids) {}

        @RateLimited(policy = "search", key = "#p0")
        void ofUuid(UUID id) {}

        @RateLimited(policy = "search", key = "#p0")
        void ofObject(Object id) {}

        @RateLimited(policy = "search", key = "#p0")
        void ofConstant(Thread.State state) {}

        @RateLimited(policy = "search", key = "#p0")
        <T> void ofVariable(T id) {}
    }

    static class CostOfTrial {
        @RateLimited(policy = "search", cost = "2", tier = "'FREE_TRIAL'")
        void call() {}
    }

    static class MisspeltTier {
        @RateLimited(policy = "search", tier = "'profesional'")
        void call() {}
    }

    static class CostOfAnyTier {
        @RateLimited(policy = "search", cost = "2", tier = "#p0")
        void call(String tier) {}
    }

    static class CostOfNoTier {
        @RateLimited(policy = "search", cost = "2")
        void call() {}
    }

    static class NoWait {
        @RateLimited(policy = "search", maxWait = "0s")
        void call() {}
    }

    static class CostOfCallsInFlight {
        @RateLimited(inFlight = "2", cost = "5")
        void call() {}
    }

    static class SettledCallsInFlight {
        @RateLimited(inFlight = "2", settle = "#result")
        int call() {
            return 1;
        }
    }
}
