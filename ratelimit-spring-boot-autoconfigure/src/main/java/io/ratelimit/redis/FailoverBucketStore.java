package io.ratelimit.redis;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * Buckets in Redis, and an answer in time when Redis has none: then each policy's {@link FailureRule} decides. What
 * Redis denied a moment ago is denied without asking it. Thread-safe.
 *
 * <p>A call that failed may have taken tokens all the same. It is not made again and they are not given back, so more
 * may have been charged than was granted, never less. What stood in is given back to what stood in; what is to be given
 * back while Redis is away stays taken.
 */
public final class FailoverBucketStore implements BucketStore {

    private final BucketStore redis;
    private final TimeSource time;
    private final GuardedCalls calls;
    private final StandIn standIn;
    private final RememberedDenials denials;

    /**
     * @param redis throws {@link BackendException} when it fails, in time for the deadline
     * @param memory of which nobody else takes: it stands in while Redis is away
     * @param localShare the part of capacity and rate that it grants then, above 0 and at most 1
     * @param rules what holds for a policy then
     */
    public FailoverBucketStore(
            BucketStore redis,
            BucketStore memory,
            double localShare,
            Function<ThrottlePolicy, FailureRule> rules,
            TimeSource time,
            RequestDeadline deadline) {
        this.redis = redis;
        this.time = time;
        this.calls = new GuardedCalls(time, deadline, () -> redis.take(List.of(RedisBuckets.NOBODYS)));
        this.standIn = new StandIn(memory, new LocalShare(localShare), rules);
        this.denials = new RememberedDenials(time);
    }

    /** How Redis is. */
    public Backend backend() {
        return calls;
    }

    /** Notes that Redis failed when the application started. */
    public void failedAtStart(BackendException failure) {
        calls.failedAtStart(failure);
    }

    @Override
    public Decision take(List<Charge> charges) {
        List<Answer> denied = denials.of(charges, true);
        return denied.isEmpty() ? ask(charges, false) : Decision.of(denied);
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        return ask(charges, true);
    }

    /** The answers to those of the charges that Redis denied a moment ago, for a call that doesn't ask it in any case. */
    List<Answer> remembered(List<Charge> charges) {
        return denials.of(charges, false);
    }

    private Decision ask(List<Charge> charges, boolean ahead) {
        long asked = time.nanoTime();
        Decision decision = calls.call(() -> ahead ? redis.reserve(charges) : redis.take(charges));
        if (decision == null) {
            return standIn.take(charges, ahead);
        }
        denials.note(decision, asked);
        return decision;
    }

    @Override
    public void giveBack(List<Answer> taken) {
        List<Answer> fromStandIn = new ArrayList<>();
        List<Answer> fromRedis = new ArrayList<>(taken.size());
        for (Answer answer : taken) {
            (answer.standIn() ? fromStandIn : fromRedis).add(answer);
        }
        if (!fromStandIn.isEmpty()) {
            standIn.giveBack(fromStandIn);
        }
        if (!fromRedis.isEmpty()) {
            calls.call(() -> {
                redis.giveBack(fromRedis);
                return true;
            });
            fromRedis.forEach(answer -> denials.forget(answer.charge()));
        }
    }

    /** While Redis is away, the bucket that stands in for it. */
    @Override
    public BucketSnapshot look(Charge charge) {
        BucketSnapshot seen = calls.call(() -> redis.look(charge));
        seen = seen != null ? seen : standIn.look(charge);
        if (seen == null) {
            throw new BackendException("Redis can't be asked, and nothing stands in for it");
        }
        return seen;
    }

    @Override
    public void forget(Charge charge) {
        standIn.forget(charge);
        Boolean done = calls.call(() -> {
            redis.forget(charge);
            return true;
        });
        denials.forget(charge);
        if (done == null) {
            throw new BackendException("Redis can't be asked, and the bucket may be there still");
        }
    }

    /** Those that stood in for Redis's, and are kept for the next time. */
    @Override
    public long size(ThrottlePolicy policy) {
        return standIn.size(policy);
    }
}
