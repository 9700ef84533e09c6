package io.ratelimit;

import io.ratelimit.Charge.Share;
import io.ratelimit.Take.Marked;
import io.ratelimit.Take.Receipt;
import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The result of a take from one or several buckets: whether the call may proceed, and if not, why and when to retry. A
 * call over several buckets proceeds only if all of them have the tokens; a denied call takes nothing from any bucket.
 * Immutable. The serialized form contains no answers.
 */
public final class Decision extends Verdict implements Serializable {

    private static final long serialVersionUID = 1;

    /** The kinds of decision. If several apply to a call, the one declared last wins. */
    public enum Outcome {
        /** The tokens were taken. */
        ALLOWED,
        /** The bucket has too few tokens now; it will have enough after the retry time. */
        DENIED,
        /** The key has no free slot for a call in flight; the retry time estimates when one of its calls ends. */
        TOO_MANY_IN_FLIGHT,
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
            return this != ALLOWED && this != NEVER_FITS && this != MISSING_KEY;
        }
    }

    /**
     * The result of one charge to one bucket. An answer can be allowed although the decision is not: another bucket
     * denied the call, this one still has the tokens, and the numbers are those before taking. Immutable; a
     * {@link BucketStore} makes answers by {@link #allowed(Charge, BucketSnapshot, Duration)} and {@link #denied}.
     */
    public static final class Answer extends Verdict {

        private final Charge charge;

        /** The receipt, or a {@link Marked} one. */
        private final @Nullable Object note;

        Answer(Charge charge, Outcome outcome, long remaining, long retry, long wait, long next, long reset) {
            super(outcome, remaining, retry, wait, next, reset);
            this.charge = charge;
            this.note = null;
        }

        /** Creates the answer of a bucket in this process, of whose tokens the charge has to leave some. */
        Answer(Charge charge, BucketState state, long leave, long taken, long nanos, long wait, @Nullable Object note) {
            super(state, charge.cost(), leave, taken, nanos, wait);
            this.charge = charge;
            this.note = note;
        }

        private Answer(Answer earlier, long elapsed, Charge charge, @Nullable Object note) {
            super(earlier, elapsed);
            this.charge = charge;
            this.note = note;
        }

        private Answer(Answer other, Outcome outcome, long retry, long wait, long next, long reset) {
            super(outcome, other.remaining(), retry, wait, next, reset);
            this.charge = other.charge;
            this.note = other.note;
        }

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
            return new Answer(charge, Outcome.ALLOWED, charge.spec().capacity(), 0, 0, 0, 0);
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
            return new Answer(charge, outcome, 0, retryTime.toNanos(), 0, 0, 0);
        }

        private static Answer of(Charge charge, Outcome outcome, BucketSnapshot bucket, long retry, long wait) {
            long nextToken = bucket.nextTokenAfter().toNanos();
            long reset = bucket.resetAfter().toNanos();
            return new Answer(charge, outcome, bucket.available(), retry, wait, nextToken, reset);
        }

        /** Returns the charge that this answers. */
        public Charge charge() {
            return charge;
        }

        /** Returns the policy of the charge. */
        public ThrottlePolicy policy() {
            return charge.policy();
        }

        /** Returns the {@linkplain Keys#hash hash} of the charge's key; computes it if the bucket has none. */
        public long keyHash() {
            long known = receipt() instanceof Receipt taken ? taken.state().keyHash : 0;
            return known == 0 ? Keys.hash(charge.key()) : known;
        }

        /**
         * Returns the moment at which the tokens were taken, if a bucket of this process recorded it, and otherwise the
         * present moment.
         *
         * @param time the clock of the store
         */
        public long takenAt(TimeSource time) {
            return waitNanos() == 0 && receipt() instanceof Receipt taken ? taken.takenAt(time) : time.nanoTime();
        }

        /**
         * Returns the store's private note about the taken tokens, which it reads when the tokens are
         * {@linkplain BucketStore#giveBack given back}; null if none were taken, or the store needs no note.
         */
        public @Nullable Object receipt() {
            return note instanceof Marked marked ? marked.receipt() : note;
        }

        /** Returns whether the policy's rule for a failed backend gave this answer, in place of the bucket. */
        public boolean fallback() {
            return note instanceof Marked marked && marked.fallback();
        }

        /** Returns whether the bucket is an overflow bucket, which several keys share. */
        public boolean shared() {
            return note instanceof Marked marked && marked.ofOverflow();
        }

        /**
         * Returns whether the answer is that of the charge's guaranteed share: it serves the call, or it will have the tokens
         * sooner than what all calls share. The numbers are then those of the share, and so is {@link #spec()}.
         */
        public boolean isGuaranteed() {
            return note instanceof Marked marked && marked.ofLane();
        }

        /** Returns the spec of the bucket that gave the answer: the charge's, or that of its guaranteed share. */
        public BucketSpec spec() {
            Share share = charge.share();
            BucketSpec lane = share == null || !isGuaranteed() ? null : share.guaranteed();
            return lane == null ? charge.spec() : lane;
        }

        /** Returns a denial with this answer's numbers; the time to wait becomes the time to retry. */
        Answer asDenial(Outcome outcome) {
            return new Answer(this, outcome, Math.max(retryNanos(), waitNanos()), 0, nextTokenNanos(), resetNanos());
        }

        /** Returns this answer for another charge to the same bucket. */
        public Answer withCharge(Charge charge) {
            return new Answer(this, 0, charge, note);
        }

        /** Returns this answer with another time to retry, of at most 292 years. */
        public Answer withRetryAfter(Duration retryTime) {
            return new Answer(this, outcome(), retryTime.toNanos(), waitNanos(), nextTokenNanos(), resetNanos());
        }

        /** Returns this answer with the store's private note about the taken tokens. */
        public Answer withReceipt(Object receipt) {
            return new Answer(this, 0, charge, Marked.of(receipt, fallback(), shared(), isGuaranteed()));
        }

        /** Returns this answer as that of the charge's {@linkplain #isGuaranteed guaranteed share}. */
        public Answer asGuaranteed() {
            return new Answer(this, 0, charge, Marked.of(receipt(), fallback(), shared(), true));
        }

        /** Returns this answer as that of an overflow bucket or not. */
        public Answer withShared(boolean shared) {
            return new Answer(this, 0, charge, Marked.of(receipt(), fallback(), shared, isGuaranteed()));
        }

        /** Returns this answer as a fallback's answer to the charge of a backend that failed. */
        public Answer asFallback(Charge charge) {
            return new Answer(this, 0, charge, Marked.of(receipt(), true, shared(), isGuaranteed()));
        }

        /**
         * Returns this answer as it is to be given later: each time to come is shorter, but stays above zero.
         *
         * @throws ArithmeticException if the duration exceeds 292 years
         */
        public Answer after(Duration elapsed) {
            return new Answer(this, elapsed.toNanos(), charge, note);
        }

        @Override
        List<@Nullable Object> others() {
            return Arrays.asList(charge, note);
        }
    }

    private static final Decision NOTHING_ASKED = new Decision(Outcome.ALLOWED, Long.MAX_VALUE, 0, 0, 0, 0);

    private final transient List<Answer> answers;
    private final transient List<Answer> shadows;
    private final transient List<HeldSlot> held;

    private Decision(Outcome outcome, long remaining, long retry, long wait, long next, long reset) {
        super(outcome, remaining, retry, wait, next, reset);
        this.answers = List.of();
        this.shadows = List.of();
        this.held = List.of();
    }

    /** Creates the decision that follows from at least one answer, of a call that holds these slots if it is allowed. */
    Decision(List<Answer> answers, List<HeldSlot> held) {
        super(answers);
        this.answers = List.copyOf(answers);
        this.shadows = List.of();
        this.held = held;
    }

    Decision(BucketState state, long cost, long taken, long nanos, long maxWaitNanos) {
        super(state, cost, 0, taken, nanos, maxWaitNanos);
        this.answers = List.of();
        this.shadows = List.of();
        this.held = List.of();
    }

    private Decision(Decision earlier, long elapsed, List<Answer> answers, List<Answer> shadows, List<HeldSlot> held) {
        super(earlier, elapsed);
        this.answers = answers;
        this.shadows = shadows;
        this.held = held;
    }

    /**
     * Returns the decision that follows from the answers of the buckets: allowed if all are, and otherwise denied for
     * the reason that is declared last in {@link Outcome}. The decision of no answers is allowed.
     */
    public static Decision of(List<Answer> answers) {
        return answers.isEmpty() ? NOTHING_ASKED : new Decision(answers, List.of());
    }

    /** Returns this decision with what a shadow policy took. Releases the slots of that policy if there is no memory. */
    Decision withShadow(Decision shadow) {
        try {
            return new Decision(this, 0, answers, joined(shadows, shadow.taken()), joined(held, shadow.held));
        } catch (Error failed) {
            shadow.release();
            throw failed;
        }
    }

    Decision holding(List<HeldSlot> held) {
        return this.held == held ? this : new Decision(this, 0, answers, shadows, held);
    }

    private static <T> List<T> joined(List<T> one, List<T> other) {
        return one.isEmpty()
                ? other
                : Stream.concat(one.stream(), other.stream()).toList();
    }

    /** Returns whether the call counts as in flight until it is {@linkplain #release released}. */
    public boolean isInFlight() {
        return !held.isEmpty();
    }

    /**
     * Ends the call: it is no longer in flight. Has no effect on tokens, and none if the call has ended before or its
     * policies don't limit the calls in flight.
     */
    public void release() {
        HeldSlot.releaseAll(held);
    }

    /**
     * Returns this decision as it is to be given later: each time to come is shorter, but stays above zero.
     *
     * @throws ArithmeticException if the duration exceeds 292 years
     */
    public Decision after(Duration elapsed) {
        List<Answer> later =
                answers.stream().map(answer -> answer.after(elapsed)).toList();
        return new Decision(this, elapsed.toNanos(), later, shadows, held);
    }

    /** Leaves the answers out of the serialized form: their keys may be what clients sent. */
    private Object writeReplace() {
        return new Serialized(outcome(), remaining(), retryNanos(), waitNanos(), nextTokenNanos(), resetNanos());
    }

    private record Serialized(Outcome outcome, long remaining, long retry, long due, long next, long reset)
            implements Serializable {

        private Object readResolve() {
            return new Decision(outcome, remaining, retry, due, next, reset);
        }
    }

    /**
     * Returns the answer of each bucket, in the order of the charges. A denial may leave out buckets that weren't asked: those
     * of a remote store, or all, because another one or a slot had denied. Empty for a bucket without a policy.
     */
    public List<Answer> answers() {
        return answers;
    }

    /** Returns the answers of shadow policies that would have allowed the call. They affect nothing else here. */
    public List<Answer> shadows() {
        return shadows;
    }

    /** Returns all tokens taken for an allowed call, to give back if the call is not made. Empty if it was denied. */
    public List<Answer> taken() {
        if (!allowed()) {
            return List.of();
        }
        return shadows.isEmpty() ? answers : joined(answers, shadows);
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
            if (!answer.allowed() && answer.outcome() == outcome()) {
                return answer;
            }
        }
        throw new IllegalStateException("the decision contains no denial by a policy: " + outcome());
    }

    /**
     * Returns a denial as a sentence: {@code The request is throttled by 'search' policy, please retry after 27 ms.} It
     * names the policy of the {@linkplain #decisiveDenial decisive denial}, if the decision has answers.
     *
     * @param subject the noun for what was denied, such as {@code request} or {@code call}
     * @throws IllegalStateException if the call is allowed
     */
    public String describe(String subject) {
        return DenialText.of(this, subject);
    }

    @Override
    List<@Nullable Object> others() {
        return List.of(answers, shadows);
    }
}
