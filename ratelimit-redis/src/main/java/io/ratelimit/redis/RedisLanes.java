package io.ratelimit.redis;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Charge.Share;
import io.ratelimit.Decision.Answer;
import io.ratelimit.redis.RedisBucketStore.Timing;
import io.ratelimit.redis.RedisScript.ScriptReply;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The lanes of the pools of one script call: those of charges with a guaranteed share. Their keys and arguments are behind
 * those of the buckets, in the order of the charges.
 */
record RedisLanes(List<byte[]> keys, List<byte[]> arguments) {

    static final RedisLanes NONE = new RedisLanes(List.of(), List.of());

    /** The first number of the arguments for a lane. */
    private static final double LANE = -2;

    /** The units of a microsecond in which the script counts lanes. */
    private static final int PER_MICRO = 8;

    /** The fewest units for which rounding up makes no difference. */
    private static final int PRECISE = 1_000;

    /** Returns the lane of a charge; null if it has none. */
    static @Nullable BucketSpec of(Charge charge) {
        Share share = charge.share();
        return share == null ? null : share.guaranteed();
    }

    /** Returns the lanes to take from, or to look at. */
    static RedisLanes toTake(List<Charge> charges, Timing timing, RedisKeys keys) {
        RedisLanes lanes = NONE;
        for (int i = 0; i < charges.size(); i++) {
            if (charges.get(i).share() != null) {
                Charge charge = charges.get(i);
                lanes = lanes.with(i, charge, charge.cost(), timing.waitMicros(charge), keys);
            }
        }
        return lanes;
    }

    /** Returns the lanes of calls that lanes served, to change by the difference to the actual cost. */
    static RedisLanes toSettle(List<Answer> taken, long cost, RedisKeys keys) {
        RedisLanes lanes = NONE;
        for (int i = 0; i < taken.size(); i++) {
            Charge charge = taken.get(i).charge();
            if (taken.get(i).isGuaranteed()) {
                lanes = lanes.with(i, charge, Math.abs(charge.cost() - cost), 0, keys);
            }
        }
        return lanes;
    }

    private RedisLanes with(int place, Charge charge, long tokens, long waitMicros, RedisKeys redisKeys) {
        Share share = charge.share();
        BucketSpec lane = share == null ? null : share.guaranteed();
        if (share == null || lane == null) {
            return this;
        }
        byte[] name = redisKeys.hashed(share.key());
        double longestWait = PER_MICRO * (double) (charge.policy().maxWait().toNanos() / 1_000);
        double wait = PER_MICRO * (double) waitMicros;
        double[] numbers = {LANE, place + 1, tokens, perToken(lane), full(lane), share.lanes(), longestWait, wait};
        ByteBuffer argument = ByteBuffer.allocate(numbers.length * Double.BYTES + name.length);
        for (double number : numbers) {
            argument.putDouble(number);
        }
        RedisLanes more = this == NONE ? new RedisLanes(new ArrayList<>(1), new ArrayList<>(1)) : this;
        more.keys.add(redisKeys.lanes(charge));
        more.arguments.add(argument.put(name).array());
        return more;
    }

    /** Returns the units of a full lane, with one for the rounding of sums that aren't whole. */
    private static double full(BucketSpec lane) {
        double full = lane.capacity() * perToken(lane);
        return full == Math.rint(full) ? full : Math.ceil(full) + 1;
    }

    /** Returns the time of a token, rounded up if it is so many units that this makes no difference. */
    private static double perToken(BucketSpec lane) {
        BigInteger nanos = BigInteger.valueOf(lane.rate().period().toNanos()).multiply(BigInteger.valueOf(PER_MICRO));
        BigInteger perToken = BigInteger.valueOf(lane.rate().tokens()).multiply(BigInteger.valueOf(1_000));
        double exact = nanos.doubleValue() / perToken.doubleValue();
        return exact < PRECISE
                ? exact
                : nanos.add(perToken).subtract(BigInteger.ONE).divide(perToken).doubleValue();
    }

    /**
     * Returns the answer of the lane if it serves a charge, or would, and otherwise the pool's.
     *
     * @param place the place of the lane in the reply
     */
    static Answer served(Charge charge, Answer byPool, int place, ScriptReply reply, boolean taken) {
        BucketSpec lane = of(charge);
        if (lane == null || !reply.has(place) || reply.missing(place) < 0) {
            return byPool;
        }
        double missing = reply.missing(place) - (taken ? 0 : charge.cost() * perToken(lane));
        Duration wait = time(missing - lane.capacity() * perToken(lane));
        Answer served = Answer.allowed(charge, snapshot(lane, missing), wait).asGuaranteed();
        Object receipt = byPool.receipt();
        return receipt == null ? served : served.withReceipt(receipt);
    }

    /** Returns whether the lane of a denied charge has the tokens: then the pool is in debt. */
    static boolean hasTokens(Charge charge, int place, ScriptReply reply) {
        BucketSpec lane = of(charge);
        return lane != null
                && reply.has(place)
                && charge.cost() <= lane.capacity()
                && retry(lane, charge.cost(), reply.lacking(place)).isZero();
    }

    /**
     * Returns the lane's denial of a charge if the lane will have the tokens before the pool, and otherwise the pool's. A
     * charge that only a lane could serve is denied as by an empty lane if there is no room for its own.
     */
    static Answer sooner(Charge charge, Answer byPool, int place, ScriptReply reply, Timing timing) {
        BucketSpec lane = of(charge);
        boolean never = !byPool.outcome().isTemporary();
        if (lane == null || charge.cost() > lane.capacity() || !reply.has(place) && !never) {
            return byPool;
        }
        double missing = reply.has(place) ? reply.lacking(place) : lane.capacity() * perToken(lane);
        Duration retry = retry(lane, charge.cost(), missing);
        return !never && byPool.retryNanos() <= retry.toNanos()
                ? byPool
                : Answer.denied(charge, RedisAnswers.denial(charge, timing), snapshot(lane, missing), retry)
                        .asGuaranteed();
    }

    private static Duration retry(BucketSpec lane, long cost, double missing) {
        return time(missing - (lane.capacity() - cost) * perToken(lane));
    }

    /** Returns the lane of a charge as a look saw it; a full one if it doesn't exist. */
    static BucketSnapshot snapshot(BucketSpec lane, ScriptReply reply, long cost) {
        double taken = reply.missing(1) < 0 ? 0 : cost * perToken(lane);
        return snapshot(lane, reply.has(1) ? reply.lacking(1) - taken : 0);
    }

    private static BucketSnapshot snapshot(BucketSpec lane, double missing) {
        double perToken = perToken(lane);
        double debt = Math.max(missing - lane.capacity() * perToken, 0);
        double lacking = missing - debt;
        long available = (long) Math.floor((lane.capacity() * perToken - lacking) / perToken);
        double next = lacking <= 0 ? 0 : debt + lacking - Math.floor((lacking - 1) / perToken) * perToken;
        return new BucketSnapshot(lane.capacity(), lane.rate(), available, time(next), time(missing));
    }

    private static Duration time(double units) {
        return Duration.ofNanos(1_000 * (long) Math.ceil(Math.max(units, 0) / PER_MICRO));
    }
}
