package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.CapturedStart;
import io.ratelimit.autoconfigure.YamlApplication;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;

/** The reading of {@code tiers} and {@code tier}. */
class TierConfigurationTests extends CapturedStart {

    private static final String API = "ratelimit.policies.api";
    private static final String YAML = API + ": { rate: 5/s, tiers: { pro-plus: { rate: 50/s } }, tier: role }";

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
                        + ": { rate: 5/s, capacity: 9, refill: interval, tiers: { a: { rate: 7/s }, b: { rate: 8/s,"
                        + " capacity:"
                        + " 80 } }, tier: role }");
        assertThat(tiers(application))
                .isEqualTo(Map.of(
                        "a", BucketSpec.of("7/s").withRefill(BucketSpec.Refill.INTERVAL),
                        "b", BucketSpec.of("8/s").withCapacity(80).withRefill(BucketSpec.Refill.INTERVAL)));
    }

    @Test
    void anEnvironmentVariableMayChangeATierThatIsThere() {
        YamlApplication changed =
                new YamlApplication(directory, YAML).withVariable("RATELIMIT_POLICIES_API_TIERS_PRO_PLUS_RATE", "60/s");
        assertThat(tiers(changed)).isEqualTo(Map.of("pro-plus", BucketSpec.of("60/s")));
    }

    @Test
    void aTierMayHaveItsOwnNumberOfRequestsInFlight() {
        YamlApplication application = new YamlApplication(
                directory,
                API + ": { rate: 5/s, in-flight: 2, tiers: { a: { in-flight: 8 }, b: { rate: 8/s } }, tier: role }");
        assertThat(tiers(application))
                .isEqualTo(Map.of(
                        "a", BucketSpec.of("5/s").withInFlight(8),
                        "b", BucketSpec.of("8/s").withInFlight(2)));
    }

    @Test
    void aPolicyMayHaveNothingButANumberOfRequestsInFlight() {
        YamlApplication application = new YamlApplication(
                directory, API + ": { key: user, in-flight: 2, tiers: { a: { in-flight: 8 } }, tier: role }");
        assertThat(tiers(application)).isEqualTo(Map.of("a", BucketSpec.inFlight(8)));
    }

    @Test
    void theTokensOfATierMayHaveACostWhereThePolicyHasOnlyANumberOfRequestsInFlight() {
        YamlApplication application = new YamlApplication(
                directory,
                API + ": { key: user, in-flight: 2, tiers: { a: { rate: 8/s } }, tier: role, cost: 3, max-cost: 5,"
                        + " refund-on: 5xx, settle: code, refill: interval }");
        assertThat(tiers(application))
                .isEqualTo(Map.of(
                        "a",
                        BucketSpec.of("8/s")
                                .withRefill(BucketSpec.Refill.INTERVAL)
                                .withInFlight(2)));
    }
}
