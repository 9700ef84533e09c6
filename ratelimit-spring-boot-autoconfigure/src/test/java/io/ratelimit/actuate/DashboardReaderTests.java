package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.PlainStore;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.actuate.DashboardReader.DashboardData;
import io.ratelimit.actuate.DashboardReader.DashboardData.Change;
import io.ratelimit.actuate.DashboardReader.DashboardData.PolicyData;
import io.ratelimit.actuate.DecisionHistory.Step;
import io.ratelimit.actuate.Descriptors.BackendDescriptor;
import io.ratelimit.actuate.Descriptors.ChangedDescriptor;
import io.ratelimit.actuate.Descriptors.DeniedKeyDescriptor;
import io.ratelimit.actuate.Descriptors.LimitDescriptor;
import io.ratelimit.actuate.Descriptors.OutageDescriptor;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The data of the dashboard. */
class DashboardReaderTests {

    private static final Change CHANGE = new Change("ratelimits", false, false, false);
    private static final ThrottlePolicy USERS = ThrottlePolicy.of("users", BucketSpec.of("2/1d"), "user")
            .withTiers(Map.of("pro", BucketSpec.of("20/1d").withCapacity(40)));
    private static final ThrottlePolicy ALL = ThrottlePolicy.of("all", BucketSpec.of("9/1d"));

    private final ManualTimeSource time = new ManualTimeSource();
    private final DecisionHistory history = new DecisionHistory(time);
    private final DeniedKeys deniedKeys = new DeniedKeys(time);
    private final ThrottleListener listener = ThrottleListener.of(List.of(history, deniedKeys));

    @Test
    void aPolicyHasItsConfiguredValues() {
        PolicyData users = policy(read(throttlers(BucketStore.local(time), USERS), 0), "users");

        assertThat(users.mode()).isEqualTo("enforce");
        assertThat(users.key()).containsExactly("user");
        assertThat(users.limit()).isEqualTo(LimitDescriptor.of(BucketSpec.of("2/1d")));
        assertThat(users.tiers())
                .containsExactly(Map.entry(
                        "pro", LimitDescriptor.of(BucketSpec.of("20/1d").withCapacity(40))));
        assertThat(users.available()).as("several buckets").isNull();
        assertThat(users.queueLimit()).isZero();
    }

    @Test
    void limitsThatDifferFromTheConfigurationAreMarked() {
        Throttlers throttlers = throttlers(BucketStore.local(time), ALL, USERS);
        throttlers.get("users").reconfigure("pro", BucketSpec.of("5/1s"));
        throttlers.get("users").reconfigure(BucketSpec.of("6/1s"));

        DashboardData data = read(throttlers, 0);

        assertThat(policy(data, "all").limit().changed()).isNull();
        assertThat(policy(data, "users").limit().changed())
                .isEqualTo(new ChangedDescriptor("instance", null, null, "2/1d", 2L, null));
        assertThat(policy(data, "users").tiers()).hasEntrySatisfying("pro", pro -> assertThat(pro.changed())
                .isEqualTo(new ChangedDescriptor("instance", null, null, "20/1d", 40L, null)));
    }

    @Test
    void theNextReadContainsChangedAndAddedPolicies() {
        Throttlers throttlers = throttlers(BucketStore.local(time), ALL);
        throttlers.get("all").reconfigure(BucketSpec.of("5/1s"));
        throttlers.add(USERS.withMode(Mode.SHADOW));

        DashboardData data = read(throttlers, 0);
        assertThat(policy(data, "all").limit().rate()).isEqualTo("5/1s");
        assertThat(policy(data, "users").mode()).isEqualTo("shadow");
    }

    @Test
    void onlyNewSecondsAreReturned() {
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
        assertThat(read(throttlers, 50).from()).as("older than the history").isEqualTo(100);
        assertThat(read(throttlers, 401).from()).as("from before a restart").isEqualTo(100);
        assertThat(read(throttlers, Long.MAX_VALUE).from()).isEqualTo(100);

        DashboardData hour = reader(throttlers).read(Step.MINUTE, 0, CHANGE, false);
        assertThat(hour.second()).isEqualTo(360);
        assertThat(hour.step()).isEqualTo(60);
        assertThat(policy(hour, "all").denied()).hasSize(6);
        assertThat(policy(reader(throttlers).read(Step.MINUTE, 250, CHANGE, false), "all")
                        .denied())
                .as("the minutes after the fourth")
                .hasSize(2);
    }

