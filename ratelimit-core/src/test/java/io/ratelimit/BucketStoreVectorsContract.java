package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The part of {@link BucketStoreContract} for the {@link Vectors}: every store gives their answers. */
public abstract class BucketStoreVectorsContract {

    /** Returns the store of this test. */
    protected abstract BucketStore store();

    /** Moves the store's clock. */
    protected abstract void advance(Duration step);

    /** Compares the header fields of an answer with those of the vector; a store alone has none. */
    protected void checkHeaders(String name, Answer answer, String policy, String limit) {}

    @Test
    void aStoreGivesTheAnswersOfTheVectors() {
        Vectors.all().forEach(this::run);
    }

    private void run(Vectors.Sequence sequence) {
        List<BucketSpec> specs = new ArrayList<>(
                sequence.limits().stream().map(Vectors.Limit::spec).toList());
        if (sequence.limits().get(0).batches()) {
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
                .map(answer -> charge(sequence, specs, answer.bucket(), "key", answer.cost())
                        .withMaxWait(Duration.ofMillis(step.maxWait())))
                .toList();
        Decision decision = store().reserve(charges);
        String name = sequence.name() + ", step " + place;
        assertThat(decision.waitFor()).as(name).isEqualTo(Duration.ofMillis(step.waitTime()));
        for (Answer answer : decision.answers()) {
            Vectors.Expected expected = step.answers().get(charges.indexOf(answer.charge()));
            assertThat(numbers(expected, answer)).as(name).isEqualTo(expected);
            checkHeaders(name, answer, expected.policy(), expected.header());
        }
        return decision.answers().get(0);
    }

    private static Vectors.Expected numbers(Vectors.Expected expected, Answer answer) {
        return new Vectors.Expected(
                expected.bucket(),
                answer.charge().cost(),
                answer.outcome().name().toLowerCase().replace('_', '-'),
                answer.remaining(),
                millis(answer.retryNanos()),
                millis(answer.nextTokenNanos()),
                millis(answer.resetNanos()),
                expected.policy(),
                expected.header());
    }

    private static long millis(long nanos) {
        assertThat(nanos % 1_000_000).isZero();
        return nanos / 1_000_000;
    }

    private static Charge charge(Vectors.Sequence sequence, List<BucketSpec> specs, int bucket, String key, long cost) {
        ThrottlePolicy policy = ThrottlePolicy.of("b" + bucket, specs.get(bucket), "user");
        return Charge.of(policy, sequence.name() + key, cost);
    }
}
