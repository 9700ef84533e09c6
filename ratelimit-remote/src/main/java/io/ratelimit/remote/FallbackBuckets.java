package io.ratelimit.remote;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The buckets in memory that decide in place of a backend that fails, by the rule of each policy. They are kept from one
 * failure to the next, so however often the backend fails, they grant no more than their share. Thread-safe.
 */
final class FallbackBuckets {

    /** The retry time of a call that is denied because the backend failed. The backend is probed more often. */
    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    private final BucketStore memory;
    private final LocalShare share;
    private final Function<ThrottlePolicy, FailureRule> rules;

    /** @param memory no other store may use its buckets */
    FallbackBuckets(BucketStore memory, LocalShare share, Function<ThrottlePolicy, FailureRule> rules) {
        this.memory = memory;
        this.share = share;
        this.rules = rules;
    }

    /**
     * @param verb takes from a store at once or ahead
     * @param congested whether the backend wasn't called because this process is too busy. The local share then decides
     *     under {@link FailureRule#ALLOW} too, since otherwise a flood would lift the limit
     */
    Decision take(List<Charge> charges, BiFunction<BucketStore, List<Charge>, Decision> verb, boolean congested) {
        List<Charge> local = new ArrayList<>(charges.size());
        List<Answer> denied = new ArrayList<>();
        for (Charge charge : charges) {
            Charge inShare = isLocal(charge, congested) ? inShare(charge) : null;
            if (inShare != null) {
                local.add(inShare);
            } else if (!withoutShare(charge, congested).allowed()) {
                denied.add(withoutShare(charge, congested));
            }
        }
        return Decision.of(
                denied.isEmpty() ? answers(charges, verb.apply(memory, local).answers(), congested) : denied);
    }

    /** Returns how many calls of a key may run in this process in place of the limit; none if all are denied. */
    int slots(ThrottlePolicy policy, int limit, boolean congested) {
        return switch (rules.apply(policy)) {
            case LOCAL -> share.slots(limit);
            case ALLOW -> congested ? share.slots(limit) : Integer.MAX_VALUE;
            case DENY -> 0;
        };
    }

    private List<Answer> answers(List<Charge> charges, List<Answer> taken, boolean congested) {
        List<Answer> answers = new ArrayList<>(charges.size());
        int next = 0;
        for (Charge charge : charges) {
            answers.add(
                    isLocal(charge, congested)
                            ? forCharge(charge, taken.get(next++))
                            : withoutShare(charge, congested));
        }
        return answers;
    }

    /** Returns the answer for the original charge. A cost that only the share can't hold is denied because of the failure. */
    private static Answer forCharge(Charge charge, Answer answer) {
        boolean fits = charge.cost() <= charge.spec().capacity();
        return answer.outcome() == Outcome.NEVER_FITS && fits
                ? Answer.denied(charge, Outcome.BACKEND_FAILED, RETRY_AFTER).asFallback(charge)
                : answer.asFallback(charge);
    }

    /** Returns the answer by the rule alone. Where the share would decide, it is none, and every call is denied. */
    private Answer withoutShare(Charge charge, boolean congested) {
        if (charge.cost() > charge.spec().capacity()) {
            return Answer.denied(charge, Outcome.NEVER_FITS, Duration.ZERO).asFallback(charge);
        }
        return rules.apply(charge.policy()) == FailureRule.ALLOW && !congested
                ? Answer.allowed(charge).asFallback(charge)
                : Answer.denied(charge, Outcome.BACKEND_FAILED, RETRY_AFTER).asFallback(charge);
    }

    private boolean isLocal(Charge charge, boolean congested) {
        FailureRule rule = rules.apply(charge.policy());
        return rule == FailureRule.LOCAL || congested && rule == FailureRule.ALLOW;
    }

    /** Returns the charge to the bucket of the share; null if the share is none. */
    private @Nullable Charge inShare(Charge charge) {
        BucketSpec spec = share.scaled(charge.spec());
        return spec == null
                ? null
                : new Charge(
                        charge.policy(),
                        spec,
                        charge.key(),
                        charge.cost(),
                        charge.maxWait(),
                        share.scaled(charge.share(), charge.policy().shares()));
    }

    /** Returns the answer that memory gave: only a charge with a share has taken tokens there. */
    private Answer ofMemory(Answer taken) {
        return taken.withCharge(Objects.requireNonNull(inShare(taken.charge())));
    }

    /** Returns tokens to memory. An answer by a rule alone has no receipt, as nothing was taken. */
    void giveBack(List<Answer> taken) {
        memory.giveBack(taken.stream()
                .filter(answer -> answer.receipt() != null)
                .map(this::ofMemory)
                .toList());
    }

    /** Settles a call in memory. An answer by a rule alone took nothing, and has nothing to settle. */
    boolean settle(Answer taken, long cost) {
        return taken.receipt() == null || memory.settle(ofMemory(taken), cost);
    }

    /** Returns the state of the fallback bucket of a charge; null if the rule of its policy uses none, or the share is none. */
    @Nullable
    BucketSnapshot snapshot(Charge charge) {
        Charge inShare = isLocal(charge, false) ? inShare(charge) : null;
        return inShare == null ? null : memory.snapshot(inShare);
    }

    void reset(Charge charge) {
        memory.reset(charge);
    }

    long size(ThrottlePolicy policy) {
        return memory.size(policy);
    }
}
