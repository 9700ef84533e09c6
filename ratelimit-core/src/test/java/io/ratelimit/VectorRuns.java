package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Runs {@link Vectors} against a store. */
public abstract class VectorRuns {

    /** Returns the store of this test. */
    protected abstract BucketStore store();

    /** Moves the store's clock. */
    protected abstract void advance(Duration step);

    /** Sets the store's wall clock, back or forward. Only calendars need it. */
    protected void setWallClock(Instant now) {
        throw new UnsupportedOperationException();
    }

    /** Compares the header fields of an answer with those of the vector; a store alone has none. */
    protected void checkHeaders(String name, Answer answer, String policy, String limit) {}

    /** Runs the sequences of shares, which not every store keeps. */
    protected final void runShares() {
        ShareVectors.all().forEach(this::run);
    }

    void run(Vectors.Sequence sequence) {
        List<BucketSpec> specs = new ArrayList<>(
                sequence.limits().stream().map(VectorLimit::spec).toList());
        if (sequence.shares() != null) {
            store().reset(Charge.of(sequence.shares().policy(specs), "", 1));
        } else if (sequence.start() != null) {
            setWallClock(sequence.start());
        } else if (sequence.limits().get(0).batches()) {
            Charge other = charge(sequence, specs, 0, "other", 1);
            store().take(List.of(other));
            advance(store().snapshot(other).nextTokenAfter()); // time 0 is the beginning of a period
        }
        Map<Integer, Answer> taken = new HashMap<>();
        long now = 0;
        for (int i = 0; i < sequence.steps().size(); i++) {
            Vectors.Step step = sequence.steps().get(i);
            advance(Duration.ofMillis(step.at() - now));
            now = step.at();
            switch (step.action()) {
                case "change" -> specs.set(step.place(), step.limit().spec());
                case "settle" -> store().settle(taken.get(step.place()), step.cost());
                default -> taken.put(i, take(sequence, specs, step, i));
            }
        }
    }

    private Answer take(Vectors.Sequence sequence, List<BucketSpec> specs, Vectors.Step step, int place) {
        List<Charge> charges = step.answers().stream()
                .map(answer -> charge(sequence, specs, step, answer).withMaxWait(Duration.ofMillis(step.maxWait())))
                .toList();
        Decision decision = store().reserve(charges);
        String name = sequence.name() + ", step " + place;
        boolean calendar = sequence.start() != null;
        assertThat(millis(decision.waitFor().toNanos(), calendar)).as(name).isEqualTo(step.waitTime());
        for (Answer answer : decision.answers()) {
            Vectors.Expected expected = step.answers().get(charges.indexOf(answer.charge()));
            assertThat(answer.isGuaranteed()).as(name).isEqualTo(sequence.shares() != null && expected.bucket() > 0);
            assertThat(numbers(expected, answer, calendar)).as(name).isEqualTo(expected);
            checkHeaders(name, answer, expected.policy(), expected.header());
        }
        return decision.answers().get(0);
    }

    private static Vectors.Expected numbers(Vectors.Expected expected, Answer answer, boolean calendar) {
        return new Vectors.Expected(
                expected.bucket(),
                answer.charge().cost(),
                answer.outcome().name().toLowerCase().replace('_', '-'),
                answer.remaining(),
                millis(answer.retryNanos(), calendar),
                millis(answer.nextTokenNanos(), calendar),
                millis(answer.resetNanos(), calendar),
                expected.policy(),
                expected.header());
    }

    /** Redis rounds times by the calendar up, by 4 µs at most. */
    private static long millis(long nanos, boolean calendar) {
        assertThat(nanos % 1_000_000).isBetween(0L, calendar ? 4_000L : 0L);
        return nanos / 1_000_000;
    }

    private static Charge charge(
            Vectors.Sequence sequence, List<BucketSpec> specs, Vectors.Step step, Vectors.Expected answer) {
        ShareVectors.Lanes shares = sequence.shares();
        return shares == null
                ? charge(sequence, specs, answer.bucket(), "key", answer.cost())
                : shares.charge(shares.policy(specs), step.share(), answer.cost());
    }

    private static Charge charge(Vectors.Sequence sequence, List<BucketSpec> specs, int bucket, String key, long cost) {
        ThrottlePolicy policy = ThrottlePolicy.of("b" + bucket, specs.get(bucket), "user");
        return Charge.of(policy, sequence.name() + key, cost);
    }
}
