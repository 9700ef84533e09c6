package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.Shares;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.RoutingBucketStore;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The calls of Redis that requests with slots cost, counted by the server. */
@Tag("slow")
@Timeout(value = 10, unit = TimeUnit.MINUTES)
class SlotCallsTests {

    private static final ThrottlePolicy CHAT =
            ThrottlePolicy.of("chat", BucketSpec.of("100/1h").withInFlight(2), "user");
    private static final ThrottlePolicy BUSY =
            ThrottlePolicy.of("busy", BucketSpec.of("1000000/1s").withInFlight(100));
    private static final ThrottlePolicy SLOW =
            ThrottlePolicy.of("slow", BucketSpec.of("1/1h").withInFlight(2)).withMaxWait(Duration.ofSeconds(1));
    private static final ThrottlePolicy POOL = ThrottlePolicy.of("pool", BucketSpec.inFlight(3));
    private static final ThrottlePolicy RATE = ThrottlePolicy.of("rate", BucketSpec.of("100/1h"), "user");
    private static final ThrottlePolicy DAILY = ThrottlePolicy.of(
            "daily", BucketSpec.of("5/1d").withCalendar(ZoneOffset.UTC).withInFlight(2));
    /** Its slots and its tokens are both short now and then. */
    private static final ThrottlePolicy HOT =
            ThrottlePolicy.of("hot", BucketSpec.of("500/1s").withInFlight(2));

    private static final ThrottlePolicy TENANTS = ThrottlePolicy.of(
                    "tenants", BucketSpec.of("100/1h").withInFlight(2))
            .withShares(Shares.forKeys(BucketSpec.of("10/1h"), 2, List.of("header:tenant")));

    private static final ThrottlePolicy HERE = ThrottlePolicy.of("here", BucketSpec.of("1/1h"));
    private static final List<ThrottlePolicy> POLICIES =
            List.of(CHAT, BUSY, SLOW, POOL, RATE, DAILY, HOT, TENANTS, HERE);

    private final TestRedis redis = TestRedis.start();
    private final TimeSource time = new SystemTimeSource();
    private final RedisStorage storage = RedisStorage.withScripts(
            PlainClients.at(redis.port()), "calls", "", new Deadline(time, Duration.ofSeconds(5)));
    private final Throttlers throttlers = throttlers();

    private Throttlers throttlers() {
        Awaitility.await() // no self-test, which would call Redis in the background while calls are counted
                .ignoreExceptionsInstanceOf(BackendException.class)
                .until(() ->
                        storage.store().take(List.of(charge(RATE, "connects"))).allowed());
        FailoverBucketStore shared = new FailoverBucketStore(
                "Redis",
                storage.store(),
                BucketStore.local(time),
                1,
                policy -> FailureRule.DENY,
                new Deadline(time, Duration.ofSeconds(5)));
        BucketStore store = new RoutingBucketStore(
                BucketStore.local(time), shared, policy -> !policy.name().equals("here"));
        return new Throttlers(POLICIES, store, time, ThrottleListener.NONE);
    }

    /** The first use of each script loads it. */
    @BeforeEach
    void loadScripts() throws Exception {
        take(charge(CHAT, "first")).release();
        take(charge(POOL, "")).release();
        take(charge(RATE, "first"));
        awaitIdle();
    }

    @AfterEach
    void close() {
        POLICIES.forEach(
                policy -> assertThat(throttlers.inFlight(policy.name())).isZero());
        storage.close();
        redis.close();
    }

    private static Charge charge(ThrottlePolicy policy, String key) {
        return Charge.of(policy, key, 1);
    }

    private Decision take(Charge... charges) throws InterruptedException {
        return throttlers.acquire(List.of(charges));
    }

