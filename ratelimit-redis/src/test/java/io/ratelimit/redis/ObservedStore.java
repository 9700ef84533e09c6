package io.ratelimit.redis;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.remote.LeasingBucketStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/** A store of scripts in the Redis of all tests, whose calls are counted and can be made to fail. For one thread. */
final class ObservedStore implements LeasingBucketStore {

    private final RedisScriptBucketStore redis;
    final List<Long> asked = new ArrayList<>();
    int calls;
    /** Whether Redis executes the next call and its reply is lost. */
    boolean loseNext;
    /** Whether no call reaches Redis. */
    boolean down;
    /** Runs between Redis's reply and its arrival. */
    Runnable onTheWay = () -> {};

    ObservedStore(RedisKeys keys, LongSupplier micros) {
        redis = (RedisScriptBucketStore) TestRedis.shared().scriptStore(keys, Duration.ofSeconds(60), false, micros);
    }

    private void begin() {
        calls++;
        if (down) {
            throw new BackendException("down");
        }
    }

    private void end() {
        onTheWay.run();
        boolean lose = loseNext;
        loseNext = false;
        if (lose) {
            throw new BackendException("lost");
        }
    }

    @Override
    public Decision take(List<Charge> charges) {
        begin();
        Decision decision = redis.take(charges);
        end();
        return decision;
    }

    @Override
    public Decision take(List<Charge> charges, List<LeaseRequest> leases) {
        begin();
        Decision decision = redis.take(charges, leases.stream().map(this::seen).toList());
        end();
        return decision;
    }

    @Override
    public BucketSnapshot lease(LeaseRequest lease) {
        begin();
        BucketSnapshot after = redis.lease(seen(lease));
        end();
        return after;
    }

    /** Returns the request, or another one if its result is to be lost. */
    private LeaseRequest seen(LeaseRequest lease) {
        asked.add(lease.maxTokens());
        return loseNext ? new LeaseRequest(lease.charge(), lease.maxTokens()) : lease;
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        begin();
        return redis.reserve(charges);
    }

    @Override
    public void giveBack(List<Answer> taken) {
        begin();
        redis.giveBack(taken);
    }

    @Override
    public boolean settle(Answer taken, long cost) {
        begin();
        return redis.settle(taken, cost);
    }

    @Override
    public BucketSnapshot snapshot(Charge charge) {
        return redis.snapshot(charge);
    }

    @Override
    public void reset(Charge charge) {
        begin();
        redis.reset(charge);
    }
}