    @Test
    void theAvailableTokensOfAGlobalBucketAreItsPresentOnes() {
        Throttlers throttlers = throttlers(BucketStore.local(time), ALL);
        throttlers.global("all").decide(4);
        time.advance(Duration.ofDays(1).dividedBy(3));

        assertThat(policy(read(throttlers, 0), "all").available()).isEqualTo(8);
    }

    @Test
    void theAvailableTokensOfARemoteBucketAreThoseOfTheLastDecision() {
        Backend backend = new FixedBackend(Backend.State.up());
        Throttlers throttlers = throttlers(new NoSnapshotStore(BucketStore.local(time), backend), ALL);
        DashboardReader reader = reader(throttlers);
        assertThat(policy(reader.read(Step.SECOND, 0, CHANGE, false), "all").available())
                .isNull();
        throttlers.global("all").decide(4);

        PolicyData all = policy(reader.read(Step.SECOND, 0, CHANGE, false), "all");
        assertThat(all.available()).isEqualTo(5);
        assertThat(all.lastSeen()).isTrue();
    }

    @Test
    void onlyAPolicyWithALeaseHasLeasedTokens() {
        ThrottlePolicy leased = USERS.withLease(Duration.ofMillis(50));
        DashboardData data = read(throttlers(new NoSnapshotStore(BucketStore.local(time), null), ALL, leased), 0);

        assertThat(policy(data, "all").leased()).isNull();
        assertThat(policy(data, "users").leased()).isEqualTo(7);
    }

    @Test
    void anUnavailableBucketHasNoTokensAndTheOtherDataIsReturned() {
        Throttlers throttlers = throttlers(new NoSnapshotStore(BucketStore.local(time), null), ALL, USERS);

        DashboardData data = read(throttlers, 0);
        assertThat(policy(data, "all").available()).isNull();
        assertThat(data.policies()).hasSize(2);
    }

    @Test
    void keysAreShownOrReplacedByHashes() {
        Throttlers throttlers = throttlers(BucketStore.local(time), USERS);
        for (int i = 0; i < 5; i++) {
            throttlers.get("users").forKey("<b>Alice</b>").decide(1);
        }
        DashboardReader reader = reader(throttlers);

        DeniedKeyDescriptor hidden = policy(reader.read(Step.SECOND, 0, CHANGE, false), "users")
                .deniedKeys()
                .get(0);
        assertThat(hidden.denied()).isEqualTo(3);
        assertThat(hidden.key().parts()).isNull();
        assertThat(hidden.key().hash()).matches("[0-9a-f]{16}");
        assertThat(policy(reader.read(Step.SECOND, 0, CHANGE, true), "users")
                        .deniedKeys()
                        .get(0)
                        .key()
                        .parts())
                .containsExactly("<b>alice</b>");
    }

    @Test
    void theStateOfTheBackendIsReturned() {
        Instant since = Instant.parse("2026-01-02T03:04:05Z");
        Backend.State down = new Backend.State(Backend.Condition.DOWN, since, "no answer within 100 ms");
        Backend backend = new FixedBackend(down);
        Throttlers throttlers = throttlers(new NoSnapshotStore(BucketStore.local(time), backend), ALL);
        DashboardReader reader = reader(throttlers, backend);

        assertThat(reader.read(Step.SECOND, 0, CHANGE, false).backends())
                .containsExactly(
                        new BackendDescriptor("Redis", "DOWN", "2026-01-02T03:04:05Z", "no answer within 100 ms"));
    }

    @Test
    void aPolicyStatesItsDecisionsDuringAnOutage() {
        ThrottlePolicy one = ThrottlePolicy.of("one", BucketSpec.of("1/1d"));
        Backend up = new FixedBackend(Backend.State.up());
        Throttlers before = throttlers(new NoSnapshotStore(BucketStore.local(time), up), ALL);
        assertThat(policy(read(before, 0), "all").outage()).isNull();

        Backend down = new FixedBackend(Backend.State.failed(new BackendException("no answer")));
        NoSnapshotStore store = new NoSnapshotStore(BucketStore.local(time), down);
        DashboardData data = read(throttlers(store, ALL, one, USERS.withMode(Mode.OFF)), 0);
        assertThat(policy(data, "all").outage()).isEqualTo(new OutageDescriptor("local", 0.5));
        assertThat(policy(data, "one").outage()).as("half a token").isEqualTo(new OutageDescriptor("deny", null));
        assertThat(policy(data, "users").outage()).isNull();
    }

