package io.ratelimit.redis;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/**
 * Some policies' buckets in memory, the others' in Redis. What is in memory is taken from first, as that costs next to
 * nothing: where it denies, Redis isn't asked; where Redis denies, it is given back. Thread-safe.
 */
public final class RoutingBucketStore implements BucketStore {

    private final BucketStore local;
    private final FailoverBucketStore redis;
    private final Predicate<ThrottlePolicy> onRedis;

    /**
     * @param onRedis which policies have their buckets there
     */
    public RoutingBucketStore(BucketStore local, FailoverBucketStore redis, Predicate<ThrottlePolicy> onRedis) {
        this.local = local;
        this.redis = redis;
        this.onRedis = onRedis;
    }

    @Override
    public Decision take(List<Charge> charges) {
        return take(charges, false);
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        return take(charges, true);
    }

    private Decision take(List<Charge> charges, boolean ahead) {
        int there = onRedis(charges);
        if (there == 0 || there == charges.size()) {
            return take(there == 0 ? local : redis, charges, ahead);
        }
        List<Charge> here = new ArrayList<>(charges);
        here.removeIf(charge -> onRedis.test(charge.policy()));
        List<Charge> remote = new ArrayList<>(charges);
        remote.removeIf(charge -> !onRedis.test(charge.policy()));
        Decision first = take(local, here, ahead);
        if (!first.allowed()) {
            return joined(charges, first.answers(), redis.remembered(remote));
        }
        Decision second = take(redis, remote, ahead);
        return joined(charges, second.allowed() ? first.answers() : givenBack(first.answers()), second.answers());
    }

    private static Decision take(BucketStore store, List<Charge> charges, boolean ahead) {
        return ahead ? store.reserve(charges) : store.take(charges);
    }

    private int onRedis(List<Charge> charges) {
        int there = 0;
        for (int i = 0; i < charges.size(); i++) {
            there += onRedis.test(charges.get(i).policy()) ? 1 : 0;
        }
        return there;
    }

    private List<Answer> givenBack(List<Answer> taken) {
        local.giveBack(taken);
        return taken.stream().map(this::asItIs).toList();
    }

    /** What the bucket says that had the tokens and has them still. */
    private Answer asItIs(Answer taken) {
        BucketSnapshot now = local.look(taken.charge());
        Decision had = new Decision(
                Outcome.ALLOWED,
                now.available(),
                0,
                0,
                taken.decision().nextTokenNanos(),
                now.resetAfter().toNanos(),
                List.of());
        return new Answer(taken.charge(), had, Answer.UNKNOWN, false, taken.shared());
    }

    /** In the order of the charges, as both parts are; a charge may be there twice. */
    private static Decision joined(List<Charge> charges, List<Answer> some, List<Answer> others) {
        List<Answer> answers = new ArrayList<>(charges.size());
        int next = 0;
        int nextOther = 0;
        for (Charge charge : charges) {
            if (next < some.size() && some.get(next).charge() == charge) {
                answers.add(some.get(next++));
            } else if (nextOther < others.size() && others.get(nextOther).charge() == charge) {
                answers.add(others.get(nextOther++));
            }
        }
        return Decision.of(answers);
    }

    @Override
    public void giveBack(List<Answer> taken) {
        List<Answer> here = new ArrayList<>(taken);
        List<Answer> remote = new ArrayList<>(taken);
        here.removeIf(answer -> onRedis.test(answer.policy()));
        remote.removeIf(answer -> !onRedis.test(answer.policy()));
        if (!here.isEmpty()) {
            local.giveBack(here);
        }
        if (!remote.isEmpty()) {
            redis.giveBack(remote);
        }
    }

    @Override
    public BucketSnapshot look(Charge charge) {
        return store(charge).look(charge);
    }

    @Override
    public void forget(Charge charge) {
        store(charge).forget(charge);
    }

    @Override
    public long size(ThrottlePolicy policy) {
        return store(policy).size(policy);
    }

    private BucketStore store(Charge charge) {
        return store(charge.policy());
    }

    private BucketStore store(ThrottlePolicy policy) {
        return onRedis.test(policy) ? redis : local;
    }
}
