package io.ratelimit.redis;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.remote.lease.LeasingBucketStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/** A store in the Redis of all tests, whose calls are counted and can be made to fail. For one thread. */
final class ObservedStore implements LeasingBucketStore {

    private final BucketStore redis;
    final List<Long> asked = new ArrayList<>();
    int calls;
    /** True if Redis is to execute the next call and its reply is to be lost. */
    boolean loseNext;
    /** True if no call is to reach Redis. */
    boolean down;
    /** Runs between Redis's reply and its arrival. */
    Runnable onTheWay = () -> {};

    /** Receives each decision of Redis, also if its reply is lost. */
    Consumer<Decision> decided = decision -> {};

    ObservedStore(RedisKeys keys, LongSupplier micros) {
        this(TestRedis.shared().scriptStore(keys, Duration.ofSeconds(60), false, micros));
    }

    /** @param redis any store; leases need one of scripts */
    ObservedStore(BucketStore redis) {
        this.redis = redis;
    }

    private Decision end(Decision decision) {
        decided.accept(decision);
        end();
        return decision;
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
        return end(redis.take(charges));
    }

    @Override
    public Decision take(List<Charge> charges, List<LeaseRequest> leases) {
        begin();
        return end(((LeasingBucketStore) redis)
                .take(charges, leases.stream().map(this::seen).toList()));
    }

    @Override
    public BucketSnapshot lease(LeaseRequest lease) {
        begin();
        BucketSnapshot after = ((LeasingBucketStore) redis).lease(seen(lease));
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
        return end(redis.reserve(charges));
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
