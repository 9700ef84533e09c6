package io.ratelimit;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Whether a call may go ahead, and if not, why and when. Over several buckets it goes ahead only if all of them have the
 * tokens, and a no takes nothing from any.
 *
 * @param outcome yes, or which kind of no
 * @param remaining the whole tokens left; of several buckets the fewest; {@link Long#MAX_VALUE} if none was asked
 * @param retryNanos when denied, the nanoseconds after which the same call could go ahead; of several buckets the
 *     longest, and the random addition of its policy. Zero when allowed, and when no time can mend it
 * @param waitNanos when allowed, the nanoseconds after which the call may go ahead: tokens were taken ahead for it; of
 *     several buckets the longest. Zero for at once, and when not allowed
 * @param nextTokenNanos the nanoseconds until there is one more token; of several buckets the longest. Zero when full
 * @param resetNanos the nanoseconds until the bucket is full; of several buckets the longest
 * @param answers what each bucket said to its charge, in the order asked, without those that needn't be asked any more;
 *     empty for a bucket without a policy
 * @param shadows what policies in shadow mode took beside it, those that would have allowed the call; no part of the yes
 *     or no, nor of the numbers
 */
public record Decision(
        Outcome outcome,
        long remaining,
        long retryNanos,
        long waitNanos,
        long nextTokenNanos,
        long resetNanos,
        List<Answer> answers,
        List<Answer> shadows) {

    /** The kinds of yes and no. Of several that a call meets, the later outweighs the earlier. */
    public enum Outcome {
        /** The tokens were taken. */
        ALLOWED,
        /** The tokens are not there; they will be after the retry time. */
        DENIED,
        /** The call would have waited for its tokens, but not so long as until they are there; retry after that time. */
        TOO_LONG,
        /** The call would have waited for its tokens, but too many wait already; retry after the retry time. */
        QUEUE_FULL,
        /** Nobody knows whether the tokens are there: the backend that has the bucket failed; retry after the retry time. */
        BACKEND_FAILED,
        /** The call costs more than the bucket can ever hold. */
        NEVER_FITS,
        /** The call lacks the key that the policy needs, and the policy denies such calls. */
        MISSING_KEY;

        /** Whether it is a no that time mends: the same call could go ahead after the retry time. */
        public boolean isTemporary() {
            return this == DENIED || this == TOO_LONG || this == QUEUE_FULL || this == BACKEND_FAILED;
        }
    }

    /**
     * What one bucket said to its charge. It may have had the tokens although another bucket, and so the whole, said
     * no; then it has them still, and its numbers are those before taking.
     *
     * @param position where in the bucket's line the tokens were taken, in the store's own measure, so that it can
     *     {@link BucketStore#giveBack give} them back; {@link #UNKNOWN} if it wasn't noted
     * @param standIn whether it was said in place of the bucket, by the policy's rule for a backend that failed
     * @param shared whether the bucket is one that keys share for which there was no room
     */
    public record Answer(Charge charge, Decision decision, long position, boolean standIn, boolean shared) {

        /** No position: while others wait in line, nothing of it can be given back. */
        public static final long UNKNOWN = Long.MIN_VALUE;

        public Answer(Charge charge, Decision decision, long position) {
            this(charge, decision, position, false, false);
        }

        public Answer(Charge charge, Decision decision) {
            this(charge, decision, UNKNOWN);
        }

        /** A no instead, for this reason. */
        Answer as(Outcome outcome) {
            return with(decision.as(outcome));
        }

        /** The same in other numbers. */
        public Answer with(Decision decision) {
            return new Answer(charge, decision, position, standIn, shared);
        }

        /** The same, said in place of the bucket of this charge. */
        public Answer inPlaceOf(Charge charge) {
            return new Answer(charge, decision, position, true, shared);
        }

        public boolean allowed() {
            return decision.allowed();
        }

        public ThrottlePolicy policy() {
            return charge.policy();
        }
    }

    private static final Decision NOTHING_ASKED = new Decision(Outcome.ALLOWED, Long.MAX_VALUE, 0, 0, 0, 0, List.of());

    public Decision {
        answers = List.copyOf(answers);
        shadows = List.copyOf(shadows);
    }

    /** A decision beside which no policy in shadow mode took anything. */
    public Decision(
            Outcome outcome,
            long remaining,
            long retryNanos,
            long waitNanos,
            long nextTokenNanos,
            long resetNanos,
            List<Answer> answers) {
        this(outcome, remaining, retryNanos, waitNanos, nextTokenNanos, resetNanos, answers, List.of());
    }

    /** The answer to a charge {@link Charge#withoutKey without a key}. */
    static Answer missingKey(Charge charge) {
        return new Answer(charge, new Decision(Outcome.MISSING_KEY, 0, 0, 0, 0, 0, List.of()));
    }

    /** The decision of one bucket, of what {@link Level#take} returned to a call that may wait so long. */
    static Decision of(Level level, long cost, long taken, long nanos, long maxWaitNanos) {
        Ticks ticks = level.ticks();
        boolean denied = taken < 0 && taken != Level.NEVER_FITS;
        long missing = taken >= 0 ? taken : denied ? ticks.full() - ticks.of(cost) - taken : level.missing(nanos);
        return new Decision(
                taken >= 0 ? Outcome.ALLOWED : denied ? refusal(maxWaitNanos) : Outcome.NEVER_FITS,
                ticks.tokens(Math.max(ticks.full() - missing, 0)),
                denied ? ticks.nanosUntil(-taken, nanos) : 0,
                taken >= 0 ? ticks.nanosUntil(missing - ticks.full(), nanos) : 0,
                ticks.nanosUntil(ticks.untilNextToken(missing), nanos),
                ticks.nanosUntil(missing, nanos),
                List.of());
    }

    private static Outcome refusal(long maxWaitNanos) {
        return maxWaitNanos > 0 ? Outcome.TOO_LONG : Outcome.DENIED;
    }

    /** The decision that follows from what each bucket said. */
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
            Decision one = answer.decision();
            outcome = one.outcome.compareTo(outcome) > 0 ? one.outcome : outcome;
            remaining = Math.min(remaining, one.remaining);
            wait = Math.max(wait, one.waitNanos);
            nextToken = Math.max(nextToken, one.nextTokenNanos);
            reset = Math.max(reset, one.resetNanos);
            slowest = one.retryNanos > slowest.decision().retryNanos ? answer : slowest;
        }
        long retry = outcome.isTemporary() ? retryNanos(slowest) : 0;
        return new Decision(
                outcome, remaining, retry, outcome == Outcome.ALLOWED ? wait : 0, nextToken, reset, answers);
    }

    private static long retryNanos(Answer slowest) {
        return slowest.decision().retryNanos + slowest.policy().retryJitter().nextNanos();
    }

    private Decision as(Outcome other) {
        long retry = Math.max(retryNanos, waitNanos);
        return new Decision(other, remaining, retry, 0, nextTokenNanos, resetNanos, answers);
    }

    /** The same, and what policies in shadow mode took beside it. */
    Decision withShadows(List<Answer> shadows) {
        return new Decision(outcome, remaining, retryNanos, waitNanos, nextTokenNanos, resetNanos, answers, shadows);
    }

    /** All that an allowed call was charged: what to give back if it is not made after all. Empty if it was denied. */
    public List<Answer> taken() {
        if (!allowed() || shadows.isEmpty()) {
            return allowed() ? answers : List.of();
        }
        return Stream.concat(answers.stream(), shadows.stream()).toList();
    }

    /** Whether the call may go ahead. */
    public boolean allowed() {
        return outcome == Outcome.ALLOWED;
    }

    /** {@link #retryNanos()} as a duration: zero also where no time can mend it, so ask {@link #outcome()} first. */
    public Duration retryAfter() {
        return Duration.ofNanos(retryNanos);
    }

    /** {@link #waitNanos()} as a duration. */
    public Duration waitFor() {
        return Duration.ofNanos(waitNanos);
    }

    /** {@link #nextTokenNanos()} as a duration. */
    public Duration nextTokenAfter() {
        return Duration.ofNanos(nextTokenNanos);
    }

    /** {@link #resetNanos()} as a duration. */
    public Duration resetAfter() {
        return Duration.ofNanos(resetNanos);
    }

    /** The answers that were a no, in the order asked; empty for a bucket without a policy. */
    public List<Answer> violations() {
        List<Answer> violations = new ArrayList<>(answers.size());
        for (Answer answer : answers) {
            if (!answer.allowed()) {
                violations.add(answer);
            }
        }
        return violations;
    }

    /**
     * The first of the violations that weigh most: it says what the whole says.
     *
     * @throws IllegalStateException if there is none, for the call is allowed, or it is the decision of a bucket without
     *     a policy
     */
    public Answer heaviestViolation() {
        for (Answer answer : answers) {
            if (!answer.allowed() && answer.decision().outcome() == outcome) {
                return answer;
            }
        }
        throw new IllegalStateException("no policy was violated: " + outcome);
    }
}
