package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.Shares;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.key.RequestKey.RequestLimit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

class RequestKeyTests {

    private static final FailureListener NO_FAILURE = (policy, what, why) -> {
        throw new AssertionError(policy + what + why);
    };
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("policy", BucketSpec.of("1/1h"), "some key");

    private final List<String> events = new ArrayList<>();
    private final ThrottleListener listener = new ThrottleListener() {
        @Override
        public void decided(Decision decision) {}

        @Override
        public void eventOccurred(ThrottlePolicy policy, ThrottleListener.Event event) {
            events.add(policy.name() + " " + event);
        }
    };

    @Test
    void aGlobalPolicyHasOneKey() {
        RequestKey key = new RequestKey(List.of(), MissingKey.DENY, NO_FAILURE, listener);
        assertThat(key.charge(POLICY, 3, FixedFacts.NONE)).isEqualTo(Charge.of(POLICY, "", 3));
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = {"", " ", "\t \u2003"})
    void aBlankPartCountsAsMissing(String blank) {
        FixedFacts request = FixedFacts.NONE.withUser(blank);
        assertThat(key(MissingKey.SKIP, "user").charge(POLICY, 1, request)).isNull();
        assertThat(key(MissingKey.DENY, "user").charge(POLICY, 1, request)).isEqualTo(Charge.withoutKey(POLICY, 1));
        assertThat(key(MissingKey.SHARED, "user").charge(POLICY, 1, request)).isNotNull();
        assertThat(key(MissingKey.CLIENT_IP, "user").charge(POLICY, 1, request)).isNotNull();
    }

