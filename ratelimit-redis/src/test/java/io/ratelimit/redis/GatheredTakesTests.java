package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.KillArgs;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.LeasingBucketStore.Grant;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.Threads;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.Deadline;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Takes of different keys that share calls of a real Redis. Most tests decide when the sender looks at the takes. */
@Tag("slow")
class GatheredTakesTests {

    private static final int CAPACITY = 10;
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("api", BucketSpec.of(CAPACITY + "/1d"), "user");
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final RedisClient client = RedisClient.create(
            RedisURI.create(TestRedis.shared().host(), TestRedis.shared().port()));
    private final StatefulRedisConnection<byte[], byte[]> connection = client.connect(ByteArrayCodec.INSTANCE);
    private final RedisKeys keys = TestRedis.keys();
    private final AtomicInteger calls = new AtomicInteger();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final Queue<Runnable> sender = new ConcurrentLinkedQueue<>();
    private final BucketStore store = store(PATIENCE);

    private BucketStore store(Duration timeout) {
        return store(
                () -> {
                    calls.incrementAndGet();
                    return connection.async();
                },
                keys,
                timeout,
                () -> sender::add);
    }

    private static BucketStore store(
            Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis,
            RedisKeys keys,
            Duration timeout,
            Supplier<Executor> sender) {
        return new RedisScriptBucketStore(
                        redis,
                        keys,
                        TestRedis.deadline(timeout),
                        TestRedis.FAILURES,
                        false,
                        () -> RedisBucketStore.SERVER_TIME,
                        TimeSource.system())
                .gathering(sender);
    }

    @AfterEach
    void close() {
        threads.shutdownNow();
        client.shutdown();
    }

    private static Charge charge(String key, long cost) {
        return Charge.of(POLICY, key, cost);
    }

    private Future<Decision> take(BucketStore store, Charge charge) throws Exception {
        return take(() -> store.take(List.of(charge)));
    }

    /** Starts a take, and waits until its thread waits for the reply. */
    private Future<Decision> take(Callable<Decision> call) throws Exception {
        AtomicInteger started = new AtomicInteger();
        Thread[] thread = new Thread[1];
        Future<Decision> take = threads.submit(() -> {
            thread[0] = Thread.currentThread();
            started.set(1);
            return call.call();
        });
        await().pollDelay(Duration.ZERO)
                .pollInterval(Duration.ofMillis(1))
                .until(() -> take.isDone() || started.get() == 1 && thread[0].getState() == Thread.State.TIMED_WAITING);
        return take;
    }

    private void send() {
        Runnable task = sender.poll();
        if (task != null) {
            task.run();
        }
    }

