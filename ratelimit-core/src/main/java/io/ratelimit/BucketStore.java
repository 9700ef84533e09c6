package io.ratelimit;

import io.ratelimit.Decision.Answer;
import java.util.List;

/**
 * Where buckets are. A bucket is there from the first time it is asked, and then it is full; it is forgotten only when
 * it is full again. Policies of one name share their buckets. Where, in which time, and how several are taken from as
 * one, is the store's affair. Thread-safe.
 */
public interface BucketStore {

    /** Buckets in the memory of this process. */
    static BucketStore local(TimeSource time) {
        return new LocalBucketStore(time);
    }

    /**
     * Takes all of the charges or none; of an empty list that is all. The charges have keys: {@link Throttlers} answers
     * those without.
     *
     * @return what each bucket said, in the order of the charges; where not all could be taken, also what those that
     *     had the tokens said, and they have them still; but where asking takes time, those that needn't be asked after
     *     another denied are left out
     */
    Decision take(List<Charge> charges);

    /**
     * Like {@link #take}, but takes tokens ahead where they will come within the charge's {@link Charge#maxWait}: the
     * call may go ahead {@link Decision#waitNanos} from now. First come, first served: who takes ahead goes before all
     * who ask later.
     */
    Decision reserve(List<Charge> charges);

    /**
     * Puts back what was taken. A full bucket stays full; what is given back to a key that is not known is dropped.
     * Where others wait in line, only what none of their tokens stand on comes back: they were promised their moment,
     * and it counts on nobody taking meanwhile.
     *
     * @param taken answers of allowed decisions
     */
    void giveBack(List<Answer> taken);

    /**
     * The bucket that a charge would be taken from, as it is now; of a key that is not known, a full one.
     *
     * @throws BackendException if it is not in this process and can't be seen
     */
    BucketSnapshot look(Charge charge);

    /**
     * Forgets the bucket of a charge: the next one to ask finds it full. One that is shared with other keys stays.
     *
     * @throws BackendException if it is not in this process, and perhaps wasn't forgotten
     */
    void forget(Charge charge);

    /** The buckets of a policy that this process holds: none of those that are elsewhere. */
    default long size(ThrottlePolicy policy) {
        return 0;
    }
}
