package io.ratelimit;

import java.util.List;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * A bucket store from which this process can lease tokens: the process takes more tokens than a call costs, and decides
 * later calls by itself. A token of a lease may be used from the start of the call of the store until the policy's
 * {@link ThrottlePolicy#lease} has passed. The store counts the token so that it is within the limit at
 * each moment of that time.
 */
public interface LeasingBucketStore extends BucketStore {

    /**
     * Takes all of the charges or none, as {@link #take(List)} does. If they are allowed, takes the requested leases as
     * well, except from buckets that are nearly empty.
     *
     * @param leases requests for charges of the list, with at most one for each bucket
     * @throws BackendException if the backend fails; some or all of the tokens may be taken then
     */
    Decision take(List<Charge> charges, List<LeaseRequest> leases);

    /**
     * Takes a lease, but not the charge of the request. Takes nothing if the bucket is nearly empty.
     *
     * @return the bucket after the call
     * @throws BackendException if the backend fails; the tokens may be taken then
     */
    BucketSnapshot lease(LeaseRequest lease);

    /** A request for a lease, and its result. For one thread. */
    final class LeaseRequest {

        private final Charge charge;
        private final long maxTokens;
        private @Nullable Grant grant;

        /** @param maxTokens the maximum number of tokens to take, with those of the charge if the charge is taken */
        public LeaseRequest(Charge charge, long maxTokens) {
            this.charge = charge;
            this.maxTokens = maxTokens;
        }

        /** Returns the request for a charge; null if there is none. */
        public static @Nullable LeaseRequest find(List<LeaseRequest> requests, Charge charge) {
            for (int i = 0; i < requests.size(); i++) {
                if (requests.get(i).charge == charge) {
                    return requests.get(i);
                }
            }
            return null;
        }

        /** Returns the charge that selects the bucket. */
        public Charge charge() {
            return charge;
        }

        /** Returns the maximum number of tokens to take, with those of the charge if the charge is taken. */
        public long maxTokens() {
            return maxTokens;
        }

        /** Sets the result. The store calls this method only if it took a lease. */
        public void grant(Grant grant) {
            this.grant = grant;
        }

        /** Returns the result; null if there is no lease. */
        public @Nullable Grant grant() {
            return grant;
        }
    }

    /**
     * A lease that the store granted.
     *
     * @param tokens the tokens taken, with those of the charge if the charge was taken
     * @param bucket the bucket after the take
     * @param micros the moment of the take on the clock of the backend, in microseconds
     * @param receipts returns the {@linkplain Decision.Answer#receipt receipt} for a number of leased tokens
     */
    record Grant(long tokens, BucketSnapshot bucket, long micros, LongFunction<Object> receipts) {}
}
