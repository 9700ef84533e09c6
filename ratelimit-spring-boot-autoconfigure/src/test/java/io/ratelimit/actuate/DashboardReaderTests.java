package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BackendState;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.actuate.DashboardData.Change;
import io.ratelimit.actuate.DashboardData.PolicyData;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.json.JsonMapper;

/** What the dashboard is told. */
class DashboardReaderTests {

    private static final Change CHANGE = new Change("ratelimits", false, false);
    private static final ThrottlePolicy USERS = ThrottlePolicy.of("users", BucketSpec.of("2/1d"), "user")
            .withTiers(Map.of("pro", BucketSpec.of("20/1d").withCapacity(40)));
    private static final ThrottlePolicy ALL = ThrottlePolicy.of("all", BucketSpec.of("9/1d"));

    private final ManualTimeSource time = new ManualTimeSource();
    private final DecisionHistory history = new DecisionHistory(time);
    private final DeniedKeys deniedKeys = new DeniedKeys(time);
    private final ThrottleListener listener = decision -> {
        history.decided(decision);
        deniedKeys.decided(decision);
    };

    @Test
    void aPolicyIsToldAsItIsWritten() {
        PolicyData users = policy(read(throttlers(BucketStore.local(time), USERS), 0), "users");

        assertThat(users.mode()).isEqualTo("enforce");
        assertThat(users.key()).containsExactly("user");
        assertThat(users.rate()).isEqualTo("2/1d");
        assertThat(users.capacity()).isEqualTo(2);
        assertThat(users.tiers()).containsExactly(Map.entry("pro", "20/1d, capacity 40"));
        assertThat(users.available()).as("of many buckets").isNull();
        assertThat(users.queueLimit()).isZero();
    }

    @Test
    void aChangedAndAnAddedPolicyAreToldNext() {
        Throttlers throttlers = throttlers(BucketStore.local(time), ALL);
        throttlers.reconfigure("all", BucketSpec.of("5/1s"));
        throttlers.add(USERS.withMode(Mode.SHADOW));

        DashboardData data = read(throttlers, 0);
        assertThat(policy(data, "all").rate()).isEqualTo("5/1s");
        assertThat(policy(data, "users").mode()).isEqualTo("shadow");
    }

    @Test
    void onlyTheSecondsThatAreNewAreTold() {
        Throttlers throttlers = throttlers(BucketStore.local(time), ALL);
        history.start();
        for (int second = 1; second <= 400; second++) {
            time.advance(Duration.ofSeconds(1));
        }

        DashboardData all = read(throttlers, 0);
        assertThat(all.second()).isEqualTo(400);
        assertThat(all.from()).isEqualTo(100);
        assertThat(policy(all, "all").allowed()).hasSize(300);
        assertThat(policy(read(throttlers, 398), "all").denied()).hasSize(2);
        assertThat(policy(read(throttlers, 400), "all").failed()).isEmpty();
        assertThat(read(throttlers, 50).from()).as("more than is kept").isEqualTo(100);
        assertThat(read(throttlers, 401).from()).as("of another start").isEqualTo(100);
        assertThat(read(throttlers, Long.MAX_VALUE).from()).isEqualTo(100);
    }

    @Test
    void theLevelOfAGlobalBucketIsWhatIsThere() {
        Throttlers throttlers = throttlers(BucketStore.local(time), ALL);
        throttlers.get("all").decide(4);
        time.advance(Duration.ofDays(1).dividedBy(3));

        assertThat(policy(read(throttlers, 0), "all").available()).isEqualTo(8);
    }

    @Test
    void theLevelOfABucketElsewhereIsWhatWasSeenLastAndNobodyIsAsked() {
        Throttlers throttlers = throttlers(new UnseenStore(BucketStore.local(time)), ALL);
        DashboardReader reader = reader(throttlers, policy -> true);
        assertThat(policy(reader.read(0, CHANGE, false), "all").available()).isNull();
        throttlers.get("all").decide(4);

        PolicyData all = policy(reader.read(0, CHANGE, false), "all");
        assertThat(all.available()).isEqualTo(5);
        assertThat(all.lastSeen()).isTrue();
    }

    @Test
    void aBucketThatCannotBeSeenHasNoLevelAndTheRestIsTold() {
        Throttlers throttlers = throttlers(new UnseenStore(BucketStore.local(time)), ALL, USERS);

        DashboardData data = read(throttlers, 0);
        assertThat(policy(data, "all").available()).isNull();
        assertThat(data.policies()).hasSize(2);
    }

