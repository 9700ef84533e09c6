package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.BucketSpec;
import io.ratelimit.Shares;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.KeyPart.Availability;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RequestTierTests {

    private static final Map<String, BucketSpec> TIERS = Map.of(
            "free", BucketSpec.of("1/1s"),
            "pro", BucketSpec.of("600/1m"),
            "pro-plus", BucketSpec.of("600/1m").withCapacity(700),
            "night-shift", BucketSpec.of("36000/1h").withCapacity(699));

    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("plans", BucketSpec.of("5/1s")).withTiers(TIERS);

    private final List<String> failures = new ArrayList<>();

    private String tier(String text, Map<String, String> facts) {
        return tier(text, facts, POLICY);
    }

    private String tier(String text, Map<String, String> facts, ThrottlePolicy policy) {
        return RequestTier.of(text)
                .withBeans(name -> request -> {
                    throw new IllegalStateException(request.header("secret"));
                })
                .tier(
                        FixedFacts.NONE.withHeaders(facts),
                        policy,
                        (name, what, why) -> failures.add(name + ": " + what + ": " + why));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "FREE | free",
                "free | free",
                "ADMIN | ",
                "PRO_PLUS | pro-plus",
                "pro-plus | pro-plus",
                "FREE,PRO | pro",
                "PRO,PRO_PLUS | pro-plus",
                "NIGHT-SHIFT,PRO_PLUS,FREE | pro-plus",
                "NIGHT-SHIFT,PRO | night-shift",
                "Free | free",
                "Pro_Plus,FREE | pro-plus"
            })
    void aRoleSelectsTheTierOfItsNameAndTheHighestRateWins(String roles, String tier) {
        assertThat(tier("role", Map.of("roles", roles))).isEqualTo(tier);
    }

    @Test
    void ofEqualRatesTheTierWithMoreCallsInFlightWins() {
        ThrottlePolicy policy = POLICY.withTiers(Map.of(
                "few", BucketSpec.of("5/1h").withInFlight(2),
                "many", BucketSpec.of("5/1h").withInFlight(9)));
        assertThat(tier("role", Map.of("roles", "FEW,MANY"), policy)).isEqualTo("many");
        policy = policy.withTiers(
                Map.of("many", BucketSpec.of("5/1h").withInFlight(9), "no-limit", BucketSpec.of("5/1h")));
        assertThat(tier("role", Map.of("roles", "NO_LIMIT,MANY"), policy)).isEqualTo("no-limit");
    }

    @Test
    void ofSeveralSharesAGuaranteedOneWinsAndThenTheOneThatLeavesLeast() {
        Map<String, BucketSpec> guaranteed = Map.of("small", BucketSpec.of("1/1h"), "big", BucketSpec.of("2/1h"));
        ThrottlePolicy policy = ThrottlePolicy.of("plans", BucketSpec.of("9/1h"))
                .withShares(Shares.named(guaranteed, Map.of("batch", 40, "critical", 10)));
        assertThat(tier("role", Map.of("roles", "BATCH,CRITICAL"), policy)).isEqualTo("critical");
        assertThat(tier("role", Map.of("roles", "BATCH,CRITICAL,SMALL"), policy))
                .isEqualTo("small");
        assertThat(tier("role", Map.of("roles", "SMALL,BIG"), policy)).isEqualTo("big");
    }

    @Test
    void anyOtherTextIsAPartOfAKey() {
        assertThat(tier("header:Plan", Map.of("Plan", "PRO"))).isEqualTo("pro");
        assertThat(tier("header:Plan", Map.of())).isNull();
        assertThat(tier("expression:header('Plan') == 'x' ? 'pro' : 'free'", Map.of("Plan", "x")))
                .isEqualTo("pro");
        assertThat(RequestTier.of("header:Plan").chosenByClient()).isTrue();
        assertThat(RequestTier.of("role").chosenByClient()).isFalse();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestTier.of("roles"))
                .withMessageStartingWith("'roles' can't select a tier: write role, or a part of a key");
    }

    @Test
    void aFailedResolverSelectsNoTier() {
        assertThat(tier("bean:plan", Map.of("secret", "hunter2"))).isNull();
        assertThat(failures)
                .containsExactly("plans: its tier, so the policy's own rate applied: java.lang.IllegalStateException");
    }

    @Test
    void isAvailableWhenItsFactIs() {
        assertThat(RequestTier.of("role").availability()).isEqualTo(Availability.NEEDS_USER);
        assertThat(RequestTier.of("method").availability()).isEqualTo(Availability.IMMEDIATE);
        assertThat(RequestTier.of("role").withBeans(name -> null).availability())
                .isEqualTo(Availability.NEEDS_USER);
    }
}
