package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.annotation.RateLimited;
import io.ratelimit.key.LimitResolver;
import java.util.List;
import org.junit.jupiter.api.Test;
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
                                + " that changes it gets a new bucket. Add 'ip' or 'user' to the key, or add another"
                                + " policy");
        assertThat(warnings("ratelimit.policies.keyed" + chosen)).isEmpty();
    }

    @Test
    void namesTheActualCostAndTheSourceOfOwnLimitsAsForRequests() {
        String yaml = """
                ratelimit:
                  policies:
                    asked: { rate: 5/s, settle: "attribute:tokens", limit: "bean:plans" }
                    called: { rate: 5/s, limit: "bean:plans", applies-to: annotated }
                """;
        assertThat(new YamlApplication(directory, yaml).withWeb(Settled.class).log(output))
                .containsExactlyInAnyOrder(
                        "INFO Throttle policy 'asked' is enforced: 5/1s, capacity 5, one bucket, a request's own limit by"
                                + " bean:plans, in memory; all methods, all paths, after authentication, settled by"
                                + " attribute:tokens",
                        "INFO Throttle policy 'called' is enforced: 5/1s, capacity 5, one bucket, a call's own limit by"
                                + " bean:plans, in memory; calls of " + Model.class.getName()
                                + ".ask(), settled by #result");
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

    static class Model {

        @RateLimited(policy = "called", settle = "#result")
        public long ask() {
            return 1;
        }
    }

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
}
