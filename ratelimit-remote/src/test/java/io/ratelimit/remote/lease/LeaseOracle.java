package io.ratelimit.remote.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.GrantOracle;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/**
 * Instances with leases on one bucket of a remote store, held against the {@link GrantOracle}. The clock of each instance is
 * wrong by up to 900 ppm. Some instances have a shorter lease or none, as during a deployment. The number of a history is its
 * seed. With {@code -Dratelimit.test.steps=4000000} there are 20,000 histories.
 */
public abstract class LeaseOracle {

    private static final int HISTORY = 200;
    private static final int THREADS = 8;
    private static final long START = 1_795_000_000_123_456L;
    private static final long SECOND = 1_000_000;
    private static final long HOUR = 3_600 * SECOND;
    private static final long[] PERIODS = {1_000_000, 999_983, 7_000_000, 100_000};

    @AutoClose("shutdownNow")
    private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);

    private final LongAdder leasedGrants = new LongAdder();
    private final LongAdder refundsToLeases = new LongAdder();
    private final LongAdder grantsOfLostLeases = new LongAdder();

    /** Returns a place that has no bucket. */
    protected abstract LeasePlace place();

    @Test
    void instancesWithLeasesNeverGrantMoreThanOneBucketMay() throws Exception {
        runAll(false);
        assertThat(refundsToLeases.sum()).isPositive();
    }

    /**
     * The store loses the bucket, or its clock is set. A bucket that was lost or whose clock went forward is full again. Then the
     * leases that are out may be used in addition, and no more.
     */
    @Test
    void aStoreThatLosesItsDataOrItsTimeGrantsNoMoreThanTheLeasesThatAreOutAndAFullBucket() throws Exception {
        runAll(true);
        assertThat(grantsOfLostLeases.sum()).isPositive();
    }

    private void runAll(boolean faults) throws Exception {
        List<Future<?>> histories = new ArrayList<>();
        for (int i = 1; i <= GrantOracle.steps(4_000) / HISTORY; i++) {
            int seed = i;
            histories.add(threads.submit(() -> run(seed, faults)));
        }
        for (Future<?> history : histories) {
            history.get();
        }
        assertThat(leasedGrants.sum()).isPositive();
    }

    /** Runs one history. */
    final void run(int seed, boolean faults) {
        new History(seed, faults).run();
    }

    private record Taken(Instance instance, Answer answer, GrantOracle.Grant grant) {}

    private static final class Instance {
        private final ManualTimeSource time = new ManualTimeSource();
        private final long clockMillionths;
        private final ObservedStore remote;
        private final FailoverBucketStore store;
        private ThrottlePolicy policy;
        private long nanosOfMicros;

        Instance(ObservedStore remote, ThrottlePolicy policy, long clockMillionths) {
            this.remote = remote;
            this.policy = policy;
            this.clockMillionths = clockMillionths;
            Deadline deadline = new Deadline(time, Duration.ofSeconds(60));
            this.store = new FailoverBucketStore(
                    "store", remote, BucketStore.local(time), 1, any -> FailureRule.DENY, deadline, Runnable::run);
        }

        void advance(long passed) {
            nanosOfMicros += passed * clockMillionths;
            time.advance(Duration.ofNanos(nanosOfMicros / 1_000));
            nanosOfMicros %= 1_000;
        }

        long leased() {
            return store.leased(policy);
        }
    }

    /** One random history. */
    private final class History {
        private final int seed;
        private final boolean faults;
        private final SplittableRandom random;
        private final LeasePlace place = place();
        private final List<BucketSpec> specs;
        private final List<Long> ticks;
        private final Duration lease;
        private final List<Instance> instances;
        private final List<Taken> taken = new ArrayList<>();
        private long micros = START;
        /** The time of the server minus the true one. */
        private long serverAhead;

        private GrantOracle oracle;
        /** The spec of the value. */
        private BucketSpec written;
        /** The spec from which the value is converted if it isn't its own. */
        private @Nullable BucketSpec origin;

        private int callsWhenRead;
        private byte @Nullable [] value;
        /** The tokens of leases of a bucket that was lost. */
        private long lostLeases;

        private String step = "";

        History(int seed, boolean faults) {
            this.seed = seed;
            this.faults = faults;
            this.random = new SplittableRandom(seed);
            this.specs = specs();
            this.ticks = specs.stream().map(place::perToken).toList();
            this.written = specs.get(0);
            this.lease = lease();
            this.instances =
                    Stream.generate(this::instance).limit(2 + random.nextInt(3)).toList();
            this.oracle = oracle();
        }

        private List<BucketSpec> specs() {
            BucketSpec first = spec();
            Rate faster = new Rate(first.rate().tokens() * 10, first.rate().period());
            return random.nextInt(3) > 0
                    ? List.of(first)
                    : List.of(first, new BucketSpec(faster, first.capacity(), first.refill()), spec());
        }

        private BucketSpec spec() {
            long capacity = new long[] {1, 20, 48, 100, 500}[random.nextInt(5)];
            Duration period = Duration.ofNanos(1_000 * PERIODS[random.nextInt(PERIODS.length)]);
            Refill refill = random.nextInt(4) == 0 ? Refill.INTERVAL : Refill.GREEDY;
            return new BucketSpec(new Rate(1 + random.nextInt((int) capacity), period), capacity, refill);
        }

        /** One lease in eight is longer than the start of an application would permit. */
        private Duration lease() {
            long most = written.timeToFull().toNanos() / (random.nextInt(8) == 0 ? 1 : 4);
            return Duration.ofNanos(Math.min(1 + most / (1 + random.nextInt(10)), 60_000_000_000L));
        }

        private Instance instance() {
            int kind = random.nextInt(6);
            Duration ownLease = kind == 0 ? Duration.ZERO : kind == 1 ? lease.dividedBy(2) : lease;
            return new Instance(
                    new ObservedStore(place.store(() -> micros + serverAhead)),
                    ThrottlePolicy.of("api", written).withLease(ownLease),
                    SECOND - 900 + random.nextInt(1_801));
        }

        private GrantOracle oracle() {
            return new GrantOracle(specs, ticks, 1_000, 1_000 * micros);
        }

        void run() {
            for (int i = 0; i < HISTORY; i++) {
                step = "seed %d, step %d, lease %s, specs %s".formatted(seed, i, lease, specs);
                advance(passed());
                Instance instance = instances.get(random.nextInt(instances.size()));
                if (random.nextInt(30) == 0) {
                    instance.policy = instance.policy.withSpec(specs.get(random.nextInt(specs.size())));
                }
                instance.remote.loseNext = random.nextInt(200) == 0;
                if (faults && random.nextInt(25) == 0) {
                    fail();
                }
                int kind = random.nextInt(12);
                if (random.nextInt(100) == 0) {
                    giveBackDuringALease(instance);
                } else if (kind < 3) {
                    giveBackSome(kind == 0 ? 1 + random.nextInt(100) : 1);
                } else if (kind < 11) {
                    take(instance, kind < 8 ? 1 : 1 + random.nextInt(30));
                } else {
                    instances.forEach(this::takeAll);
                }
            }
        }

        private void advance(long passed) {
            micros += passed;
            instances.forEach(instance -> instance.advance(passed));
        }

        private long passed() {
            long full = written.timeToFull().toNanos() / 1_000;
            long leased = lease.toNanos() / 1_000;
            return switch (random.nextInt(12)) {
                case 0 -> random.nextLong(full + 1);
                case 1 -> leased * 998 / 1_000;
                case 2 -> leased / 2;
                case 3 -> leased * 3 / 2;
                case 4, 5, 6 -> random.nextLong(leased / 10 + 1);
                case 7 -> random.nextLong(full / 20 + 1);
                default -> 0;
            };
        }

        private void fail() {
            switch (random.nextInt(3)) {
                case 0 -> {
                    place.remove(charge(instances.get(0), 1));
                    value = null;
                    origin = null;
                    beginAgain();
                }
                case 1 -> {
                    serverAhead += HOUR;
                    beginAgain();
                }
                default -> {
                    serverAhead -= random.nextBoolean() ? HOUR : random.nextLong(60 * SECOND);
                    oracle.clockSet();
                }
            }
        }

        /** Counts for a new, full bucket from now on, but not the tokens of leases of the bucket before. */
        private void beginAgain() {
            lostLeases = instances.stream().mapToLong(Instance::leased).sum();
            oracle = oracle();
            taken.clear();
        }

        /** Gives back what was taken just before a lease. Used at its end, the lease must not come on top of a full bucket. */
        private void giveBackDuringALease(Instance instance) {
            advance(written.timeToFull().toNanos() / 1_000);
            instance.remote.loseNext = false;
            int before = taken.size();
            for (int i = random.nextInt(30); i >= 0; i--) {
                take(instance, instance.remote);
            }
            List<Taken> withoutLease = List.copyOf(taken.subList(Math.min(before, taken.size()), taken.size()));
            take(instance, 10);
            withoutLease.forEach(this::giveBack);
            taken.removeAll(withoutLease);
            advance(lease.toNanos() / 1_000 * 998 / 1_000);
            for (int i = 0; i < 1_000 && take(instance, instance.remote); i++) {}
            instances.forEach(this::takeAll);
        }

        private void takeAll(Instance instance) {
            for (int i = 0; i < 1_000 && take(instance, instance.store); i++) {}
        }

        private void take(Instance instance, int calls) {
            for (int i = 0; i < calls; i++) {
                take(instance, instance.store);
            }
        }

        private boolean take(Instance instance, BucketStore store) {
            BucketSpec spec = instance.policy.spec();
            long now = 1_000 * micros;
            oracle.use(spec, now);
            oracle.use(written, now);
            if (origin != null) {
                oracle.use(origin, now);
            }
            long cost = random.nextInt(5) > 0 ? 1 : 1 + random.nextLong(Math.max(spec.capacity() / 10, 1));
            Charge charge = charge(instance, cost);
            if (value(charge) == null && oracle.forgotten(written, spec, 1_000 * (micros + serverAhead))) {
                written = spec;
            }
            Decision decision = store.take(List.of(charge));
            readSpec(charge);
            if (instance.leased() > 0) {
                oracle.hold(spec, now, now + instance.policy.lease().toNanos());
            }
            if (!decision.allowed()) {
                return false;
            }
            Answer answer = decision.answers().get(0);
            boolean leased = answer.receipt() instanceof LeasedBucket.Lease;
            if (leased && cost <= lostLeases) {
                lostLeases -= cost;
                grantsOfLostLeases.increment();
                return true;
            }
            leasedGrants.add(leased ? 1 : 0);
            taken.add(new Taken(instance, answer, oracle.granted(spec, cost, now, now, step)));
            return true;
        }

        private static Charge charge(Instance instance, long cost) {
            return Charge.of(instance.policy, "", cost);
        }

        /** Notes the spec of the value, which a denied call may change as well. */
        private void readSpec(Charge charge) {
            byte[] now = specs.size() > 1 ? value(charge) : null;
            written = now == null ? written : place.spec(now, specs);
            origin = now == null ? null : place.origin(now, micros + serverAhead);
        }

        private void giveBackSome(int most) {
            for (int i = Math.min(taken.size(), most); i > 0; i--) {
                int last = random.nextInt(Math.min(taken.size(), 40));
                giveBack(taken.remove(taken.size() - 1 - last));
            }
        }

        /** Counts what came back: to a lease the tokens, to the bucket what it no longer misses. */
        private void giveBack(Taken back) {
            Charge charge = back.answer.charge();
            long leasedBefore = back.instance.leased();
            LeasePlace.Kept before = kept(charge);
            long cost = random.nextBoolean() ? 0 : random.nextLong(charge.cost() + 1);
            if (cost == 0) {
                back.instance.store.giveBack(List.of(back.answer));
            } else {
                back.instance.store.settle(back.answer, cost);
            }
            long returned = before.missing() - kept(charge).missing();
            long perToken = before.perToken();
            if (back.instance.leased() > leasedBefore) {
                refundsToLeases.increment();
                perToken = place.perToken(charge.spec());
                returned = perToken * (charge.cost() - cost);
            }
            oracle.returned(back.grant, returned, perToken, 1_000 * micros, step);
        }

        /** Returns the bucket's value, which only changes with calls. */
        private byte @Nullable [] value(Charge charge) {
            int calls = instances.stream()
                    .mapToInt(instance -> instance.remote.calls)
                    .sum();
            if (calls != callsWhenRead) {
                callsWhenRead = calls;
                value = place.value(charge);
            }
            return value;
        }

        private LeasePlace.Kept kept(Charge charge) {
            return place.kept(value(charge), charge.spec(), micros + serverAhead);
        }
    }
}