    @Test
    void aChargeWithoutAKeyIsAlwaysDenied() {
        Charge charge = key(MissingKey.DENY, "user").charge(POLICY, 1, FixedFacts.NONE);
        assertThat(Throttlers.local(List.of(POLICY)).decide(List.of(charge)).outcome())
                .isEqualTo(Outcome.MISSING_KEY);
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"SKIP", "DENY"})
    void aPlaceholderNeverEqualsAValue(MissingKey onMissing) {
        RequestKey key = key(onMissing, "user");
        String placeholder = text(key, FixedFacts.NONE);
        for (String value :
                List.of("203.0.113.7", "shared", "s", "s203.0.113.7", "\0s203.0.113.7", "\0s", placeholder)) {
            assertThat(text(key, FixedFacts.NONE.withUser(value))).as(value).isNotEqualTo(placeholder);
        }
    }

    @Test
    void requestsWithoutAUserAreSeparatedByAddressOrShareOneKey() {
        FixedFacts other = FixedFacts.NONE.withIp("203.0.113.8");
        assertThat(text(key(MissingKey.CLIENT_IP, "user"), other))
                .isNotEqualTo(text(key(MissingKey.CLIENT_IP, "user"), FixedFacts.NONE));
        assertThat(text(key(MissingKey.SHARED, "user"), other))
                .isEqualTo(text(key(MissingKey.SHARED, "user"), FixedFacts.NONE));
    }

    @Test
    void differentPartsHaveDifferentKeys() {
        String[] values = {null, "a", "b", "ab", "a:b", ":", "1:a", "1:b", "\0", "\0m1:a", "\0ra", "\0s", "203.0.113.7"
        };
        Map<String, String> seen = new HashMap<>();
        RequestKey key = key(MissingKey.CLIENT_IP, "user", "header:X-A", "header:X-B");
        for (String user : values) {
            for (String a : values) {
                for (String b : values) {
                    Map<String, String> headers = new HashMap<>();
                    headers.put("X-A", a);
                    headers.put("X-B", b);
                    String parts = user + "|" + a + "|" + b;
                    String twin =
                            seen.put(text(key, FixedFacts.NONE.withUser(user).withHeaders(headers)), parts);
                    assertThat(twin).as(parts).isNull();
                }
            }
        }
    }

    @Test
    void caseIsIgnoredUnlessThePolicyRegardsIt() {
        RequestKey key = new RequestKey(List.of(KeyPart.of("user")), MissingKey.DENY, NO_FAILURE, listener);
        ThrottlePolicy exact = POLICY.withIgnoreCase(false);
        FixedFacts upper = FixedFacts.NONE.withUser("ALICE");
        FixedFacts lower = FixedFacts.NONE.withUser("alice");
        assertThat(text(key, upper)).isEqualTo(text(key, lower));
        assertThat(key.charge(exact, 1, upper).key())
                .isNotEqualTo(key.charge(exact, 1, lower).key());
    }

    @Test
    void aPartWhoseResolverThrowsIsMissingAndReported() {
        for (MissingKey onMissing : MissingKey.values()) {
            List<String> failures = new ArrayList<>();
            KeyPart failing = KeyPart.of("bean:tenant").withBeans(name -> request -> {
                throw new IllegalStateException("no tenant for " + request.ip());
            });
            Charge charge = new RequestKey(
                            List.of(failing),
                            onMissing,
                            (policy, what, why) -> failures.add(policy + ": " + what + ": " + why),
                            listener)
                    .charge(POLICY, 1, FixedFacts.NONE);
            assertThat(charge).isEqualTo(key(onMissing, "user").charge(POLICY, 1, FixedFacts.NONE));
            assertThat(events).containsExactly("policy MISSING_KEY", "policy MISSING_KEY");
            events.clear();
            assertThat(failures)
                    .containsExactly("policy: the part 'bean:tenant' of its key, so it was missing:"
                            + " java.lang.IllegalStateException");
        }
    }

    @ParameterizedTest
    @EnumSource
    void aRequestThatLacksPartsIsOneEvent(MissingKey onMissing) {
        RequestKey key = key(onMissing, "user", "header:X-A", "ip");
        key.charge(POLICY, 1, FixedFacts.NONE);
        key.charge(POLICY, 1, FixedFacts.NONE.withUser("alice").withHeaders(Map.of("X-A", " ")));
        key.charge(POLICY, 1, null);
        assertThat(events).containsExactly("policy MISSING_KEY", "policy MISSING_KEY", "policy MISSING_KEY");

        key.charge(POLICY, 1, FixedFacts.NONE.withUser("alice").withHeaders(Map.of("X-A", "a")));
        key(onMissing).charge(POLICY, 1, FixedFacts.NONE);
        assertThat(events).as("a request with all parts is no event").hasSize(3);
    }

    @ParameterizedTest
    @CsvSource({"0, 2", "1, 1"})
    void aChangeOfTheCallsInFlightReachesCallsThatWaitUnderALimitWithoutThem(int inFlight, int running) {
        BucketSpec rate = BucketSpec.of("9/1h");
        BucketSpec own = inFlight == 0 ? rate : rate.withInFlight(inFlight);
        RequestLimit limit = RequestLimit.of("bean:plans").withBean(name -> request -> own, 1);
        RequestKey key = new RequestKey(
                List.of(KeyPart.of("user")),
                MissingKey.DENY,
                OverrideTable.NONE,
                null,
                limit,
                List.of(),
                NO_FAILURE,
                listener);
        FixedFacts request = FixedFacts.NONE.withUser("alice");

        assertThat(OverrideTableTests.runningAfterAChangeOfInFlight(policy -> key.charge(policy, 1, request)))
                .isEqualTo(running);
    }

    @Test
    void aRequestThatLacksTheKeyOfItsShareIsAnEventAndHasNoShare() {
        Shares shares = Shares.forKeys(BucketSpec.of("1/1h"), 2, List.of("header:Tenant"));
        ThrottlePolicy policy =
                ThrottlePolicy.of("policy", BucketSpec.of("5/1h")).withShares(shares);
        RequestKey key = new RequestKey(
                List.of(),
                MissingKey.DENY,
                OverrideTable.NONE,
                null,
                null,
                List.of(KeyPart.of("header:Tenant")),
                NO_FAILURE,
                listener);
        assertThat(key.charge(policy, 1, FixedFacts.NONE.withHeaders(Map.of("Tenant", "a")))
                        .share())
                .isNotNull();
        assertThat(events).isEmpty();
        assertThat(key.charge(policy, 1, FixedFacts.NONE)).isEqualTo(Charge.of(policy, "", 1));
        assertThat(events).containsExactly("policy MISSING_KEY");
    }

    private RequestKey key(MissingKey onMissing, String... parts) {
        return new RequestKey(List.of(parts).stream().map(KeyPart::of).toList(), onMissing, NO_FAILURE, listener);
    }

    private static String text(RequestKey key, FixedFacts request) {
        return key.charge(POLICY, 1, request).key();
    }
}
