package io.ratelimit;

import static io.ratelimit.ThrottlePolicy.Mode.ENFORCE;
import static io.ratelimit.ThrottlePolicy.Mode.OFF;
import static io.ratelimit.ThrottlePolicy.Mode.SHADOW;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ThrottlePolicyTests {

    private static final BucketSpec SPEC = BucketSpec.of("10/s");

    @Test
    void isEnforcedAndIgnoresCaseByDefault() {
        ThrottlePolicy policy = ThrottlePolicy.of("api", SPEC, "user", "endpoint");
        assertThat(policy.name()).isEqualTo("api");
        assertThat(policy.spec()).isEqualTo(SPEC);
        assertThat(policy.tiers()).isEmpty();
        assertThat(policy.key()).containsExactly("user", "endpoint");
        assertThat(policy.ignoreCase()).isTrue();
        assertThat(policy.maxKeys()).isEqualTo(100_000);
        assertThat(policy.mode()).isEqualTo(ENFORCE);
        assertThat(policy.retryJitter()).isEqualTo(RetryJitter.NONE);
        assertThat(policy.maxWait()).isZero();
        assertThat(policy.queueLimit()).isEqualTo(20);
    }

    @Test
    void eachPropertyCanBeReplaced() {
        ThrottlePolicy policy = ThrottlePolicy.of("api", SPEC, "user", "endpoint");
        assertThat(policy.withSpec(BucketSpec.of("5/s")).spec()).isEqualTo(BucketSpec.of("5/s"));
        assertThat(policy.withTiers(Map.of("pro", SPEC)).tiers()).containsExactly(Map.entry("pro", SPEC));
        assertThat(policy.withIgnoreCase(false).ignoreCase()).isFalse();
        assertThat(policy.withMaxKeys(5).maxKeys()).isEqualTo(5);
        assertThat(policy.withMode(SHADOW).mode()).isEqualTo(SHADOW);
        assertThat(policy.withRetryJitter(RetryJitter.of("1ms-5ms")).retryJitter())
                .isEqualTo(RetryJitter.of("1ms-5ms"));
        assertThat(policy.withMaxWait(Duration.ofSeconds(2)).maxWait()).isEqualTo(Duration.ofSeconds(2));
        assertThat(policy.withQueueLimit(7).queueLimit()).isEqualTo(7);
        assertThat(policy.withLease(Duration.ofMillis(50)).lease()).isEqualTo(Duration.ofMillis(50));
    }

    @Test
    void policiesWithTheSamePropertiesAreEqual() {
        ThrottlePolicy policy = ThrottlePolicy.of("api", SPEC, "user");
        ThrottlePolicy same =
                ThrottlePolicy.of("api", SPEC, "user").withMaxKeys(5).withMaxKeys(100_000);
        assertThat(same).isEqualTo(policy).hasSameHashCodeAs(policy);
        assertThat(List.of(
                        policy.withSpec(BucketSpec.of("5/s")),
                        policy.withTiers(Map.of("pro", SPEC)),
                        policy.withIgnoreCase(false),
                        policy.withMaxKeys(5),
                        policy.withMode(SHADOW),
                        policy.withRetryJitter(RetryJitter.of("1ms-5ms")),
                        policy.withMaxWait(Duration.ofSeconds(2)),
                        policy.withQueueLimit(7),
                        policy.withLease(Duration.ofMillis(50)),
                        ThrottlePolicy.of("other", SPEC, "user"),
                        ThrottlePolicy.of("api", SPEC)))
                .doesNotContain(policy);
        assertThat(policy.toString()).contains("api", "10/1s");
    }

    @Test
    void isGlobalWithoutAKey() {
        assertThat(ThrottlePolicy.of("all", SPEC).isGlobal()).isTrue();
        assertThat(ThrottlePolicy.of("each", SPEC, "user").isGlobal()).isFalse();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "a",
                "0",
                "per-user-per-endpoint",
                "a-",
                "1",
                "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff1234"
            })
    void acceptsAName(String name) {
        assertThat(ThrottlePolicy.of(name, SPEC).name()).isEqualTo(name);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "-a",
                "A",
                "per_user",
                "a b",
                "a.b",
                "ä",
                "a\n",
                "a\0",
                "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff12345"
            })
    void rejectsAName(String name) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ThrottlePolicy.of(name, SPEC))
                .withMessage(
                        "the name of a policy must be lower-case letters, digits and dashes, 64 at most, the first one no dash, but was "
                                + name);
    }

    @Test
    void needsRoomForOneKey() {
        assertThat(ThrottlePolicy.of("api", SPEC, "user").withMaxKeys(1).maxKeys())
                .isEqualTo(1);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ThrottlePolicy.of("api", SPEC, "user").withMaxKeys(0))
                .withMessage("max-keys must be at least 1, but was 0");
    }

    @Test
    void laterChangesOfTheListDontChangeTheKey() {
        List<String> key = new ArrayList<>(List.of("user"));
        ThrottlePolicy policy = ThrottlePolicy.of("api", SPEC, key);
        key.add("endpoint");
        assertThat(policy.key()).containsExactly("user");
        assertThatExceptionOfType(UnsupportedOperationException.class)
                .isThrownBy(() -> policy.key().clear());
    }

    @Test
    void theWeakerOfTwoModesDeniesLess() {
        assertThat(ENFORCE.weaker(ENFORCE)).isEqualTo(ENFORCE);
        assertThat(ENFORCE.weaker(SHADOW)).isEqualTo(SHADOW);
        assertThat(SHADOW.weaker(ENFORCE)).isEqualTo(SHADOW);
        assertThat(SHADOW.weaker(OFF)).isEqualTo(OFF);
        assertThat(OFF.weaker(ENFORCE)).isEqualTo(OFF);
    }
}
