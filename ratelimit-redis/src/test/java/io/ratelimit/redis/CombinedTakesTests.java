package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.ByteArrayCodec;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.RedisBucketStore.Timing;
import io.ratelimit.redis.RedisScript.Started;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.Deadline.CongestedException;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.core.ConditionFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Takes that share calls of a real Redis. The connection sends a command only when a test flushes it. */
@Tag("slow")
class CombinedTakesTests {

    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("api", BucketSpec.of("10/1d"));

    private final RedisClient client = RedisClient.create(
            RedisURI.create(TestRedis.shared().host(), TestRedis.shared().port()));
    private final StatefulRedisConnection<byte[], byte[]> connection = client.connect(ByteArrayCodec.INSTANCE);
    private final RedisKeys keys = TestRedis.keys();
    private final AtomicInteger calls = new AtomicInteger();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    private BucketStore store(Duration timeout) {
        return scriptStore(timeout);
    }

    private RedisScriptBucketStore scriptStore(Duration timeout) {
        RedisScriptBucketStore store = new RedisScriptBucketStore(
                () -> {
                    calls.incrementAndGet();
                    return connection.async();
                },
                keys,
                TestRedis.deadline(timeout),
                TestRedis.FAILURES,
                false,
                () -> RedisBucketStore.SERVER_TIME,
                TimeSource.system());
        TestRedis.shared()
                .scriptStore(keys, Duration.ofSeconds(60), false, () -> RedisBucketStore.SERVER_TIME)
                .take(List.of(Charge.of(POLICY, "loads the script", 1)));
        connection.setAutoFlushCommands(false);
        return store;
    }

    @AfterEach
    void close() {
        threads.shutdownNow();
        client.shutdown();
    }

    private Future<Decision> take(BucketStore store, Charge charge) {
        return threads.submit(() -> store.take(List.of(charge)));
    }

    private static Charge charge(String key, long cost) {
        return Charge.of(POLICY, key, cost);
    }

    /** Waits until so many threads wait for replies, one of which has just begun. */
    private void awaitWaiting(int number) {
        awaitWaiting(number, await().pollDelay(Duration.ZERO).pollInterval(Duration.ofMillis(2)));
    }

    private static void awaitWaiting(int number, ConditionFactory await) {
        await.until(() -> Thread.getAllStackTraces().entrySet().stream()
                        .filter(thread -> thread.getKey().getState() == Thread.State.TIMED_WAITING)
                        .filter(thread -> List.of(thread.getValue()).stream()
                                .anyMatch(frame -> frame.getClassName().equals(CombinedTakes.class.getName())))
                        .count()
                == number);
    }

    private void flushUntilDone() {
        await().until(() -> {
            connection.flushCommands();
            return ((ThreadPoolExecutor) threads).getActiveCount() == 0;
        });
    }

    @Test
    void takesThatComeDuringACallShareTheNextOneAndTheFirstThatFitAreAllowed() throws Exception {
        BucketStore store = store(Duration.ofSeconds(60));
        List<Future<Decision>> takes = new ArrayList<>();
        for (int i = 0; i < 21; i++) {
            takes.add(take(store, charge("hot", 1)));
            awaitWaiting(i + 1);
        }
        assertThat(calls).hasValue(CombinedTakes.MAX_CALLS);
        flushUntilDone();
        assertThat(calls).hasValue(CombinedTakes.MAX_CALLS + 1);
        for (int i = 0; i < 21; i++) {
            Decision decision = takes.get(i).get();
            assertThat(decision.allowed()).isEqualTo(i < 10);
            assertThat(decision.remaining()).isEqualTo(Math.max(9 - i, 0));
        }
    }

    @Test
    void otherBucketsAndOtherCostsHaveCallsOfTheirOwn() {
        BucketStore store = store(Duration.ofSeconds(60));
        take(store, charge("one", 1));
        take(store, charge("other", 1));
        take(store, charge("one", 2));
        awaitWaiting(3);
        assertThat(calls).hasValue(3);
        flushUntilDone();
    }

    @Test
    void anotherSpecHasACallOfItsOwn() throws Exception {
        BucketStore store = store(Duration.ofSeconds(60));
        for (int i = 0; i < CombinedTakes.MAX_CALLS; i++) {
            take(store, charge("hot", 1));
        }
        awaitWaiting(CombinedTakes.MAX_CALLS);
        Future<Decision> other = take(store, Charge.of(POLICY.withSpec(BucketSpec.of("50/1d")), "hot", 1));
        awaitWaiting(CombinedTakes.MAX_CALLS + 1);
        assertThat(calls).hasValue(CombinedTakes.MAX_CALLS + 1);
        flushUntilDone();
        assertThat(other.get().answers().get(0).charge().spec().capacity()).isEqualTo(50);
    }

