package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.annotation.RateLimited;
import io.ratelimit.key.LimitResolver;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** The warnings of the start-up log about policies for annotated methods. */
class AnnotatedPolicyLogTests extends CapturedStart {

    private static final String TIERS = "{ rate: 5/s, applies-to: annotated, tiers: { pro: { rate: 50/s } }%s }";

    @Test
    void warnsOfTiersThatNothingSelects() {
        assertThat(warnings("ratelimit.policies.plain: " + TIERS.formatted("")))
                .containsExactly("WARN Throttle policy 'plain' has tiers, but nothing selects the tier of a call: the"
                        + " policy's own limit applies to all calls. Set 'ratelimit.policies.plain.tier:"
                        + " role', or 'tier' in"
                        + " @RateLimited, or remove the tiers");
    }

    @Test
    void warnsOfSharesThatNothingSelects() {
        String shares = "{ rate: 5/s, applies-to: annotated, shares: { batch: { leave: 30%% } }%s }";
        assertThat(warnings("ratelimit.policies.plain: " + shares.formatted("")))
                .containsExactly(
                        "WARN Throttle policy 'plain' has shares, but nothing selects the share of a call: no call"
                                + " has one. Set 'ratelimit.policies.plain.tier: role', or 'tier' in @RateLimited");
        assertThat(warnings("ratelimit.policies.plain: " + shares.formatted(", tier: role")))
                .isEmpty();
    }

    @Test
    void doesNotWarnIfThePolicyOrAnAnnotationSelectsTheTier() {
        assertThat(warnings("ratelimit.policies.plain: " + TIERS.formatted(", tier: role")))
                .isEmpty();
        assertThat(warnings("ratelimit.policies.tiered: " + TIERS.formatted("")))
                .isEmpty();
    }

    @Test
    void warnsWhereClientsChooseTheirTier() {
        assertThat(warnings("ratelimit.policies.plain: " + TIERS.formatted(", tier: 'header:Plan'")))
                .containsExactly(
                        "WARN Clients choose their tier of the throttle policy 'plain' (header:plan). Set 'tier' to"
                                + " 'role', or to 'bean:NAME' or 'expression:SPEL' that reads what clients can't"
                                + " choose");
    }

    @Test
    void warnsIfClientsChooseTheirKeyUnlessAnAnnotationHasAnother() {
        String chosen = ": { rate: 5/s, key: header:X-Key, applies-to: annotated }";

        assertThat(warnings("ratelimit.policies.plain" + chosen))
                .containsExactly(
                        "WARN Throttle policy 'plain' is keyed only by what clients choose (header:x-key): a client"
                                + " that changes it gets a new bucket. Add another policy, keyed by 'ip' or 'user'");
        assertThat(warnings("ratelimit.policies.keyed" + chosen)).isEmpty();
    }

    @Test
    void namesTheActualCostAndTheSourceOfOwnLimitsAsForRequests() {
        String yaml = """
                ratelimit:
                  policies:
                    asked: { rate: 5/s, settle: "attribute:tokens", max-cost: 5, limit: "bean:plans" }
                    called: { rate: 5/s, limit: "bean:plans", max-cost: 5, applies-to: annotated }
                """;
        assertThat(new YamlApplication(directory, yaml).withWeb(Settled.class).log(output))
                .filteredOn(line -> !line.startsWith(SUMMARY))
                .containsExactlyInAnyOrder(
                        "INFO asked: 5/1s, capacity 5, one bucket, a request's own limit by bean:plans; all requests; after authentication; settled by attribute:tokens",
                        "INFO called: 5/1s, capacity 5, one bucket, a call's own limit by bean:plans; calls of "
                                + Model.class.getName() + ".ask(), settled by #result");
    }

