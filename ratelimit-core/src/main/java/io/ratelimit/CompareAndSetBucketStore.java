package io.ratelimit;

import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A store of buckets in a place that keeps a value for each bucket, has a clock, and replaces values only if they are
 * unchanged: a transaction, the rows of a database, a grid. All that a bucket does is done here: a subclass reads values
 * together with the clock, and compares and sets them.
 *
 * <p>A call reads its buckets, counts, and writes those that changed. If another call wrote first, it does so again, as
 * long as there is time. A denied call writes nothing, unless the bucket's spec has changed.
 */
public abstract class CompareAndSetBucketStore implements LeasingBucketStore {

    private final Duration timeout;

    /**
     * The name of a bucket, comparable so that a map finds keys with equal hash codes quickly.
     *
     * @param policy the name of the policy
     * @param key the key of the bucket, which may come from a client: it must not get into a log
     */
    public record BucketName(String policy, String key) implements Comparable<BucketName> {

        @Override
        public int compareTo(BucketName other) {
            int byKey = key.compareTo(other.key);
            return byKey != 0 ? byKey : policy.compareTo(other.policy);
        }

        /** Returns the name of a charge's bucket. */
        public static BucketName of(Charge charge) {
            return new BucketName(charge.policy().name(), charge.key());
        }

        /** Leaves out the key. */
        @Override
        public String toString() {
            return "BucketName[policy=" + policy + "]";
        }
    }

    /**
     * Values at one moment.
     *
     * @param epochMicros the time of the place's clock, which all processes share, in microseconds since
     *     1970-01-01T00:00Z; not before the values were read
     * @param values the value of each bucket, in the order of the names; null for a bucket without a value
     */
    public record Reading(long epochMicros, List<byte @Nullable []> values) {}

    /**
     * A value to write.
     *
     * @param bucket the name of the bucket
     * @param before the value as it was read; null if there was none
     * @param after the new value; null to remove the value
     * @param timeToLive the time after which the value may be removed, and not before
     */
    public record Change(BucketName bucket, byte @Nullable [] before, byte @Nullable [] after, Duration timeToLive) {}

    /** @param timeout the time in which a call tries again while other calls write first */
    protected CompareAndSetBucketStore(Duration timeout) {
        this.timeout = timeout;
    }

    /**
     * Reads the clock and the values of buckets.
     *
     * @throws BackendException if that fails
     */
    protected abstract Reading read(List<BucketName> buckets);

    /**
     * Replaces all of the values, or none if one of them isn't what was read before.
     *
     * @param changes changes of different buckets
     * @return whether the values were replaced
     * @throws BackendException if that fails; the values may be replaced then
     */
    protected abstract boolean compareAndSet(List<Change> changes);

    /** Returns the failure of a call that other calls always forestalled. */
    protected BackendException forestalled() {
        return new BackendException("other calls were always first to write to a bucket");
    }

    @Override
    public final Decision take(List<Charge> charges) {
        return take(charges, false, List.of());
    }

    @Override
    public final Decision take(List<Charge> charges, List<LeaseRequest> leases) {
        return take(charges, false, leases);
    }

    @Override
    public final Decision reserve(List<Charge> charges) {
        return take(charges, true, List.of());
    }

    private Decision take(List<Charge> charges, boolean ahead, List<LeaseRequest> leases) {
        return charges.isEmpty()
                ? Decision.of(List.of())
                : transact(charges, buckets -> take(charges, ahead, leases, buckets));
    }

    private static Result<Decision> take(
            List<Charge> charges, boolean ahead, List<LeaseRequest> leases, Buckets buckets) {
        List<Answer> answers = new ArrayList<>(charges.size());
        for (int i = 0; i < charges.size(); i++) {
            Charge charge = charges.get(i);
            Grant grant = buckets.lease(LeaseRequest.find(leases, charge), charge.cost());
            StoredBucket bucket = buckets.of(charge).under(charge.spec());
            Answer answer =
                    grant == null ? bucket.take(charge, maxWaitNanos(charge, ahead)) : bucket.takeLeased(charge, grant);
            if (!answer.allowed()) {
                return denied(charges, i, answer, ahead, buckets.untouched());
            }
            answers.add(answer);
        }
        return new Result<>(Decision.of(answers), buckets);
    }

