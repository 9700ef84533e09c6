package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.ByteArrayCodec;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.inflight.RegisterModel;
import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** The script of registers, in a real Redis. */
class RedisRegistersTests {

    private static final Duration TIME_TO_LIVE = Duration.ofSeconds(10);
    private static final BucketName ALICE = new BucketName("exports", "alice");
    private static final BucketName BOB = new BucketName("exports", "bob");

    private final RedisKeys keys = TestRedis.keys();
    private final AtomicLong time = new AtomicLong(1_800_000_000_000_000L);

    private RedisRegisters registers(boolean serverTime) {
        return registers(TestRedis.shared().connection(), serverTime);
    }

    private RedisRegisters registers(StatefulRedisConnection<byte[], byte[]> connection, boolean serverTime) {
        return new RedisRegisters(
                connection::async,
                keys,
                () -> serverTime ? RedisBucketStore.SERVER_TIME : time.get(),
                TimeSource.system());
    }

    private static Reply set(RedisRegisters registers, BucketName key, Claim claim) throws Exception {
        return registers.set(key, claim, TIME_TO_LIVE).get(10, TimeUnit.SECONDS);
    }

    /** Claims with numbers from before, of processes whose registers run out, with limits that change. */
    @RepeatedTest(20)
    void agreesWithTheModelThatTheHistoriesAreSearchedWith(RepetitionInfo repetition) throws Exception {
        SplittableRandom random = new SplittableRandom(repetition.getCurrentRepetition());
        RegisterModel model = new RegisterModel();
        List<RedisRegisters> processes =
                Stream.generate(() -> registers(false)).limit(4).toList();
        long number = 1_000_000_000_000L;
        for (int step = 0; step < 150; step++) {
            int process = random.nextInt(processes.size());
            int have = random.nextInt(6);
            number += random.nextInt(-2, 4);
            Claim claim = new Claim(number, have, have + random.nextInt(4), random.nextInt(1, 9));
            assertThat(set(processes.get(process), ALICE, claim))
                    .as("seed %d, step %d", repetition.getCurrentRepetition(), step)
                    .isEqualTo(model.set(process, claim, TIME_TO_LIVE.toNanos() / 1_000, time.get()));
            time.addAndGet(
                    random.nextInt(5) > 0 ? random.nextLong(1_000_000) : random.nextLong(-12_000_000, 12_000_000));
        }
    }

    @Test
    void countsByTheClockOfTheServerAndForgetsTheKey() throws Exception {
        RedisRegisters one = registers(true);
        RedisRegisters other = registers(true);
        TestRedis.shared().connection().sync().scriptFlush();

        assertThat(set(one, ALICE, new Claim(1, 0, 2, 3))).isEqualTo(new Reply(2, 0));
        assertThat(set(other, ALICE, new Claim(1, 0, 2, 3))).isEqualTo(new Reply(1, 2));
        assertThat(set(other, BOB, new Claim(1, 0, 2, 3))).isEqualTo(new Reply(2, 0));
        assertThat(set(one, ALICE, new Claim(2, 0, 0, 3))).isEqualTo(new Reply(0, 1));
        assertThat(set(one, ALICE, new Claim(1, 2, 2, 3))).as("a late claim").isEqualTo(new Reply(-1, 0));
        assertThat(TestRedis.shared().connection().sync().pttl(keys.slots(ALICE)))
                .isBetween(1L, TIME_TO_LIVE.toMillis() + 1_000);
    }

    /** As after a failover to a replica whose clock is behind. */
    @Test
    void afterAClockWasSetBackTheSlotsOfADeadProcessAreFreeAfterTheTimeToLive() throws Exception {
        assertThat(set(registers(false), ALICE, new Claim(1, 3, 3, 3))).isEqualTo(new Reply(3, 0));
        time.addAndGet(-TimeUnit.HOURS.toMicros(1));
        RedisRegisters alive = registers(false);
        assertThat(set(alive, ALICE, new Claim(1, 0, 1, 3))).isEqualTo(new Reply(0, 3));
        time.addAndGet(9_999_999);
        assertThat(set(alive, ALICE, new Claim(2, 0, 1, 3))).isEqualTo(new Reply(0, 3));
        time.addAndGet(1);
        assertThat(set(alive, ALICE, new Claim(3, 0, 1, 3))).isEqualTo(new Reply(1, 0));
    }

    @Test
    void aCopyOfAProcessHasARegisterOfItsOwn() throws Exception {
        RedisRegisters process = registers(true);
        assertThat(set(process, ALICE, new Claim(5, 1, 1, 2))).isEqualTo(new Reply(1, 0));
        process.restart();
        assertThat(set(process, ALICE, new Claim(6, 0, 2, 2))).isEqualTo(new Reply(1, 1));
    }

    @Test
    void aClaimThatIsCancelledIsNotSent() throws Exception {
        TestRedis redis = TestRedis.shared();
        try (RedisClient client = RedisClient.create(RedisURI.create(redis.host(), redis.port()));
                StatefulRedisConnection<byte[], byte[]> connection = client.connect(ByteArrayCodec.INSTANCE)) {
            RedisRegisters process = registers(connection, true);
            assertThat(set(process, ALICE, new Claim(1, 0, 1, 2))).isEqualTo(new Reply(1, 0));
            connection.setAutoFlushCommands(false);
            process.set(ALICE, new Claim(3, 0, 1, 2), TIME_TO_LIVE).cancel(true);
            connection.flushCommands();
            connection.setAutoFlushCommands(true);
            assertThat(set(process, ALICE, new Claim(2, 0, 2, 2))).isEqualTo(new Reply(2, 0));
        }
    }
}
