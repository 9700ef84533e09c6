package io.ratelimit.redis;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Answers in place of a backend that fails, by each policy's rule. Its buckets are kept from one failure to the next:
 * however often the backend comes and goes, they grant no more than their share. Thread-safe.
 */
final class StandIn {

    /** When a call that is refused because the backend failed may try again: it is probed more often than that. */
    private static final long RETRY = Duration.ofSeconds(1).toNanos();

    private final BucketStore memory;
    private final LocalShare share;
    private final Function<ThrottlePolicy, FailureRule> rules;

    /**
     * @param memory of nobody else
     * @param share of capacity and rate that it grants
     */
    StandIn(BucketStore memory, LocalShare share, Function<ThrottlePolicy, FailureRule> rules) {
        this.memory = memory;
        this.share = share;
        this.rules = rules;
    }

    Decision take(List<Charge> charges, boolean ahead) {
        List<Charge> local = new ArrayList<>(charges.size());
        List<Answer> refused = new ArrayList<>();
        for (Charge charge : charges) {
            if (isLocal(charge)) {
                local.add(inShare(charge));
            } else if (!byRule(charge).allowed()) {
                refused.add(byRule(charge));
            }
        }
        return Decision.of(refused.isEmpty() ? answers(charges, local, ahead) : refused);
    }

    private List<Answer> answers(List<Charge> charges, List<Charge> local, boolean ahead) {
        List<Answer> taken = (ahead ? memory.reserve(local) : memory.take(local)).answers();
        List<Answer> answers = new ArrayList<>(charges.size());
        int next = 0;
        for (Charge charge : charges) {
            answers.add(isLocal(charge) ? inPlaceOf(charge, taken.get(next++)) : byRule(charge));
        }
        return answers;
    }

    /** A cost that only the share is too small for is refused for the failure's sake. */
    private static Answer inPlaceOf(Charge charge, Answer answer) {
        boolean fits = charge.cost() <= charge.spec().capacity();
        return answer.decision().outcome() == Outcome.NEVER_FITS && fits
                ? answer(charge, Outcome.BACKEND_FAILED, 0, RETRY)
                : answer.inPlaceOf(charge);
    }

    private Answer byRule(Charge charge) {
        if (charge.cost() > charge.spec().capacity()) {
            return answer(charge, Outcome.NEVER_FITS, 0, 0);
        }
        return rules.apply(charge.policy()) == FailureRule.ALLOW
                ? answer(charge, Outcome.ALLOWED, charge.spec().capacity(), 0)
                : answer(charge, Outcome.BACKEND_FAILED, 0, RETRY);
    }

    private static Answer answer(Charge charge, Outcome outcome, long remaining, long retryNanos) {
        Decision decision = new Decision(outcome, remaining, retryNanos, 0, 0, 0, List.of());
        return new Answer(charge, decision).inPlaceOf(charge);
    }

    private boolean isLocal(Charge charge) {
        return rules.apply(charge.policy()) == FailureRule.LOCAL;
    }

    private Charge inShare(Charge charge) {
        return new Charge(charge.policy(), share.of(charge.spec()), charge.key(), charge.cost(), charge.maxWait());
    }

    /** Puts back what stand-ins took. */
    void giveBack(List<Answer> taken) {
        memory.giveBack(taken.stream()
                .filter(answer -> isLocal(answer.charge()))
                .map(answer -> new Answer(inShare(answer.charge()), answer.decision(), answer.position()))
                .toList());
    }

    /** The bucket that stands in for that of a charge; null where none does. */
    @Nullable
    BucketSnapshot look(Charge charge) {
        return isLocal(charge) ? memory.look(inShare(charge)) : null;
    }

    void forget(Charge charge) {
        memory.forget(charge);
    }

    long size(ThrottlePolicy policy) {
        return memory.size(policy);
    }
}