    /** Peeks at the buckets beside the one that denied, so that the decision names every bucket that is short. */
    private static Result<Decision> denied(
            List<Charge> charges, int denied, Answer denial, boolean ahead, Buckets buckets) {
        List<Answer> answers = new ArrayList<>(charges.size());
        Buckets converted = buckets.untouched();
        for (int i = 0; i < charges.size(); i++) {
            Charge charge = charges.get(i);
            Answer answer = i == denied
                    ? denial
                    : buckets.of(charge).under(charge.spec()).peek(charge, maxWaitNanos(charge, ahead));
            answers.add(answer);
            if (answer.outcome().isTemporary()) {
                converted.of(charge).under(charge.spec());
            }
        }
        return new Result<>(Decision.of(answers), converted);
    }

    private static long maxWaitNanos(Charge charge, boolean ahead) {
        return ahead ? charge.maxWait().toNanos() : 0;
    }

    @Override
    public final BucketSnapshot lease(LeaseRequest lease) {
        Charge charge = lease.charge();
        return transact(List.of(charge), buckets -> {
            boolean leased = buckets.lease(lease, 0) != null;
            BucketSnapshot after = buckets.of(charge).snapshot(charge.spec());
            return new Result<>(after, leased ? buckets : buckets.untouched());
        });
    }

    /** Gives back the last answer first: if two takes are from one bucket, the second depends on the first. */
    @Override
    public final void giveBack(List<Answer> taken) {
        if (!taken.isEmpty()) {
            transact(taken.stream().map(Answer::charge).toList(), buckets -> {
                for (int i = taken.size() - 1; i >= 0; i--) {
                    buckets.of(taken.get(i).charge()).giveBack(taken.get(i), 0);
                }
                return new Result<>(true, buckets);
            });
        }
    }

    @Override
    public final boolean settle(Answer taken, long cost) {
        long more = cost - taken.charge().cost();
        return more == 0
                || transact(List.of(taken.charge()), buckets -> {
                    StoredBucket bucket = buckets.of(taken.charge());
                    if (more > 0) {
                        bucket.owe(more);
                    } else {
                        bucket.giveBack(taken, cost);
                    }
                    return new Result<>(true, buckets);
                });
    }

    @Override
    public final BucketSnapshot snapshot(Charge charge) {
        return transact(
                List.of(charge),
                buckets -> new Result<>(buckets.of(charge).snapshot(charge.spec()), buckets.untouched()));
    }

    @Override
    public void reset(Charge charge) {
        transact(List.of(charge), buckets -> {
            buckets.of(charge).reset();
            return new Result<>(true, buckets);
        });
    }

    private record Result<T>(T value, Buckets buckets) {}

    /** The buckets of a reading, each read at its first use. */
    private static final class Buckets {

        private final Map<BucketName, StoredBucket> used = new LinkedHashMap<>();
        private final Map<LeaseRequest, Grant> grants = new LinkedHashMap<>(0);
        private final List<BucketName> names;
        private final Reading reading;

        Buckets(List<BucketName> names, Reading reading) {
            this.names = names;
            this.reading = reading;
        }

        StoredBucket of(Charge charge) {
            BucketName name = BucketName.of(charge);
            return used.computeIfAbsent(
                    name,
                    unused -> new StoredBucket(
                            reading.values.get(names.indexOf(name)), charge.spec(), reading.epochMicros));
        }

        /** Takes a lease with the tokens of a charge. Returns null if nothing was taken. */
        @Nullable
        Grant lease(@Nullable LeaseRequest request, long cost) {
            Grant grant = request == null
                    ? null
                    : of(request.charge()).under(request.charge().spec()).lease(request, cost);
            if (request != null && grant != null) {
                grants.put(request, grant);
            }
            return grant;
        }

        Buckets untouched() {
            return new Buckets(names, reading);
        }

        List<Change> changes() {
            List<Change> changes = new ArrayList<>(used.size());
            used.forEach((name, bucket) -> {
                if (bucket.isChanged()) {
                    changes.add(new Change(name, bucket.value(), bucket.written(), bucket.timeToLive()));
                }
            });
            return changes;
        }
    }

    private <T> T transact(List<Charge> charges, Function<Buckets, Result<T>> work) {
        List<BucketName> names = charges.stream().map(BucketName::of).distinct().toList();
        long end = System.nanoTime() + timeout.toNanos();
        long took;
        do {
            long began = System.nanoTime();
            Result<T> result = work.apply(new Buckets(names, read(names)));
            List<Change> changes = result.buckets.changes();
            if (changes.isEmpty() || compareAndSet(changes)) {
                result.buckets.grants.forEach(LeaseRequest::grant);
                return result.value;
            }
            took = System.nanoTime() - began;
        } while (end - System.nanoTime() > took);
        throw forestalled();
    }
}
