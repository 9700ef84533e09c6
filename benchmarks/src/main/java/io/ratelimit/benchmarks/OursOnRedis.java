package io.ratelimit.benchmarks;

import io.lettuce.core.resource.ClientResources;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.MeasuredClients;
import io.ratelimit.redis.RedisStorage;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.RoutingBucketStore;
import java.time.Duration;
import java.util.List;
import java.util.function.Predicate;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Limits on Redis as an application has them: its stores, deadline and circuit breaker included. */
final class OursOnRedis implements AutoCloseable {

    private static final BucketSpec SPEC =
            BucketSpec.of(RedisLimiters.RATE + "/1s").withCapacity(RedisLimiters.CAPACITY);
    private static final ThrottlePolicy PER_USER = ThrottlePolicy.of("per-user", SPEC, "user");
    private static final ThrottlePolicy PER_IP = ThrottlePolicy.of("per-ip", SPEC, "ip");
    private static final ThrottlePolicy LEASED =
            ThrottlePolicy.of("leased", SPEC, "user").withLease(Duration.ofMillis(20));
    private static final ThrottlePolicy SCARCE = ThrottlePolicy.of("scarce", BucketSpec.of("1/1h"), "user");

    private final RedisStorage storage;
    private final Throttlers throttlers;
    private final LettuceConnectionFactory application;

    private OursOnRedis(LettuceConnectionFactory application, RedisStorage storage, Deadline deadline) {
        this.application = application;
        this.storage = storage;
        TimeSource time = TimeSource.system();
        FailoverBucketStore redis = new FailoverBucketStore(
                "Redis", storage.store(), BucketStore.local(time), 1.0, policy -> FailureRule.LOCAL, deadline);
        BucketStore store = new RoutingBucketStore(BucketStore.local(time), redis, policy -> true);
        this.throttlers = new Throttlers(List.of(PER_USER, PER_IP, LEASED, SCARCE), store, time, ThrottleListener.NONE);
        storage.selfTest();
    }

    static OursOnRedis byScript(int port, ClientResources resources) {
        LettuceConnectionFactory application = application(port, resources);
        Deadline deadline = deadline();
        return new OursOnRedis(
                application,
                RedisStorage.withScripts(MeasuredClients.create(application), "ratelimit:shop", "", deadline),
                deadline);
    }

    static OursOnRedis byTransaction(int port, ClientResources resources) {
        LettuceConnectionFactory application = application(port, resources);
        Deadline deadline = deadline();
        return new OursOnRedis(
                application,
                RedisStorage.withTransactions(MeasuredClients.create(application), "ratelimit:store", "", deadline),
                deadline);
    }

    private static Deadline deadline() {
        return new Deadline(TimeSource.system(), Duration.ofMillis(100));
    }

    private static LettuceConnectionFactory application(int port, ClientResources resources) {
        LettuceConnectionFactory application = new LettuceConnectionFactory(
                new RedisStandaloneConfiguration("127.0.0.1", port),
                LettuceClientConfiguration.builder().clientResources(resources).build());
        application.afterPropertiesSet();
        return application;
    }

    /** Returns a limiter that allows a key by the decision of one policy or two on Redis. */
    Predicate<String> policies(int count) {
        return key -> saidYes(throttlers.decide(
                count == 1
                        ? List.of(Charge.of(PER_USER, key, 1))
                        : List.of(Charge.of(PER_USER, key, 1), Charge.of(PER_IP, key, 1))));
    }

    /** Returns whether a policy with a lease allowed the request. */
    boolean isLeased(String key) {
        return saidYes(throttlers.decide(List.of(Charge.of(LEASED, key, 1))));
    }

    private static boolean saidYes(Decision decision) {
        for (Answer answer : decision.answers()) {
            if (answer.fallback()) {
                return false;
            }
        }
        return decision.allowed();
    }

    /** Returns whether a policy with one token an hour denied the request. */
    boolean isRefused(String key) {
        return isRefused(throttlers, key);
    }

    /** The same from memory. */
    static Predicate<String> refusedFromMemory() {
        Throttlers local = Throttlers.local(List.of(SCARCE));
        return key -> isRefused(local, key);
    }

    private static boolean isRefused(Throttlers throttlers, String key) {
        return !throttlers.decide(List.of(Charge.of(SCARCE, key, 1))).allowed();
    }

    @Override
    public void close() {
        storage.close();
        application.destroy();
    }
}