    @Test
    void warnsIfOneCostlyCallMayPutTheBucketOfAllIntoDebt() {
        String yaml = """
                ratelimit:
                  policies:
                    asked: { rate: 5/s, settle: "attribute:tokens" }
                    keyed: { rate: 5/s, settle: "attribute:tokens", key: ip }
                    off: { rate: 5/s, settle: "attribute:tokens", mode: off }
                    called: { rate: 5/s, key: user, applies-to: annotated }
                """;
        assertThat(new YamlApplication(directory, yaml)
                        .withWeb(SettledInOneBucket.class)
                        .log(output))
                .filteredOn(line -> line.startsWith("WARN "))
                .containsExactlyInAnyOrder(
                        "WARN Throttle policy 'asked' has 'settle' without a 'max-cost', and one bucket for all requests:"
                                + " after a single request that costs much more than its estimate, all others are denied"
                                + " until time has paid the debt. Set 'ratelimit.policies.asked.max-cost', or a 'key'",
                        "WARN Throttle policy 'called' has 'settle' without a 'max-cost', and one bucket for all calls:"
                                + " after a single call that costs much more than its estimate, all others are denied"
                                + " until time has paid the debt. Set 'ratelimit.policies.called.max-cost', or a 'key'",
                        "WARN Throttle policy 'inline' has 'settle' without a 'max-cost', and one bucket for all calls:"
                                + " after a single call that costs much more than its estimate, all others are denied"
                                + " until time has paid the debt. Give the annotation a key, or put the limit into a"
                                + " policy with a 'max-cost'");
    }

    @ParameterizedTest
    @ValueSource(strings = {"ratelimits.policies.api", "rate-limiter.policies.api", "ratelimit:\n\npolicies.api"})
    void warnsOfAPolicyInAnotherPlaceBesideInlineLimits(String policy) {
        String property = policy.substring(policy.indexOf('\n') + 1).strip() + ".rate";
        assertThat(inlineWarnings(policy + ": { rate: 5/s }"))
                .containsExactly("WARN There are no policies below 'ratelimit.policies', and '" + property
                        + "' limits nothing. Correct its name, or the indentation of 'policies'");
    }

    @ParameterizedTest
    @ValueSource(strings = {"server.port: 0", "retention.policies.api.rate: 5", "policies.backup.days: 5"})
    void doesNotWarnOfOtherPropertiesBesideInlineLimits(String yaml) {
        assertThat(inlineWarnings(yaml)).isEmpty();
    }

    private List<String> inlineWarnings(String yaml) {
        return new YamlApplication(directory, yaml)
                .withWeb(Inline.class).log(output).stream()
                        .filter(line -> line.startsWith("WARN "))
                        .toList();
    }

    /** Adds the other policies that the methods name, which cause no warnings. */
    private List<String> warnings(String policy) {
        String name = policy.replaceAll("ratelimit.policies.(\\w+):.*", "$1");
        StringBuilder yaml = new StringBuilder(policy);
        for (String other : List.of("plain", "tiered", "keyed")) {
            yaml.append(
                    other.equals(name)
                            ? ""
                            : "\nratelimit.policies." + other
                                    + ": { rate: 5/s, applies-to: annotated, tiers: { pro: { rate: 50/s } }, tier:"
                                    + " role }");
        }
        return new YamlApplication(directory, yaml.toString())
                .withWeb(Annotated.class).log(output).stream()
                        .filter(line -> line.startsWith("WARN "))
                        .toList();
    }

    static class Work {

        @RateLimited("plain")
        public void plain() {}

        @RateLimited(policy = "tiered", tier = "'pro'")
        public void tiered() {}

        @RateLimited(policy = "keyed", key = "'all'")
        public void keyed() {}
    }

    static class Search {

        @RateLimited(rate = "5/s")
        public void search() {}
    }

    static class Model {

        @RateLimited(policy = "called", settle = "#result")
        public long ask() {
            return 1;
        }
    }

    static class Models {

        @RateLimited(policy = "called", key = "'all'", settle = "#result")
        public long ask() {
            return 1;
        }

        @RateLimited(name = "inline", rate = "5/s", settle = "#result")
        public long inline() {
            return 1;
        }

        @RateLimited(name = "each", rate = "5/s", key = "#user", settle = "#result")
        public long each(String user) {
            return 1;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @Import({YamlApplication.WebMvc.class, Models.class})
    static class SettledInOneBucket {}

    @Configuration(proxyBeanMethods = false)
    @Import({YamlApplication.WebMvc.class, Model.class})
    static class Settled {

        @Bean
        LimitResolver plans() {
            return request -> null;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @Import({YamlApplication.WebMvc.class, Work.class})
    static class Annotated {}

    @Configuration(proxyBeanMethods = false)
    @Import({YamlApplication.WebMvc.class, Search.class})
    static class Inline {}
}
