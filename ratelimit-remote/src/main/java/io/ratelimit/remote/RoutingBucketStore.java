package io.ratelimit.remote;

import io.ratelimit.Backend;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Charge.Share;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.SharedSlots;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.lease.Leases;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A bucket store with the buckets of some policies in memory and those of the others in a remote store. It takes from
 * memory first, which costs next to nothing. If memory denies, the remote store isn't called; if the remote store denies,
 * the tokens go back to memory. Thread-safe.
 */
public final class RoutingBucketStore implements BucketStore {

    private final BucketStore local;
    private final FailoverBucketStore remote;
    private final Predicate<ThrottlePolicy> isRemote;

    /** @param isRemote returns whether the buckets of a policy are in the remote store */
    public RoutingBucketStore(BucketStore local, FailoverBucketStore remote, Predicate<ThrottlePolicy> isRemote) {
        this.local = local;
        this.remote = remote;
        this.isRemote = isRemote;
    }

    @Override
    public Decision take(List<Charge> charges) {
        return take(charges, BucketStore::take);
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        return take(charges, BucketStore::reserve);
    }

    @Override
    public Decision takeWithSlots(List<Charge> charges, List<SharedSlots.Request> slots) {
        return slots.isEmpty() ? take(charges) : take(charges, (store, some) -> store.takeWithSlots(some, slots));
    }

    /** @param verb takes from a store at once or ahead */
    private Decision take(List<Charge> charges, BiFunction<BucketStore, List<Charge>, Decision> verb) {
        int remoteCount = countRemote(charges);
        if (remoteCount == 0 || remoteCount == charges.size()) {
            return verb.apply(remoteCount == 0 ? local : remote, charges);
        }
        List<Charge> localCharges = new ArrayList<>(charges);
        localCharges.removeIf(charge -> isRemote.test(charge.policy()));
        List<Charge> remoteCharges = new ArrayList<>(charges);
        remoteCharges.removeIf(charge -> !isRemote.test(charge.policy()));
        Decision first = verb.apply(local, localCharges);
        if (!first.allowed()) {
            return Leases.join(charges, first.answers(), remote.remembered(remoteCharges));
        }
        Decision second = verb.apply(remote, remoteCharges);
        return Leases.join(
                charges, second.allowed() ? first.answers() : giveBackToLocal(first.answers()), second.answers());
    }

    private int countRemote(List<Charge> charges) {
        int count = 0;
        for (int i = 0; i < charges.size(); i++) {
            count += isRemote.test(charges.get(i).policy()) ? 1 : 0;
        }
        return count;
    }

    private List<Answer> giveBackToLocal(List<Answer> taken) {
        local.giveBack(taken);
        return taken.stream().map(this::withTokens).toList();
    }

    /** Returns the answer of a bucket that has its tokens again. */
    private Answer withTokens(Answer taken) {
        Answer answer = Answer.allowed(taken.charge(), local.snapshot(taken.charge()), Duration.ZERO)
                .withShared(taken.shared());
        Share share = taken.charge().share();
        return share == null || share.guaranteed() == null ? answer : answer.asGuaranteed();
    }

    @Override
    public void giveBack(List<Answer> taken) {
        List<Answer> ofLocal = new ArrayList<>(taken);
        List<Answer> ofRemote = new ArrayList<>(taken);
        ofLocal.removeIf(answer -> isRemote.test(answer.policy()));
        ofRemote.removeIf(answer -> !isRemote.test(answer.policy()));
        if (!ofLocal.isEmpty()) {
            local.giveBack(ofLocal);
        }
        if (!ofRemote.isEmpty()) {
            remote.giveBack(ofRemote);
        }
    }

    @Override
    public boolean settle(Answer taken, long cost) {
        return storeOf(taken.policy()).settle(taken, cost);
    }

    @Override
    public Executor settlements(ThrottlePolicy policy) {
        return storeOf(policy).settlements(policy);
    }

    @Override
    public BucketSnapshot snapshot(Charge charge) {
        return storeOf(charge.policy()).snapshot(charge);
    }

    @Override
    public void reset(Charge charge) {
        storeOf(charge.policy()).reset(charge);
    }

    @Override
    public boolean keepsShares(ThrottlePolicy policy) {
        return storeOf(policy).keepsShares(policy);
    }

    @Override
    public @Nullable SharedSlots slots(ThrottlePolicy policy) {
        return storeOf(policy).slots(policy);
    }

    @Override
    public @Nullable Backend backend(ThrottlePolicy policy) {
        return storeOf(policy).backend(policy);
    }

    @Override
    public long leased(ThrottlePolicy policy) {
        return storeOf(policy).leased(policy);
    }

    @Override
    public long size(ThrottlePolicy policy) {
        return storeOf(policy).size(policy);
    }

    private BucketStore storeOf(ThrottlePolicy policy) {
        return isRemote.test(policy) ? remote : local;
    }
}