    @Test
    void keysAreShownToWhomTheyMayBeAndToOthersWhatStandsForThem() {
        Throttlers throttlers = throttlers(BucketStore.local(time), USERS);
        for (int i = 0; i < 5; i++) {
            throttlers.get("users").forKey("<b>Alice</b>").decide(1);
        }
        DashboardReader reader = reader(throttlers, policy -> false);

        PolicyView.Denied hidden =
                policy(reader.read(0, CHANGE, false), "users").deniedKeys().get(0);
        assertThat(hidden.denied()).isEqualTo(3);
        assertThat(hidden.key().parts()).isNull();
        assertThat(hidden.key().hash()).matches("[0-9a-f]{16}");
        assertThat(policy(reader.read(0, CHANGE, true), "users")
                        .deniedKeys()
                        .get(0)
                        .key()
                        .parts())
                .containsExactly("<b>alice</b>");
    }

    @Test
    void aBackendIsToldAsItIs() {
        Instant since = Instant.parse("2026-01-02T03:04:05Z");
        BackendState down = new BackendState(BackendState.Condition.DOWN, since, "no answer within 100 ms");
        DashboardReader reader = new DashboardReader(
                throttlers(BucketStore.local(time), ALL), history, deniedKeys, new FixedBackend(down), policy -> true);

        assertThat(reader.read(0, CHANGE, false).backends())
                .containsExactly(new BackendView("Redis", "DOWN", "2026-01-02T03:04:05Z", "no answer within 100 ms"));
    }

    /** The best of some, for others use the machine too. */
    @Test
    void fiftyPoliciesUnderAttackAreToldInFiveMilliseconds() {
        ThrottlePolicy[] fifty = IntStream.range(0, 50)
                .mapToObj(i -> ThrottlePolicy.of("policy-" + i, BucketSpec.of("1/1d"), "user"))
                .toArray(ThrottlePolicy[]::new);
        Throttlers throttlers = throttlers(BucketStore.local(time), fifty);
        history.start();
        for (int i = 0; i < 6_000; i++) {
            for (ThrottlePolicy policy : fifty) {
                throttlers.get(policy.name()).forKey("user" + i / 2).decide(1);
            }
            if (i % 20 == 0) {
                time.advance(Duration.ofSeconds(1));
            }
        }
        DashboardReader reader = reader(throttlers, policy -> false);

        long poll = bestOf(100, reader, history.second() - 1);
        assertThat(Duration.ofNanos(poll)).isLessThan(Duration.ofMillis(5));
    }

    private static long bestOf(int times, DashboardReader reader, long since) {
        JsonMapper json = JsonMapper.shared();
        long best = Long.MAX_VALUE;
        for (int i = 0; i < times; i++) {
            long start = System.nanoTime();
            byte[] written = json.writeValueAsBytes(reader.read(since, CHANGE, false));
            best = Math.min(best, System.nanoTime() - start);
            assertThat(written).hasSizeGreaterThan(1_000);
        }
        return best;
    }

    private Throttlers throttlers(BucketStore store, ThrottlePolicy... policies) {
        return new Throttlers(List.of(policies), store, time, listener);
    }

    private DashboardData read(Throttlers throttlers, long since) {
        return reader(throttlers, policy -> false).read(since, CHANGE, false);
    }

    private DashboardReader reader(Throttlers throttlers, Predicate<ThrottlePolicy> elsewhere) {
        return new DashboardReader(throttlers, history, deniedKeys, null, elsewhere);
    }

    private static PolicyData policy(DashboardData data, String name) {
        return data.policies().stream()
                .filter(policy -> policy.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private record FixedBackend(BackendState state) implements Backend {

        @Override
        public String name() {
            return "Redis";
        }
    }

    /** Buckets that can be taken from, and not be looked at. */
    private record UnseenStore(BucketStore store) implements BucketStore {

        @Override
        public Decision take(List<Charge> charges) {
            return store.take(charges);
        }

        @Override
        public Decision reserve(List<Charge> charges) {
            return store.reserve(charges);
        }

        @Override
        public void giveBack(List<Answer> taken) {
            store.giveBack(taken);
        }

        @Override
        public BucketSnapshot look(Charge charge) {
            throw new BackendException("away");
        }

        @Override
        public void forget(Charge charge) {
            store.forget(charge);
        }
    }
}
