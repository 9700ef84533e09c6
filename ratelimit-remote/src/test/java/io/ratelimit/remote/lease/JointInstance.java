package io.ratelimit.remote.lease;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.RoutingBucketStore;
import io.ratelimit.remote.lease.JointHistory.Event;
import java.time.Duration;
import java.time.Instant;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.LongSupplier;

/** An instance of an application, with its clocks and its view of the limits. */
final class JointInstance {

    /** The kinds of buckets: the first three are remote, the others in the memory of each instance. */
    enum Kind {
        LEASED,
        SHARED,
        QUOTA,
        MEMORY,
        MEMORY_QUOTA;

        static Kind of(ThrottlePolicy policy) {
            return values()[policy.name().charAt(4) - '0'];
        }

        boolean isRemote() {
            return this != MEMORY && this != MEMORY_QUOTA;
        }

        boolean isQuota() {
            return this == QUOTA || this == MEMORY_QUOTA;
        }
    }

    final ManualTimeSource time = new ManualTimeSource();
    final Map<Kind, BucketSpec> specs = new EnumMap<>(Kind.class);
    final Map<Kind, JointAccount> accounts = new EnumMap<>(Kind.class);
    final Map<Kind, JointAccount> fallbacks = new EnumMap<>(Kind.class);
    final BucketStore memory;
    final BucketStore fallback;
    final ObservedStore remote;
    final FailoverBucketStore failover;
    final BucketStore store;
    final long clockMillionths;
    final Duration lease;
    private long nanosOfMicros;

    JointInstance(JointHistory history) {
        SplittableRandom random = history.random;
        clockMillionths = JointHistory.SECOND - 900 + random.nextInt(1_801);
        long wrong = random.nextBoolean() ? 0 : random.nextLong(800 * JointHistory.DAY) - 400 * JointHistory.DAY;
        setWallClock(JointHistory.START + wrong);
        memory = BucketStore.local(time);
        fallback = BucketStore.local(time);
        remote = new ObservedStore(history.place.store(() -> history.server, time, random.nextInt(4) == 0));
        Deadline deadline = new Deadline(time, Duration.ofSeconds(60));
        failover = new FailoverBucketStore(
                "store", remote, fallback, 1, policy -> history.rules.get(Kind.of(policy)), deadline, Runnable::run);
        store = new RoutingBucketStore(
                memory, failover, policy -> Kind.of(policy).isRemote());
        lease = history.lease.dividedBy(1 + random.nextInt(2));
        for (Kind kind : Kind.values()) {
            List<BucketSpec> all = history.specs.get(kind);
            specs.put(kind, all.get(0));
            LongSupplier wall = () -> time.wallNanos() / 1_000;
            accounts.put(
                    kind,
                    kind.isRemote()
                            ? history.shared.get(kind)
                            : new JointAccount(
                                    all, null, history.calm, history.events.get(Event.EXACT), time::nanoTime, wall));
            fallbacks.put(
                    kind, new JointAccount(all, null, false, history.events.get(Event.EXACT), time::nanoTime, wall));
        }
    }

    void setWallClock(long micros) {
        time.setWallClock(Instant.ofEpochSecond(micros / JointHistory.SECOND, micros % JointHistory.SECOND * 1_000));
    }

    void advance(long passed) {
        nanosOfMicros += passed * clockMillionths;
        time.advance(Duration.ofNanos(nanosOfMicros / 1_000));
        nanosOfMicros %= 1_000;
        readClocks();
    }

    void readClocks() {
        accounts.values().forEach(account -> account.now());
        fallbacks.values().forEach(account -> account.now());
    }

    ThrottlePolicy policy(Kind kind) {
        ThrottlePolicy policy = ThrottlePolicy.of("kind" + kind.ordinal(), specs.get(kind));
        return kind == Kind.LEASED ? policy.withLease(lease) : policy;
    }

    long leased() {
        return failover.leased(policy(Kind.LEASED));
    }
}
