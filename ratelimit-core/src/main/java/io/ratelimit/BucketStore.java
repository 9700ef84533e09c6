package io.ratelimit;

import java.util.List;

/**
 * Where buckets are. A bucket is there from the first time it is asked, and then it is full; it is forgotten only when
 * it is full again. Policies of one name share their buckets. Where, in which time, and how several are taken from as one, is the store's affair. Thread-safe.
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
     *     had the tokens said, and they have them still
     */
    Decision take(List<Charge> charges);

    /** Puts back what was taken. A full bucket stays full; what is given back to a key that is not known is dropped. */
    void giveBack(List<Charge> charges);

    /** The bucket that a charge would be taken from, as it is now; of a key that is not known, a full one. */
    BucketSnapshot look(Charge charge);

    /** Forgets the bucket of a charge: the next one to ask finds it full. One that is shared with other keys stays. */
    void forget(Charge charge);
}
