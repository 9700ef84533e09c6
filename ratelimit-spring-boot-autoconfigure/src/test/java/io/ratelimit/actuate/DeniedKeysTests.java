package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ExhaustedTimeSource;
import io.ratelimit.Keys;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import io.ratelimit.UpkeepTimeSource;
import io.ratelimit.actuate.DeniedKeys.DeniedKey;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class DeniedKeysTests {

    private static final ThrottlePolicy USER = ThrottlePolicy.of("per-user", BucketSpec.of("1/1d"), "user");
    private static final ThrottlePolicy CANDIDATE =
            ThrottlePolicy.of("candidate", BucketSpec.of("1/1d"), "user").withMode(Mode.SHADOW);
    private static final ThrottlePolicy GLOBAL = ThrottlePolicy.of("global", BucketSpec.of("1/1d"));

    private final ManualTimeSource time = new ManualTimeSource();
    private final DeniedKeys denied = new DeniedKeys(new UpkeepTimeSource(time));
    private final Throttlers throttlers =
            new Throttlers(List.of(USER, CANDIDATE, GLOBAL), BucketStore.local(time), time, denied);

    private void deny(String policy, String key, int times) {
        for (int i = 0; i < times + 1; i++) {
            throttlers.get(policy).forKey(key).decide(1);
        }
    }

    @Test
    void topReturnsTheTenKeysWithMostDenialsInDescendingOrder() {
        IntStream.rangeClosed(1, 12).forEach(i -> deny("per-user", "user" + i, i));

        assertThat(denied.top("per-user")).hasSize(10);
        assertThat(denied.top("per-user").subList(0, 2))
                .extracting(DeniedKey::key, DeniedKey::denied, DeniedKey::shadow)
                .containsExactly(tuple("user12", 12L, false), tuple("user11", 11L, false));
        assertThat(denied.top("global")).isEmpty();
        assertThat(denied.top("unknown")).isEmpty();
    }

    @Test
    void onlyDenialsOfThePolicyItselfWithAKeyAreCounted() {
        throttlers.global("global").decide(1);
        Charge alice = throttlers.get("per-user").forKey("alice").charge(1);
        throttlers.decide(List.of(alice, throttlers.global("global").charge(1)));
        throttlers.decide(List.of(Charge.withoutKey(USER, 1)));

        assertThat(denied.top("per-user")).isEmpty();
        assertThat(denied.top("global")).isEmpty();
    }

    @Test
    void aFailedBackendCountsForNoKey() {
        Charge alice = throttlers.get("per-user").forKey("alice").charge(1);
        Answer failed = Answer.denied(alice, Outcome.BACKEND_FAILED, Duration.ofNanos(1));
        throttlers.listener().decided(Decision.of(List.of(failed)));

        assertThat(denied.top("per-user")).isEmpty();
    }

    @Test
    void shadowDenialsAreMarked() {
        deny("candidate", "alice", 3);

        assertThat(denied.top("candidate"))
                .extracting(DeniedKey::key, DeniedKey::denied, DeniedKey::shadow)
                .containsExactly(tuple("alice", 3L, true));
    }

    @Test
    void aDenialExpiresAfterTenMinutes() {
        deny("per-user", "alice", 3);
        time.advance(Duration.ofMinutes(6));
        throttlers.get("per-user").forKey("alice").decide(1);
        deny("per-user", "bob", 1);
        assertThat(denied.top("per-user"))
                .extracting(DeniedKey::key, DeniedKey::denied)
                .containsExactly(tuple("alice", 4L), tuple("bob", 1L));
        time.advance(Duration.ofMinutes(4));
        assertThat(denied.top("per-user"))
                .extracting(DeniedKey::key, DeniedKey::denied)
                .containsExactly(tuple("alice", 1L), tuple("bob", 1L));
        time.advance(Duration.ofMinutes(5));
        assertThat(denied.top("per-user")).isEmpty();
        throttlers.get("per-user").forKey("alice").decide(1);
        assertThat(time.waiting()).isEqualTo(1);
        time.advance(Duration.ofDays(2));
        assertThat(denied.top("per-user")).isEmpty();
        assertThat(time.waiting()).as("no denial is left to expire").isZero();
    }

    @Test
    void denialsExpireAlsoIfTheFirstCouldNotScheduleTheirEnd() {
        DeniedKeys denied = new DeniedKeys(new ExhaustedTimeSource(time));
        Throttler alice = new Throttlers(List.of(USER), BucketStore.local(time), time, denied)
                .get("per-user")
                .forKey("alice");
        IntStream.range(0, 3).forEach(i -> alice.decide(1));
        assertThat(denied.top("per-user")).extracting(DeniedKey::denied).containsExactly(2L);
        time.advance(Duration.ofMinutes(10));
        assertThat(denied.top("per-user")).isEmpty();
    }

    @Test
    void aHashDiffersFromThatOfTheKeysBucket() {
        String alice = DeniedKeys.hash("alice");

        assertThat(alice).matches("[0-9a-f]{16}").isEqualTo(DeniedKeys.hash("alice"));
        assertThat(DeniedKeys.hash("bob")).isNotEqualTo(alice);
        assertThat(HexFormat.of().toHexDigits(Keys.hash("alice"))).isNotEqualTo(alice);
    }

    @Test
    void aLongKeyIsShortenedAndStaysDistinct() {
        String one = "a".repeat(7999) + "1";
        String other = "a".repeat(7999) + "2";
        deny("per-user", one, 2);
        deny("per-user", other, 1);
        deny("per-user", "b".repeat(199) + "😀".repeat(40), 1);

        List<DeniedKey> top = denied.top("per-user");
        assertThat(top).hasSize(3).allMatch(key -> key.key().length() <= 256);
        assertThat(DeniedKeys.hash(top.get(0).key())).isEqualTo(DeniedKeys.hash(one));
        assertThat(DeniedKeys.hash(top.get(1).key())).isEqualTo(DeniedKeys.hash(other));
        assertThat(top.get(2).key()).startsWith("b".repeat(199) + "… ");
        assertThat(DeniedKeys.hash(one)).isNotEqualTo(DeniedKeys.hash(other));
    }

    @Test
    void aKeyKeepsItsTier() {
        ThrottlePolicy tiered = ThrottlePolicy.of("tiered", BucketSpec.of("1/1d"), "user", "endpoint")
                .withTiers(Map.of("pro", BucketSpec.of("2/1d")));
        throttlers.add(tiered);
        for (int i = 0; i < 3; i++) {
            throttlers.get("tiered").forKey("alice", "GET /a").inTier("pro").decide(1);
        }
        DeniedKey key = denied.top("tiered").get(0);
        assertThat(Keys.tier(key.key())).isEqualTo("pro");
        assertThat(Keys.parts(key.key())).containsExactly("alice", "get /a");
    }
}