    /** It may fail for a single key: the policy isn't known to reject all. */
    @Test
    void aMisconfigurationIsNoOutage() {
        Backend misconfigured = new FixedBackend(Backend.State.failed(new BackendException("WRONGTYPE", null, true)));
        NoSnapshotStore store = new NoSnapshotStore(BucketStore.local(time), misconfigured);
        assertThat(policy(read(throttlers(store, ALL), 0), "all").outage()).isNull();
    }

    /** The clock advances by 0.3 ms with each reading, so a refresh of 1 ms covers three policies. */
    @Test
    void aRefreshStopsAfterAMillisecondAndTheNextOneContinues() {
        ThrottlePolicy[] fifty = IntStream.range(0, 50)
                .mapToObj(i -> ThrottlePolicy.of("policy-" + i, BucketSpec.of("1/1d"), "user"))
                .toArray(ThrottlePolicy[]::new);
        Throttlers throttlers = throttlers(BucketStore.local(time), fifty);
        for (ThrottlePolicy policy : fifty) {
            throttlers.get(policy.name()).forKey("alice").decide(1);
            throttlers.get(policy.name()).forKey("alice").decide(1);
        }
        AtomicLong clock = new AtomicLong();

        for (int refreshes = 1; refreshes <= 17; refreshes++) {
            deniedKeys.refreshTops(() -> clock.getAndAdd(300_000));
            assertThat(Stream.of(fifty)
                            .filter(policy ->
                                    !deniedKeys.latestTop(policy.name()).isEmpty()))
                    .as("policies after %d refreshes", refreshes)
                    .hasSize(Math.min(3 * refreshes, 50));
        }
    }

    /** So that the page names the instance whose numbers it shows, behind a load balancer too. */
    @Test
    void theDataNamesItsInstance() {
        DashboardData data =
                read(throttlers(BucketStore.local(time), ThrottlePolicy.of("all", BucketSpec.of("2/1d"))), 0);
        assertThat(data.instance()).isEqualTo("instance");
        assertThat(data.title()).isEqualTo("shop on web-1 · Rate limits");
        assertThat(data.identity()).startsWith("shop · on web-1 · process ");
    }

    private Throttlers throttlers(BucketStore store, ThrottlePolicy... policies) {
        return new Throttlers(List.of(policies), store, time, listener);
    }

    private DashboardData read(Throttlers throttlers, long since) {
        return reader(throttlers).read(Step.SECOND, since, CHANGE, false);
    }

    private DashboardReader reader(Throttlers throttlers) {
        return reader(throttlers, null);
    }

    private DashboardReader reader(Throttlers throttlers, @Nullable Backend backend) {
        LimitChanges changes = new LimitChanges(throttlers, time, null);
        return new DashboardReader(
                new RateLimitDashboard.Identity("instance", "shop", null, "web-1"),
                throttlers,
                changes,
                history,
                deniedKeys,
                backend,
                new DashboardReader.Configured(
                        throttler -> OutageDescriptor.of(throttler, FailureRule.LOCAL, 0.5),
                        ThrottlePolicy::limitsInFlight,
                        ThrottlePolicy::isGlobal));
    }

    private static PolicyData policy(DashboardData data, String name) {
        return data.policies().stream()
                .filter(policy -> policy.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private record FixedBackend(Backend.State state) implements Backend {

        @Override
        public String name() {
            return "Redis";
        }
    }

    /** A store that takes tokens but fails to return snapshots. */
    private static final class NoSnapshotStore extends PlainStore {

        private final @Nullable Backend backend;

        NoSnapshotStore(BucketStore store, @Nullable Backend backend) {
            super(store);
            this.backend = backend;
        }

        @Override
        public @Nullable Backend backend(ThrottlePolicy policy) {
            return backend;
        }

        @Override
        public long leased(ThrottlePolicy policy) {
            return 7;
        }

        @Override
        public BucketSnapshot snapshot(Charge charge) {
            throw new BackendException("unavailable");
        }
    }
}