    @Test
    void afterACallThatFailedTheNextOneIsMade() {
        BucketStore store = store(Duration.ofSeconds(60));
        List<Future<Decision>> takes = new ArrayList<>();
        for (int i = 0; i < CombinedTakes.MAX_CALLS + 2; i++) {
            takes.add(take(store, charge("hot", 1)));
            awaitWaiting(i + 1);
        }
        TestRedis.shared().connection().sync().set(keys.key(charge("hot", 1)), new byte[] {1});
        flushUntilDone();
        for (Future<Decision> take : takes) {
            assertThatThrownBy(take::get).hasCauseInstanceOf(BackendException.class);
        }
        assertThat(calls).hasValue(CombinedTakes.MAX_CALLS + 1);
    }

    @Test
    void tokensOfASharedCallGoBackAsThoseOfAnyOther() throws Exception {
        BucketStore store = store(Duration.ofSeconds(60));
        List<Future<Decision>> takes = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            takes.add(take(store, charge("hot", 1)));
            awaitWaiting(i + 1);
        }
        flushUntilDone();
        connection.setAutoFlushCommands(true);
        assertThat(store.snapshot(charge("hot", 1)).available()).isZero();
        for (Future<Decision> take : takes) {
            store.giveBack(take.get().taken());
        }
        assertThat(store.snapshot(charge("hot", 1)).available()).isEqualTo(10);
    }

    @Test
    void aTakeThatIsLateLeavesTheNextCall() throws Exception {
        BucketStore store = store(Duration.ofSeconds(1));
        List<Future<Decision>> takes = new ArrayList<>();
        for (int i = 0; i < CombinedTakes.MAX_CALLS + 2; i++) {
            takes.add(take(store, charge("hot", 1)));
        }
        for (Future<Decision> take : takes) {
            assertThatThrownBy(take::get).hasCauseInstanceOf(BackendException.class);
        }
        connection.setAutoFlushCommands(true);
        connection.flushCommands();
        assertThat(store.take(List.of(charge("hot", 1))).remaining())
                .as("the late takes took nothing")
                .isEqualTo(9);
    }

    /** A rolling deployment that changes the rate of a policy with leases converts the bucket again and again. */
    @Test
    void takesShareCallsAlsoWhileTheBucketHasAPromise() throws Exception {
        BucketStore store = store(Duration.ofSeconds(60));
        connection.setAutoFlushCommands(true);
        ThrottlePolicy policy = POLICY.withSpec(BucketSpec.of("100/1d"));
        Charge charge = Charge.of(policy, "hot", 1);
        Decision all = store.take(List.of(Charge.of(policy, "hot", 100)));
        store.reserve(List.of(charge.withMaxWait(Duration.ofDays(1))));
        store.giveBack(all.taken());
        int left = 2 * CombinedTakes.MAX_CALLS + 2;
        int spare = (int) store.snapshot(charge).available() - left;
        store.take(List.of(Charge.of(policy, "hot", spare)));
        calls.set(0);

        connection.setAutoFlushCommands(false);
        List<Future<Decision>> takes = new ArrayList<>();
        for (int i = 0; i < left + 2; i++) {
            takes.add(take(store, charge));
            awaitWaiting(i + 1);
        }
        flushUntilDone();
        assertThat(calls).hasValue(CombinedTakes.MAX_CALLS + 1);
        for (int i = 0; i < takes.size(); i++) {
            Decision decision = takes.get(i).get();
            assertThat(decision.allowed()).as("take %d", i).isEqualTo(i < left);
            assertThat(decision.remaining()).as("take %d", i).isEqualTo(Math.max(left - 1 - i, 0));
        }
    }

    /** After a change to batches, Redis takes the tokens one by one until the next batch. */
    @Test
    void takesThatACallDoesNotDecideComeBeforeLaterOnes() throws Exception {
        BucketStore store = store(Duration.ofSeconds(60));
        connection.setAutoFlushCommands(true);
        BucketSpec oneByOne = BucketSpec.of("100/365d");
        Charge charge = Charge.of(POLICY.withSpec(oneByOne.withRefill(Refill.INTERVAL)), "hot", 1);
        int left = 2 * CombinedTakes.MAX_CALLS + 2;
        store.take(List.of(Charge.of(POLICY.withSpec(oneByOne), "hot", 100 - left)));

        connection.setAutoFlushCommands(false);
        List<Future<Decision>> takes = new ArrayList<>();
        int waiting = 0;
        for (int i = 0; i < CombinedTakes.MAX_CALLS + 3; i++) {
            takes.add(take(store, charge));
            awaitWaiting(++waiting);
        }
        connection.flushCommands();
        awaitWaiting(waiting -= CombinedTakes.MAX_CALLS, await()); // not a moment in which others begin to wait
        for (int i = 0; i < CombinedTakes.MAX_CALLS; i++) {
            takes.add(take(store, charge));
            awaitWaiting(++waiting);
        }
        flushUntilDone();
        for (int i = 0; i < takes.size(); i++) {
            assertThat(takes.get(i).get().allowed()).as("take %d", i).isEqualTo(i < left);
        }
    }

    @Test
    void aTakeThatWasLateDuringTheCallsOfOthersIsNotSent() throws Exception {
        RedisScriptBucketStore store = scriptStore(Duration.ofSeconds(60));
        CombinedTakes combined = new CombinedTakes(
                store.script(), charge -> store.script().startTake(List.of(charge), List.of(), Timing.AT_ONCE));
        for (int i = 0; i < CombinedTakes.MAX_CALLS; i++) {
            threads.execute(() -> combined.take(charge("hot", 1), call(Duration.ofSeconds(60))));
        }
        awaitWaiting(CombinedTakes.MAX_CALLS);
        assertThatThrownBy(() -> combined.take(charge("hot", 1), call(Duration.ofMillis(10))))
                .isInstanceOf(BackendException.class);
        threads.execute(() -> combined.take(charge("hot", 1), call(Duration.ofSeconds(60))));
        awaitWaiting(CombinedTakes.MAX_CALLS + 1);
        assertThat(calls).as("the next take waits for slow calls too").hasValue(CombinedTakes.MAX_CALLS);
        flushUntilDone();
        assertThat(calls).hasValue(CombinedTakes.MAX_CALLS + 1);
    }

    private static Deadline.Call call(Duration timeout) {
        return Deadline.Call.within(timeout, RedisFailures::of);
    }

    /** A call that doesn't end, as if an error had kept it from being sent. */
    private static final class Lost extends Started {

        @Override
        long sentAt() {
            return 0;
        }

        @Override
        public boolean cancel(boolean mayInterrupt) {
            return false;
        }
    }

    @Test
    void afterCallsThatWereLostLaterTakesHaveCallsOfTheirOwn() {
        CombinedTakes combined =
                new CombinedTakes(scriptStore(Duration.ofSeconds(60)).script(), charge -> {
                    calls.incrementAndGet();
                    return new Lost();
                });
        for (int i = 0; i < CombinedTakes.MAX_CALLS + 2; i++) {
            assertThatThrownBy(() -> combined.take(charge("hot", 1), call(Duration.ofMillis(1))))
                    .isInstanceOf(CongestedException.class);
        }
        assertThat(calls).hasValue(CombinedTakes.MAX_CALLS + 1);
    }

    /** Otherwise the takes would wait until their deadline, and the queue would stay for ever. */
    @Test
    void anErrorOfACallThatIsRepeatedEndsItsTakes() {
        ManualTimeSource clock = new ManualTimeSource();
        RedisScriptBucketStore store = new RedisScriptBucketStore(
                () -> {
                    if (calls.incrementAndGet() % 2 == 0) {
                        throw new StackOverflowError();
                    }
                    return connection.async();
                },
                keys,
                TestRedis.deadline(Duration.ofSeconds(60)),
                TestRedis.FAILURES,
                false,
                () -> RedisBucketStore.SERVER_TIME,
                clock);
        Charge daily = Charge.of(POLICY.withSpec(BucketSpec.of("10/day").withCalendar(ZoneOffset.UTC)), "hot", 1);
        TestRedis.shared()
                .scriptStore(keys, Duration.ofSeconds(60), false, () -> RedisBucketStore.SERVER_TIME)
                .take(List.of(daily));
        for (int i = 0; i <= CombinedTakes.MAX_CALLS; i++) {
            clock.advance(Duration.ofDays(40));
            assertThatThrownBy(() -> store.take(List.of(daily)))
                    .isInstanceOf(CongestedException.class)
                    .hasRootCauseInstanceOf(StackOverflowError.class);
        }
        assertThat(calls).hasValue(2 * (CombinedTakes.MAX_CALLS + 1));
    }
}
