package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.Throttlers;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;

/** How {@code tiers}, {@code tier} and {@code refund-on} are read, and what is printed where they are wrong. */
@ExtendWith(OutputCaptureExtension.class)
class TierConfigurationTests {

    private static final String API = "ratelimit.policies.api";
    private static final String YAML = API + ": { rate: 5/s, tiers: { pro-plus: { rate: 50/s } }, tier: role }";

    @TempDir
    private Path directory;

    private CapturedOutput output;

    @BeforeEach
    void capture(CapturedOutput output) {
        this.output = output;
    }

    private String failure(String policy) {
        return new YamlApplication(directory, API + ": { rate: 5/s, " + policy + " }")
                .withWeb()
                .failure(output);
    }

    private static Map<String, BucketSpec> tiers(YamlApplication application) {
        try (ConfigurableApplicationContext context = application.start()) {
            return context.getBean(Throttlers.class).get("api").policy().tiers();
        }
    }

    @Test
    void aTierHasThePolicysRefillAndACapacityOfItsOwn() {
        YamlApplication application = new YamlApplication(
                directory,
                API
                        + ": { rate: 5/s, capacity: 9, refill: interval, tiers: { a: { rate: 7/s }, b: { rate: 8/s, capacity:"
                        + " 80 } }, tier: role }");
        assertThat(tiers(application))
                .isEqualTo(Map.of(
                        "a", BucketSpec.of("7/s").withRefill(BucketSpec.Refill.INTERVAL),
                        "b", BucketSpec.of("8/s").withCapacity(80).withRefill(BucketSpec.Refill.INTERVAL)));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "tiers: { pro: { capacity: 9 } }, tier: role | The tier 'pro' has no rate. | Say how many tokens come back",
                "tiers: { Pro: { rate: 9/s } }, tier: role | 'Pro' can't be the name of a tier | Rename the tier",
                "tiers: { pro: { rate: 9/s } } | has tiers, but nothing says which tier a request belongs to. | Say 'ratelimit.policies.api.tier: role'",
                "tier: role | says which tier a request belongs to, but there are none. | Name them",
                "tiers: { pro: { rate: 9/s } }, tier: roles | Property: ratelimit.policies.api.tier | 'roles' is not what a tier can be told by: say role",
                "tiers: { pro: { rate: 9/s } }, tier: 'bean:plan' | there is no bean 'plan' | Declare a bean",
                "tiers: { pro: { rate: 9/s, capacity: 0 } }, tier: role | ratelimit.policies.api.tiers.pro.capacity | but was 0",
                "tiers: { low: { rate: 2/s } }, tier: role, cost: 3 | ratelimit.policies.api.tiers.low.rate | capacity must be at least the cost of the policy, 3, but was 2",
                "tiers: { low: { rate: 2/s } }, tier: role, phase: before-authentication | ratelimit.policies.api.phase | The tier 'role' asks for the user",
                "tiers: { low: { rate: 2/s, speed: 3 } }, tier: role | ratelimit.policies.api.tiers.low.speed | A tier has: rate, capacity.",
                "applies-to: annotated, refund-on: [404] | ratelimit.policies.api.refund-on | limits the calls of methods and no requests",
                "refund-on: [40x] | ratelimit.policies.api.refund-on | statuses such as 404, 5xx or \"!401\", but was '40x'",
                "refund-on: ['2xx', '!2xx'] | ratelimit.policies.api.refund-on | must leave a status",
            })
    void aMistakeStopsTheStart(String policy, String what, String action) {
        assertThat(failure(policy)).contains(what).contains(action);
    }

    @Test
    void anEnvironmentVariableMayChangeATierThatIsThere() {
        YamlApplication changed =
                new YamlApplication(directory, YAML).withVariable("RATELIMIT_POLICIES_API_TIERS_PROPLUS_RATE", "60/s");
        assertThat(tiers(changed)).containsEntry("pro-plus", BucketSpec.of("60/s"));
    }

    @Test
    void anEnvironmentVariableThatNamesNoTierStopsTheStart() {
        assertThat(new YamlApplication(directory, YAML)
                        .withVariable("RATELIMIT_POLICIES_API_TIERS_PROO_RATE", "60/s")
                        .failure(output))
                .contains("The environment variable 'RATELIMIT_POLICIES_API_TIERS_PROO_RATE' sets no property");
    }
}
