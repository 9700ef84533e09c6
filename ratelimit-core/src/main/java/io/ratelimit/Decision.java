package io.ratelimit;

import io.ratelimit.BucketState.Receipt;
import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The result of a take from one or several buckets: whether the call may proceed, and if not, why and when to retry. A
 * call over several buckets proceeds only if all of them have the tokens; a denied call takes nothing from any bucket.
 *
 * <p>Get decisions from a {@link TokenBucket}, a {@link Throttler} or {@link #of(List)}; components may be added in
 * later versions, so call no constructor. The serialized form contains no answers.
 *
 * @param outcome the kind of decision
 * @param remaining the whole tokens left; of several buckets the fewest; {@link Long#MAX_VALUE} without buckets
 * @param retryNanos the nanoseconds after which a denied call could be allowed; of several buckets the longest, plus
 *     the random addition of its policy. Zero if the call is allowed, or never can be
 * @param waitNanos the nanoseconds after which an allowed call may proceed, because tokens were taken ahead; of several
 *     buckets the longest. Zero for at once, and for a denied call
 * @param nextTokenNanos the nanoseconds until there is one more token; of several buckets the longest. Zero if all are
 *     full
 * @param resetNanos the nanoseconds until the bucket is full; of several buckets the longest
 * @param answers the answer of each bucket, in the order of the charges. A remote store may leave out buckets that it
 *     didn't call because another had denied. Empty for a bucket without a policy
 * @param shadows the answers of shadow policies that would have allowed the call; they don't affect the other
 *     components
 */
public record Decision(
        Outcome outcome,
        long remaining,
        long retryNanos,
        long waitNanos,
        long nextTokenNanos,
        long resetNanos,
        List<Answer> answers,
        List<Answer> shadows)
        implements Serializable {

    /** The kinds of decision. If several apply to a call, the one declared last wins. */
    public enum Outcome {
        /** The tokens were taken. */
        ALLOWED,
        /** The bucket has too few tokens now; it will have enough after the retry time. */
        DENIED,
        /** The call may wait, but not as long as its tokens need; it can be retried after the retry time. */
        TOO_LONG,
        /** The call may wait, but its policy's queue is full; it can be retried after the retry time. */
        QUEUE_FULL,
        /** The backend that holds the bucket failed, so the bucket's state is unknown; retry after the retry time. */
        BACKEND_FAILED,
        /** The cost is above the bucket's capacity. The same call can never be allowed. */
        NEVER_FITS,
        /** The call lacks the key that the policy needs, and the policy denies such calls. */
        MISSING_KEY;

        /** Returns whether the same call can be allowed after the retry time. */
        public boolean isTemporary() {
            return this == DENIED || this == TOO_LONG || this == QUEUE_FULL || this == BACKEND_FAILED;
        }
    }

    /**
     * The result of one charge to one bucket. An answer can be allowed although the decision is not: another bucket
     * denied the call, this one still has the tokens, and the numbers are those before taking.
     *
     * <p>A {@link BucketStore} makes answers by {@link #allowed} and {@link #denied}; components may be added in later
     * versions, so call no constructor.
     *
     * @param charge the charge that this answers
     * @param outcome the kind of answer
     * @param remaining the whole tokens left in the bucket
     * @param retryNanos the nanoseconds after which a denied call could be allowed, without jitter; otherwise zero
     * @param waitNanos the nanoseconds after which an allowed call may proceed
     * @param nextTokenNanos the nanoseconds until the bucket has one more token; zero if it is full
     * @param resetNanos the nanoseconds until the bucket is full
     * @param receipt the store's private note about the taken tokens, which it reads when the tokens are
     *     {@linkplain BucketStore#giveBack given back}; null if none were taken, or the store needs no note
     * @param fallback whether the policy's rule for a failed backend gave this answer, in place of the bucket
     * @param shared whether the bucket is an overflow bucket, which several keys share
     */
    public record Answer(
            Charge charge,
            Outcome outcome,
            long remaining,
            long retryNanos,
            long waitNanos,
            long nextTokenNanos,
            long resetNanos,
            @Nullable Object receipt,
            boolean fallback,
            boolean shared) {

        /**
         * Returns the answer of a bucket that has the tokens.
         *
         * @param bucket the bucket after the tokens were taken
         * @param waitTime the time until the call may proceed; zero unless tokens were taken ahead
         * @throws ArithmeticException if a duration exceeds 292 years, so that its nanoseconds don't fit a long
         */
        public static Answer allowed(Charge charge, BucketSnapshot bucket, Duration waitTime) {
            return of(charge, Outcome.ALLOWED, bucket, 0, waitTime.toNanos());
        }

        /** Returns an allowed answer that no bucket gave: as many tokens are left as a full bucket holds. */
        public static Answer allowed(Charge charge) {
            return without(charge, Outcome.ALLOWED, charge.spec().capacity(), 0);
        }

        /**
         * Returns the answer of a bucket that doesn't have the tokens.
         *
         * @param retryTime the time after which the same call could be allowed; zero if it never can
         * @throws ArithmeticException if a duration exceeds 292 years
         */
        public static Answer denied(Charge charge, Outcome outcome, BucketSnapshot bucket, Duration retryTime) {
            return of(charge, outcome, bucket, retryTime.toNanos(), 0);
        }

        /**
         * Returns a denial that no bucket gave.
         *
         * @param retryTime the time after which the same call could be allowed; zero if it never can
         * @throws ArithmeticException if the duration exceeds 292 years
         */
        public static Answer denied(Charge charge, Outcome outcome, Duration retryTime) {
            return without(charge, outcome, 0, retryTime.toNanos());
        }

        private static Answer of(Charge charge, Outcome outcome, BucketSnapshot bucket, long retry, long wait) {
            long nextToken = bucket.nextTokenAfter().toNanos();
            long reset = bucket.resetAfter().toNanos();
            return new Answer(charge, outcome, bucket.available(), retry, wait, nextToken, reset, null, false, false);
        }

        private static Answer without(Charge charge, Outcome outcome, long remaining, long retry) {
            return new Answer(charge, outcome, remaining, retry, 0, 0, 0, null, false, false);
        }

        /** Returns the answer of a bucket in this process, from the result of {@link BucketState#take}. */
        static Answer of(
                Charge charge,
                BucketState state,
                long taken,
                long nanos,
                long maxWaitNanos,
                @Nullable Object receipt,
                boolean shared) {
            TickScale scale = state.scale();
            long missing = state.missingAfter(taken, charge.cost(), nanos);
            return new Answer(
                    charge,
                    state.outcome(taken, maxWaitNanos),
                    scale.tokensLeft(missing),
                    state.retryNanos(taken, nanos),
                    state.waitNanos(taken, nanos),
                    scale.nanosUntilNextToken(missing, nanos),
                    scale.nanosUntil(missing, nanos),
                    receipt,
                    false,
                    shared);
        }

        /** Returns the policy of the charge. */
        public ThrottlePolicy policy() {
            return charge.policy();
        }

        /** Returns the {@linkplain Keys#hash hash} of the charge's key; computes it if the bucket has none. */
        public long keyHash() {
            long known = receipt instanceof Receipt taken ? taken.state().keyHash : 0;
            return known == 0 ? Keys.hash(charge.key()) : known;
        }

        /**
         * Returns the moment at which the tokens were taken, if a bucket of this process recorded it, and otherwise the
         * present moment.
         *
         * @param time the clock of the store
         */
        public long takenAt(TimeSource time) {
            return waitNanos == 0 && receipt instanceof Receipt taken ? taken.takenAt(time) : time.nanoTime();
        }

        /** Returns whether this bucket has the tokens. */
        public boolean allowed() {
            return outcome == Outcome.ALLOWED;
        }

        /** Returns a denial with this answer's numbers; the time to wait becomes the time to retry. */
        Answer asDenial(Outcome outcome) {
            return with(charge, outcome, Math.max(retryNanos, waitNanos), 0, receipt, fallback, shared);
        }

        /** Returns this answer for another charge to the same bucket. */
        public Answer withCharge(Charge charge) {
            return with(charge, outcome, retryNanos, waitNanos, receipt, fallback, shared);
        }

        /**
         * Returns this answer with another time to retry.
         *
         * @throws ArithmeticException if the duration exceeds 292 years
         */
        public Answer withRetryAfter(Duration retryTime) {
            return with(charge, outcome, retryTime.toNanos(), waitNanos, receipt, fallback, shared);
        }

        /** Returns this answer with the store's private note about the taken tokens. */
        public Answer withReceipt(Object receipt) {
            return with(charge, outcome, retryNanos, waitNanos, receipt, fallback, shared);
        }

        /** Returns this answer as that of an overflow bucket, or of a bucket of the key's own. */
        public Answer withShared(boolean shared) {
            return with(charge, outcome, retryNanos, waitNanos, receipt, fallback, shared);
        }

        /** Returns this answer as a fallback's answer to the charge of a backend that failed. */
        public Answer asFallback(Charge charge) {
            return with(charge, outcome, retryNanos, waitNanos, receipt, true, shared);
        }

        private Answer with(
                Charge charge,
                Outcome outcome,
                long retry,
                long wait,
                @Nullable Object receipt,
                boolean fallback,
                boolean shared) {
            return new Answer(
                    charge, outcome, remaining, retry, wait, nextTokenNanos, resetNanos, receipt, fallback, shared);
        }

        /**
         * Returns this answer as it is to be given later: each time to come is shorter, but stays above zero.
         *
         * @throws ArithmeticException if the duration exceeds 292 years
         */
        public Answer after(Duration elapsed) {
            long retry = nearer(retryNanos, elapsed);
            long nextToken = nearer(nextTokenNanos, elapsed);
            long reset = nearer(resetNanos, elapsed);
            return new Answer(
                    charge, outcome, remaining, retry, waitNanos, nextToken, reset, receipt, fallback, shared);
        }
    }

    private static final Decision NOTHING_ASKED =
            new Decision(Outcome.ALLOWED, Long.MAX_VALUE, 0, 0, 0, 0, List.of(), List.of());

    public Decision {
        answers = List.copyOf(answers);
        shadows = List.copyOf(shadows);
    }

    /** Returns the decision of a bucket without a policy, from the result of {@link BucketState#take}. */
    static Decision of(BucketState state, long cost, long taken, long nanos, long maxWaitNanos) {
        TickScale scale = state.scale();
        long missing = state.missingAfter(taken, cost, nanos);
        return new Decision(
                state.outcome(taken, maxWaitNanos),
                scale.tokensLeft(missing),
                state.retryNanos(taken, nanos),
                state.waitNanos(taken, nanos),
                scale.nanosUntilNextToken(missing, nanos),
                scale.nanosUntil(missing, nanos),
                List.of(),
                List.of());
    }

    /**
     * Returns the decision that follows from the answers of the buckets: allowed if all are, and otherwise denied for
     * the reason that is declared last in {@link Outcome}. The decision of no answers is allowed.
     */
    public static Decision of(List<Answer> answers) {
        if (answers.isEmpty()) {
            return NOTHING_ASKED;
        }
        Outcome outcome = Outcome.ALLOWED;
        long remaining = Long.MAX_VALUE;
        long wait = 0;
        long nextToken = 0;
        long reset = 0;
        Answer slowest = answers.get(0);
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            outcome = answer.outcome.compareTo(outcome) > 0 ? answer.outcome : outcome;
            remaining = Math.min(remaining, answer.remaining);
            wait = Math.max(wait, answer.waitNanos);
            nextToken = Math.max(nextToken, answer.nextTokenNanos);
            reset = Math.max(reset, answer.resetNanos);
            slowest = answer.retryNanos > slowest.retryNanos ? answer : slowest;
        }
        long retry = outcome.isTemporary()
                ? slowest.retryNanos + slowest.policy().retryJitter().nextNanos()
                : 0;
        long waitIfAllowed = outcome == Outcome.ALLOWED ? wait : 0;
        return new Decision(outcome, remaining, retry, waitIfAllowed, nextToken, reset, answers, List.of());
    }

    /** Returns this decision with the answers of the shadow policies that would have allowed the call. */
    Decision withShadows(List<Answer> shadows) {
        return new Decision(outcome, remaining, retryNanos, waitNanos, nextTokenNanos, resetNanos, answers, shadows);
    }

    /**
     * Returns this decision as it is to be given later: each time to come is shorter, but stays above zero.
     *
     * @throws ArithmeticException if the duration exceeds 292 years
     */
    public Decision after(Duration elapsed) {
        long retry = nearer(retryNanos, elapsed);
        long nextToken = nearer(nextTokenNanos, elapsed);
        long reset = nearer(resetNanos, elapsed);
        List<Answer> later =
                answers.stream().map(answer -> answer.after(elapsed)).toList();
        return new Decision(outcome, remaining, retry, waitNanos, nextToken, reset, later, shadows);
    }

    /** Zero means never, or already, and so stays zero. */
    private static long nearer(long nanos, Duration elapsed) {
        return nanos == 0 ? 0 : Math.max(1, nanos - elapsed.toNanos());
    }

    /** Leaves the answers out of the serialized form: their keys may be what clients sent. */
    private Object writeReplace() {
        return new Decision(
                outcome, remaining, retryNanos, waitNanos, nextTokenNanos, resetNanos, List.of(), List.of());
    }

    /** Returns whether the call may proceed. */
    public boolean allowed() {
        return outcome == Outcome.ALLOWED;
    }

    /**
     * Returns {@link #retryNanos()} as a duration. It is zero also if no time helps: check {@link #outcome()} first.
     */
    public Duration retryAfter() {
        return Duration.ofNanos(retryNanos);
    }

    /** Returns {@link #waitNanos()} as a duration. */
    public Duration waitFor() {
        return Duration.ofNanos(waitNanos);
    }

    /** Returns {@link #nextTokenNanos()} as a duration. */
    public Duration nextTokenAfter() {
        return Duration.ofNanos(nextTokenNanos);
    }

    /** Returns {@link #resetNanos()} as a duration. */
    public Duration resetAfter() {
        return Duration.ofNanos(resetNanos);
    }

    /** Returns all tokens taken for an allowed call, to give back if the call is not made. Empty if it was denied. */
    public List<Answer> taken() {
        if (!allowed() || shadows.isEmpty()) {
            return allowed() ? answers : List.of();
        }
        return Stream.concat(answers.stream(), shadows.stream()).toList();
    }

    /** Returns the answers that are denials, in the order of the charges. Empty for a bucket without a policy. */
    public List<Answer> denials() {
        List<Answer> denials = new ArrayList<>(1); // mostly one policy denies
        for (int i = 0; i < answers.size(); i++) {
            if (!answers.get(i).allowed()) {
                denials.add(answers.get(i));
            }
        }
        return denials;
    }

    /**
     * Returns the first denial with the outcome of the whole decision.
     *
     * @throws IllegalStateException if the call is allowed, or the bucket has no policy
     */
    public Answer decisiveDenial() {
        for (Answer answer : answers) {
            if (!answer.allowed() && answer.outcome == outcome) {
                return answer;
            }
        }
        throw new IllegalStateException("the decision contains no denial by a policy: " + outcome);
    }

    /**
     * Returns a denial as a sentence for a response, an exception or a log: {@code The request is throttled by 'search'
     * policy, please retry after 27 ms.} It names the policy of the {@linkplain #decisiveDenial decisive denial}, if the
     * decision has answers.
     *
     * @param subject the noun for what was denied, such as {@code request} or {@code call}
     * @throws IllegalStateException if the call is allowed
     */
    public String describe(String subject) {
        String retry = ", please retry after " + retryAfter().plusNanos(999_999).toMillis() + " ms.";
        return switch (outcome) {
            case ALLOWED -> throw new IllegalStateException("the " + subject + " is allowed");
            case NEVER_FITS ->
                "The " + subject + " can never be allowed" + policy(" by ") + ", it costs more than the limit.";
            case MISSING_KEY -> "The " + subject + " is denied" + policy(" by ") + ", it lacks the key of the limit.";
            case TOO_LONG -> "The " + subject + " would have to wait too long" + policy(" for ") + retry;
            case QUEUE_FULL -> "Too many " + subject + "s already wait" + policy(" for ") + retry;
            case BACKEND_FAILED -> "The limit" + policy(" of ") + " can't be checked at the moment" + retry;
            default -> "The " + subject + " is throttled" + policy(" by ") + retry;
        };
    }

    private String policy(String preposition) {
        return answers.isEmpty()
                ? ""
                : preposition + "'" + decisiveDenial().policy().name() + "' policy";
    }
}
