package io.ratelimit.redis;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.BucketSpec;
import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.lease.LeasePlace;
import java.time.Duration;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** Keys of the script in the Redis of all tests. */
record RedisPlace(RedisKeys keys) implements LeasePlace {

    private static final RedisCommands<byte[], byte[]> REDIS =
            TestRedis.shared().connection().sync();

    static RedisPlace ofScripts() {
        return new RedisPlace(TestRedis.keys());
    }

    @Override
    public LeasingBucketStore store(LongSupplier micros) {
        return (LeasingBucketStore) TestRedis.shared().scriptStore(keys, Duration.ofSeconds(60), false, micros);
    }

    @Override
    public LeasingBucketStore store(LongSupplier micros, TimeSource clock, boolean oneByOne) {
        return TestRedis.shared().scriptStore(keys, Duration.ofSeconds(60), oneByOne, micros, clock);
    }

    @Override
    public byte @Nullable [] value(Charge charge) {
        return REDIS.get(keys.key(charge));
    }

    @Override
    public void remove(Charge charge) {
        REDIS.del(keys.key(charge));
    }

    @Override
    public Kept kept(byte @Nullable [] value, BucketSpec byDefault, long micros) {
        boolean calendar = byDefault.refill() == BucketSpec.Refill.CALENDAR;
        long now = calendar ? CalendarClock.of(byDefault).at(micros) : micros;
        RedisBucketState state = RedisBucketState.read(value, RedisTickScale.of(byDefault), now);
        return new Kept(state.missing(), state.ticks().full(), state.ticks().perToken());
    }

    @Override
    public BucketSpec spec(byte[] value, List<BucketSpec> specs) {
        RedisTickScale ticks =
                RedisBucketState.read(value, RedisTickScale.of(specs.get(0)), 0).ticks();
        return specs.stream()
                .filter(spec -> RedisTickScale.of(spec).equals(ticks))
                .findFirst()
                .orElseThrow();
    }

    @Override
    public long perToken(BucketSpec spec) {
        return RedisTickScale.of(spec).perToken();
    }

    @Override
    public long clockStep(BucketSpec spec) {
        return 1_000;
    }
}