    private List<Future<Decision>> takeOneEach(int count) throws Exception {
        List<Future<Decision>> takes = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            takes.add(take(store, charge("user" + i, 1 + i % CAPACITY)));
        }
        return takes;
    }

    private long available(String key) {
        return store.snapshot(charge(key, 1)).available();
    }

    @Test
    void takesThatComeBeforeTheSenderLooksShareACall() throws Exception {
        List<Future<Decision>> takes = takeOneEach(GatheredTakes.MAX_BUCKETS);
        assertThat(calls).hasValue(0);
        assertThat(sender).hasSize(1);
        send();
        for (int i = 0; i < takes.size(); i++) {
            Decision decision = takes.get(i).get();
            assertThat(decision.allowed()).isTrue();
            assertThat(decision.remaining()).as("take %d", i).isEqualTo(CAPACITY - 1 - i % CAPACITY);
        }
        assertThat(calls).as("the script may not be loaded").hasValueLessThanOrEqualTo(2);
    }

    @Test
    void moreTakesThanACallMayHaveGoWithTheNextCall() throws Exception {
        Future<Decision> first = take(store, charge("loads the script", 1));
        send();
        first.get();
        calls.set(0);
        List<Future<Decision>> takes = takeOneEach(2 * GatheredTakes.MAX_BUCKETS + 1);
        send();
        for (Future<Decision> take : takes) {
            assertThat(take.get().allowed()).isTrue();
        }
        assertThat(calls).hasValue(3);
    }

    @Test
    void oneKeySeveralTimesInACallGrantsNoMoreThanItHas() throws Exception {
        List<Future<Decision>> takes = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            takes.add(take(store, charge("hot", 2)));
            takes.add(take(store, charge("other" + i, 2)));
        }
        send();
        for (int i = 0; i < 6; i++) {
            assertThat(takes.get(2 * i).get().allowed()).as("take %d", i).isEqualTo(i < 5);
            assertThat(takes.get(2 * i + 1).get().remaining()).isEqualTo(8);
        }
        assertThat(available("hot")).isZero();
    }

    @Test
    void bucketsOfDifferentSpecsAreTakenFromUnderTheirOwn() throws Exception {
        ThrottlePolicy other = ThrottlePolicy.of("other", BucketSpec.of("3/1d"), "user");
        List<Future<Decision>> takes = new ArrayList<>();
        for (ThrottlePolicy policy : List.of(POLICY, POLICY, other, other, POLICY)) {
            takes.add(take(store, Charge.of(policy, "user" + takes.size(), 1)));
        }
        send();
        for (int i = 0; i < takes.size(); i++) {
            assertThat(takes.get(i).get().remaining()).as("take %d", i).isEqualTo(i == 2 || i == 3 ? 2 : CAPACITY - 1);
        }
        assertThat(TestRedis.shared().connection().sync().get(keys.key(Charge.of(other, "user3", 1))))
                .asString(StandardCharsets.US_ASCII)
                .endsWith(RedisTickScale.of(other.spec()).name());
    }

    @Test
    void callsOfSeveralBucketsAreAllOrNothingAndShareACall() throws Exception {
        Future<Decision> first = take(store, charge("loads the script", 1));
        send();
        first.get();
        calls.set(0);
        ThrottlePolicy global = ThrottlePolicy.of("global", BucketSpec.of("5/1d"));
        List<Future<Decision>> takes = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            List<Charge> both = List.of(Charge.of(global, "", 2), charge("user" + i, 3));
            takes.add(take(() -> store.take(both)));
        }
        send();
        assertThat(calls).hasValue(1);
        assertThat(takes.get(0).get().answers()).extracting(Answer::remaining).containsExactly(3L, 7L);
        assertThat(takes.get(1).get().answers()).extracting(Answer::remaining).containsExactly(1L, 7L);
        assertThat(takes.get(2).get().denials())
                .extracting(answer -> answer.policy().name())
                .containsExactly("global");
        assertThat(available("user1")).isEqualTo(7);
        assertThat(available("user2")).isEqualTo(CAPACITY);
    }

    @Test
    void aTakeWithALeaseSharesACall() throws Exception {
        Future<Decision> first = take(store, charge("loads the script", 1));
        send();
        first.get();
        calls.set(0);
        Charge charge = Charge.of(POLICY.withLease(Duration.ofMinutes(1)), "user0", 1);
        LeaseRequest request = new LeaseRequest(charge, 4);
        Future<Decision> leasing = take(() -> ((LeasingBucketStore) store).take(List.of(charge), List.of(request)));
        Future<Decision> other = take(store, charge("user1", 1));
        send();
        assertThat(calls).hasValue(1);
        assertThat(leasing.get().remaining())
                .as("a token until the end of the lease")
                .isEqualTo(CAPACITY - 2);
        assertThat(other.get().remaining()).isEqualTo(CAPACITY - 1);
        assertThat(request.grant()).isNotNull().extracting(Grant::tokens).isEqualTo(4L);
        assertThat(available("user0")).isEqualTo(CAPACITY - 5);
    }

    @Test
    void tokensOfASharedCallGoBack() throws Exception {
        List<Future<Decision>> takes = takeOneEach(4);
        send();
        for (int i = 0; i < takes.size(); i++) {
            store.giveBack(takes.get(i).get().taken());
            assertThat(available("user" + i)).isEqualTo(CAPACITY);
        }
    }

    @Test
    void aKeyThatCannotBeReadFailsAlone() throws Exception {
        var redis = TestRedis.shared().connection().sync();
        redis.lpush(keys.key(charge("user1", 1)), new byte[] {1});
        redis.set(keys.key(charge("user2", 1)), new byte[] {1});
        List<Future<Decision>> takes = takeOneEach(4);
        send();
        assertThat(takes.get(0).get().remaining()).isEqualTo(9);
        assertThat(takes.get(3).get().remaining()).isEqualTo(6);
        assertThatThrownBy(() -> takes.get(1).get()).cause().is(TestRedis.MISCONFIGURATION);
        assertThatThrownBy(() -> takes.get(2).get()).cause().is(TestRedis.MISCONFIGURATION);
        assertThat(available("user0")).isEqualTo(9);
        assertThat(available("user3")).isEqualTo(6);
    }

    @Test
    void onAServerWhoseMemoryIsFullManyTakesAreMadeAlone() throws Exception {
        try (TestRedis redis = TestRedis.start()) {
            BucketStore full = store(redis.connection()::async, keys, PATIENCE, () -> sender::add);
            Future<Decision> first = take(full, charge("loads the script", 1));
            send();
            first.get();
            redis.connection().sync().configSet("maxmemory", "1");
            List<Future<Decision>> takes = List.of(take(full, charge("user0", 1)), take(full, charge("user1", 1)));
            send();
            for (Future<Decision> take : takes) {
                assertThatThrownBy(take::get).hasStackTraceContaining("OOM");
            }
            assertThatThrownBy(take(full, charge("user2", 1))::get).hasStackTraceContaining("OOM");
            assertThat(sender).isEmpty();
            redis.connection().sync().configSet("maxmemory", "0");
            for (int i = 1; i < GatheredTakes.TAKES_ALONE; i++) {
                full.take(List.of(charge("user2", 1)));
            }
            assertThat(sender).isEmpty();
            take(full, charge("user2", 1));
            assertThat(sender).hasSize(1);
            send();
        }
    }

    @Test
    void aBucketUnderAnotherSpecIsConverted() throws Exception {
        ThrottlePolicy earlier = POLICY.withSpec(BucketSpec.of("20/1d"));
        Future<Decision> first = take(store, Charge.of(earlier, "user1", 15));
        send();
        first.get();
        List<Future<Decision>> takes = takeOneEach(3);
        send();
        assertThat(takes.get(1).get().remaining()).isEqualTo(3);
        assertThat(available("user0")).isEqualTo(9);
        assertThat(available("user2")).isEqualTo(7);
    }

    @Test
    void aTakeThatWasLateBeforeTheSenderLookedIsNotSent() throws Exception {
        Future<Decision> late = take(store(Duration.ofSeconds(1)), charge("user0", 1));
        assertThatThrownBy(late::get).hasCauseInstanceOf(Deadline.CongestedException.class);
        send();
        assertThat(calls).hasValue(0);
    }

    @Test
    void afterASenderThatEndedWithItsTakesTheNextOneSends() throws Exception {
        BucketStore impatient = store(Duration.ofMillis(50));
        Future<Decision> lost = take(impatient, charge("user0", 1));
        assertThat(sender).hasSize(1);
        sender.clear();
        assertThatThrownBy(lost::get).hasCauseInstanceOf(BackendException.class);
        assertThat(calls).hasValue(0);
        Future<Decision> next = take(impatient, charge("user0", 1));
        assertThat(sender).hasSize(1);
        assertThatThrownBy(next::get).hasCauseInstanceOf(BackendException.class);
    }

    @Test
    void withoutASenderAThreadSendsItself() {
        BucketStore alone = store(connection::async, keys, PATIENCE, () -> task -> {
            throw new RejectedExecutionException();
        });
        assertThat(alone.take(List.of(charge("user0", 1))).remaining()).isEqualTo(9);
    }

    /** A thread that can't be started, for example. */
    @Test
    void afterASenderThatFailedTheNextTakeIsSent() throws Exception {
        AtomicInteger schedules = new AtomicInteger();
        BucketStore failing = store(connection::async, keys, PATIENCE, () -> {
            if (schedules.incrementAndGet() == 1) {
                throw new OutOfMemoryError();
            }
            return sender::add;
        });
        assertThatThrownBy(() -> failing.take(List.of(charge("user0", 1))))
                .isInstanceOf(BackendException.class)
                .hasRootCauseInstanceOf(OutOfMemoryError.class);
        Future<Decision> next = take(failing, charge("user0", 1));
        send();
        assertThat(next.get().remaining()).isEqualTo(9);
    }

    @Test
    void anErrorOfTheClientFailsAllTakesOfItsCall() throws Exception {
        BucketStore broken = store(
                () -> {
                    throw new StackOverflowError();
                },
                keys,
                PATIENCE,
                () -> sender::add);
        List<Future<Decision>> takes = List.of(take(broken, charge("a", 1)), take(broken, charge("b", 1)));
        send();
        for (Future<Decision> take : takes) {
            assertThatThrownBy(take::get).hasRootCauseInstanceOf(StackOverflowError.class);
        }
    }

    /** Redis allows the keys of one policy only, and checks all keys of a call before it runs the script. */
    @Test
    void withoutTheRightForOneKeyTheOthersAreTakenOnce() throws Exception {
        try (TestRedis redis = TestRedis.start()) {
            RedisRights.allow(redis, List.of("+@all", "resetkeys", "~ratelimit:shop:api:*"));
            RedisURI uri = RedisURI.builder()
                    .withHost("127.0.0.1")
                    .withPort(redis.port())
                    .withAuthentication(RedisRights.USER, RedisRights.PASSWORD)
                    .build();
            try (StatefulRedisConnection<byte[], byte[]> limited = client.connect(ByteArrayCodec.INSTANCE, uri)) {
                BucketStore restricted =
                        store(limited::async, new RedisKeys("ratelimit:shop", ""), PATIENCE, () -> sender::add);
                ThrottlePolicy forbidden = ThrottlePolicy.of("other", POLICY.spec(), "user");
                Future<Decision> first = take(restricted, charge("user0", 1));
                Future<Decision> other = take(restricted, Charge.of(forbidden, "user0", 1));
                Future<Decision> last = take(restricted, charge("user1", 1));
                send();
                assertThat(first.get().remaining()).isEqualTo(9);
                assertThat(last.get().remaining()).isEqualTo(9);
                assertThatThrownBy(other::get).cause().is(TestRedis.MISCONFIGURATION);
                assertThat(take(restricted, charge("user2", 1)).get().remaining())
                        .as("is made alone")
                        .isEqualTo(9);
            }
        }
    }

    /** Sends a command of which Lettuce lacks a form. */
    private static void pause(TestRedis redis, String... arguments) {
        CommandArgs<byte[], byte[]> pause = new CommandArgs<>(ByteArrayCodec.INSTANCE);
        List.of(arguments).forEach(pause::add);
        redis.connection().sync().dispatch(CommandType.CLIENT, new StatusOutput<>(ByteArrayCodec.INSTANCE), pause);
    }

    /** Starts many takes while the server lets no script run. */
    private List<Future<Decision>> takeDuringPause(TestRedis redis, BucketStore application) throws Exception {
        await().ignoreExceptions()
                .until(() ->
                        application.take(List.of(charge("loads the script", 1))).allowed());
        pause(redis, "PAUSE", "60000", "WRITE");
        List<Future<Decision>> takes = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            takes.add(take(application, charge("user" + i, 1)));
        }
        return takes;
    }

    /** A call that failed may have taken its tokens, so none is made again. */
    private static void assertFailedAndTakenAtMostOnce(
            TestRedis redis, BucketStore application, List<Future<Decision>> takes) {
        for (Future<Decision> take : takes) {
            assertThatThrownBy(take::get).hasCauseInstanceOf(BackendException.class);
        }
        pause(redis, "UNPAUSE");
        await().ignoreExceptions()
                .until(() -> application.take(List.of(charge("after", 1))).allowed());
        for (int i = 0; i < takes.size(); i++) {
            assertThat(application.snapshot(charge("user" + i, 1)).available())
                    .isBetween(CAPACITY - 1L, (long) CAPACITY);
        }
    }

    @Test
    void aConnectionThatIsCutFailsAllTakesOfItsCalls() throws Exception {
        try (TestRedis redis = TestRedis.start();
                RedisConnections connections = TestRedis.connections("127.0.0.1", "" + redis.port())) {
            BucketStore application = RedisBucketStore.script(connections, keys, TestRedis.deadline(PATIENCE));
            List<Future<Decision>> takes = takeDuringPause(redis, application);
            redis.connection().sync().clientKill(KillArgs.Builder.typeNormal().skipme());
            assertFailedAndTakenAtMostOnce(redis, application, takes);
        }
    }

    @Test
    void aServerThatHangsFailsEachTakeAtItsOwnDeadline() throws Exception {
        try (TestRedis redis = TestRedis.start();
                RedisConnections connections = TestRedis.connections("127.0.0.1", "" + redis.port())) {
            BucketStore application =
                    RedisBucketStore.script(connections, keys, TestRedis.deadline(Duration.ofSeconds(1)));
            List<Future<Decision>> takes = takeDuringPause(redis, application);
            assertFailedAndTakenAtMostOnce(redis, application, takes);
        }
    }

    @Test
    void manyThreadsAreGrantedExactlyWhatTheBucketsHave() {
        int users = 40;
        AtomicIntegerArray granted = new AtomicIntegerArray(users);
        try (RedisConnections connections = TestRedis.connections(
                TestRedis.shared().host(), "" + TestRedis.shared().port())) {
            BucketStore application = RedisBucketStore.script(connections, keys, TestRedis.deadline(PATIENCE));
            Threads.run(16, thread -> {
                SplittableRandom random = new SplittableRandom(thread);
                for (int i = 0; i < 4 * users * CAPACITY / 16; i++) {
                    int user = random.nextInt(users);
                    Decision decision = application.take(List.of(charge("user" + user, 1 + random.nextInt(2))));
                    granted.addAndGet(
                            user,
                            decision.allowed()
                                    ? (int) decision.answers().get(0).charge().cost()
                                    : 0);
                }
            });
            for (int user = 0; user < users; user++) {
                assertThat(granted.get(user)
                                + application.snapshot(charge("user" + user, 1)).available())
                        .as("user %d", user)
                        .isEqualTo(CAPACITY);
            }
        }
    }
}