    private long calls() {
        return redis.connection()
                .sync()
                .info("commandstats")
                .lines()
                .filter(line -> line.startsWith("cmdstat_evalsha:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll(".*[:,]calls=(\\d+).*", "$1")))
                .sum();
    }

    private long registers() {
        return redis.connection().sync().keys("calls:*@slots:*").stream()
                .map(key -> redis.connection().sync().get(key))
                .filter(register -> register != null && !new String(register).matches("\\w+ \\d+ 0 .*"))
                .count();
    }

    private void awaitIdle() {
        Awaitility.await().until(() -> registers() == 0);
    }

    @Test
    void anAllowedRequestOfAColdKeyCostsOneCallAndOneInTheBackground() throws Exception {
        long before = calls();
        for (int i = 0; i < 10; i++) {
            Decision decision = take(charge(CHAT, "alice " + i));
            assertThat(decision.allowed()).isTrue();
            assertThat(calls()).isEqualTo(before + 2 * i + 1);
            decision.release();
            awaitIdle();
            assertThat(calls()).isEqualTo(before + 2 * i + 2);
        }
    }

    @Test
    void severalPoliciesAreDecidedByOneCall() throws Exception {
        long before = calls();
        Decision decision = take(charge(RATE, "alice"), charge(CHAT, "alice"), charge(POOL, ""), charge(DAILY, ""));
        assertThat(decision.allowed()).isTrue();
        assertThat(decision.answers()).hasSize(4);
        assertThat(decision.answers().get(1).remaining()).isEqualTo(99);
        assertThat(decision.answers().get(2).remaining()).isEqualTo(2);
        assertThat(decision.answers().get(3).remaining()).isEqualTo(4);
        assertThat(calls()).isEqualTo(before + 1);
        assertThat(registers()).isEqualTo(3);
        decision.release();
    }

    @Test
    void aRequestWithAGuaranteedShareCostsOneCall() throws Exception {
        long before = calls();
        Decision decision = take(charge(TENANTS, "").guaranteedTo("alice"));
        assertThat(decision.allowed()).isTrue();
        assertThat(calls()).isEqualTo(before + 1);
        assertThat(registers()).isEqualTo(1);
        decision.release();
    }

    @Test
    void aDenialByTheRateCostsNoCallForSlots() throws Exception {
        Charge all = Charge.of(CHAT, "alice", 100);
        take(all).release();
        awaitIdle();
        long before = calls();
        long began = System.nanoTime();
        for (int i = 0; i < 100; i++) {
            assertThat(take(charge(CHAT, "alice")).outcome()).isEqualTo(Outcome.DENIED);
        }
        long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - began);
        assertThat(calls() - before).as("remembered for a second").isBetween(1L, 3 + seconds);
        assertThat(registers()).isZero();
    }

    @Test
    void aDenialOfACallThatMayWaitCostsOneCall() throws Exception {
        take(charge(SLOW, "")).release();
        awaitIdle();
        long before = calls();
        for (int i = 0; i < 100; i++) {
            assertThat(take(charge(SLOW, "")).outcome()).isEqualTo(Outcome.TOO_LONG);
        }
        assertThat(calls() - before).isEqualTo(100);
        assertThat(registers()).isZero();
    }

    @Test
    void aDenialByMemoryCostsNoCall() throws Exception {
        take(charge(HERE, ""));
        long before = calls();
        assertThat(take(charge(HERE, ""), charge(CHAT, "alice"), charge(POOL, ""))
                        .outcome())
                .isEqualTo(Outcome.DENIED);
        assertThat(calls()).isEqualTo(before);
    }

    @Test
    void aDenialForWantOfASlotCostsOneCallAndNoTokens() throws Exception {
        List<Decision> running = List.of(take(charge(CHAT, "alice")), take(charge(CHAT, "alice")));
        long before = calls();
        for (int i = 0; i < 10; i++) {
            Decision denied = take(charge(RATE, "alice"), charge(CHAT, "alice"), charge(HERE, ""));
            assertThat(denied.outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
            assertThat(denied.denials().get(0).policy().name()).isEqualTo("chat");
        }
        assertThat(calls()).isEqualTo(before + 10);
        assertThat(throttlers.snapshot("rate", "alice").available()).isEqualTo(100);
        assertThat(throttlers.snapshot("chat", "alice").available()).isEqualTo(98);
        assertThat(throttlers.snapshot("here").available()).isEqualTo(1);
        running.forEach(Decision::release);
    }

    @Test
    void aKeyInHeavyUseCostsACallForTokensOnly() throws Exception {
        List<Decision> running = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            running.add(take(charge(BUSY, "")));
        }
        long before = calls();
        for (int i = 0; i < 100; i++) {
            running.remove(0).release();
            running.add(take(charge(BUSY, "")));
        }
        assertThat(calls() - before).isBetween(100L, 110L);
        running.forEach(Decision::release);
    }

    @Test
    void requestsOfManyThreadsLeaveNoSlotBehind() throws Exception {
        List<CompletableFuture<Void>> threads = new ArrayList<>();
        for (int thread = 0; thread < 8; thread++) {
            threads.add(CompletableFuture.runAsync(this::takeOften, task -> new Thread(task).start()));
        }
        threads.forEach(CompletableFuture::join);
        awaitIdle();
        Decision after = take(charge(HOT, ""));
        assertThat(after.outcome()).isIn(Outcome.ALLOWED, Outcome.DENIED);
        after.release();
    }

    private void takeOften() {
        for (int i = 0; i < 500; i++) {
            Decision decision = throttlers.decide(List.of(charge(HOT, ""), charge(RATE, "hot " + i)));
            assertThat(decision.allowed() || decision.retryNanos() > 0).isTrue();
            decision.release();
        }
    }

    @Test
    void theFirstUseLoadsTheScript() throws Exception {
        redis.connection().sync().scriptFlush();
        Decision decision = take(charge(CHAT, "alice"));
        assertThat(decision.allowed()).isTrue();
        decision.release();
    }
}
