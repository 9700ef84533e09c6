package io.ratelimit;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** An outcome with its numbers: of one bucket, or of several buckets together. Immutable. */
abstract sealed class Verdict permits Decision, Answer {

    private final Outcome outcome;
    private final long remaining;
    private final long retryNanos;
    private final long waitNanos;
    private final long nextTokenNanos;
    private final long resetNanos;

    Verdict(Outcome outcome, long remaining, long retryNanos, long waitNanos, long nextTokenNanos, long resetNanos) {
        this.outcome = outcome;
        this.remaining = remaining;
        this.retryNanos = retryNanos;
        this.waitNanos = waitNanos;
        this.nextTokenNanos = nextTokenNanos;
        this.resetNanos = resetNanos;
    }

    /** Creates the verdict of a bucket in this process, from the result of {@link BucketState#take}. */
    Verdict(BucketState state, long cost, long leave, long taken, long nanos, long maxWaitNanos) {
        TickScale scale = state.scale();
        long missing = Take.missingAfter(state, taken, cost + leave, nanos);
        long left = scale.tokensLeft(missing) - leave;
        this.outcome = Take.outcome(taken, maxWaitNanos);
        this.remaining = Math.max(left, 0);
        this.retryNanos = Take.retryNanos(scale, taken, nanos);
        this.waitNanos = Take.waitNanos(scale, taken, nanos);
        this.nextTokenNanos = scale.nanosUntilNextToken(missing, leave, nanos);
        this.resetNanos = scale.nanosUntil(missing, nanos);
    }

    /** Creates the verdict that follows from the answers of at least one bucket. */
    Verdict(List<Answer> answers) {
        Outcome worst = Outcome.ALLOWED;
        long fewest = Long.MAX_VALUE;
        long wait = 0;
        long nextToken = 0;
        long reset = 0;
        Answer slowest = answers.get(0);
        for (int i = 0; i < answers.size(); i++) {
            Verdict answer = answers.get(i);
            worst = answer.outcome.compareTo(worst) > 0 ? answer.outcome : worst;
            fewest = Math.min(fewest, answer.remaining);
            wait = Math.max(wait, answer.waitNanos);
            nextToken = Math.max(nextToken, answer.nextTokenNanos);
            reset = Math.max(reset, answer.resetNanos);
            slowest = answer.retryNanos > slowest.retryNanos() ? answers.get(i) : slowest;
        }
        this.outcome = worst;
        this.remaining = fewest;
        this.retryNanos = worst.isTemporary()
                ? slowest.retryNanos() + slowest.policy().retryJitter().nextNanos()
                : 0;
        this.waitNanos = worst == Outcome.ALLOWED ? wait : 0;
        this.nextTokenNanos = nextToken;
        this.resetNanos = reset;
    }

    /** Creates a verdict that is given some nanoseconds later than another one. Each time to come is shorter, but stays above zero. */
    Verdict(Verdict earlier, long elapsed) {
        this(
                earlier.outcome,
                earlier.remaining,
                nearer(earlier.retryNanos, elapsed),
                earlier.waitNanos,
                nearer(earlier.nextTokenNanos, elapsed),
                nearer(earlier.resetNanos, elapsed));
    }

    /** Returns a time to come as it is later. Zero means never, or already, and so stays zero. */
    private static long nearer(long nanos, long elapsed) {
        return nanos == 0 ? 0 : Math.max(1, nanos - elapsed);
    }

    /** Returns the kind of decision or answer. */
    public Outcome outcome() {
        return outcome;
    }

    /** Returns whether the bucket has the tokens; of a decision, whether the call may proceed. */
    public boolean allowed() {
        return outcome == Outcome.ALLOWED;
    }

    /** Returns the whole tokens left; of several buckets the fewest; {@link Long#MAX_VALUE} without buckets. */
    public long remaining() {
        return remaining;
    }

    /**
     * Returns the nanoseconds after which a denied call could be allowed; of several buckets the longest, and in a
     * decision plus the random addition of its policy. Zero if the call is allowed, or never can be.
     */
    public long retryNanos() {
        return retryNanos;
    }

    /**
     * Returns the nanoseconds after which an allowed call may proceed, because tokens were taken ahead; of several buckets
     * the longest. Zero for at once, and for a denied call.
     */
    public long waitNanos() {
        return waitNanos;
    }

    /** Returns the nanoseconds until there is one more token; of several buckets the longest. Zero if all are full. */
    public long nextTokenNanos() {
        return nextTokenNanos;
    }

    /** Returns the nanoseconds until the bucket is full; of several buckets the longest. */
    public long resetNanos() {
        return resetNanos;
    }

    /** Returns {@link #retryNanos()} as a duration. Zero also if no time helps: check {@link #outcome()} first. */
    public Duration retryAfter() {
        return Duration.ofNanos(retryNanos());
    }

    /** Returns {@link #waitNanos()} as a duration. */
    public Duration waitFor() {
        return Duration.ofNanos(waitNanos());
    }

    /** Returns {@link #nextTokenNanos()} as a duration. */
    public Duration nextTokenAfter() {
        return Duration.ofNanos(nextTokenNanos());
    }

    /** Returns {@link #resetNanos()} as a duration. */
    public Duration resetAfter() {
        return Duration.ofNanos(resetNanos());
    }

    /** Returns the components beside the outcome and the numbers. */
    abstract List<@Nullable Object> others();

    private List<Object> components() {
        return List.of(outcome, remaining, retryNanos, waitNanos, nextTokenNanos, resetNanos, others());
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Verdict verdict
                && getClass() == other.getClass()
                && components().equals(verdict.components());
    }

    @Override
    public int hashCode() {
        return components().hashCode();
    }

    @Override
    public String toString() {
        return getClass().getSimpleName() + components();
    }
}
