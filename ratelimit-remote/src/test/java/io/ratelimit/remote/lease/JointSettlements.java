package io.ratelimit.remote.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BackendException;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.GrantOracle;
import io.ratelimit.LocalBuckets;
import io.ratelimit.remote.lease.JointHistory.Event;
import io.ratelimit.remote.lease.JointInstance.Kind;
import java.util.ArrayList;
import java.util.List;

/** Settles the calls of a {@link JointHistory}: their tokens come back, or the buckets owe more. */
final class JointSettlements {

    private final JointHistory history;
    private final List<Taken> taken = new ArrayList<>();

    JointSettlements(JointHistory history) {
        this.history = history;
    }

    record Taken(
            JointInstance instance,
            JointAccount account,
            Answer answer,
            GrantOracle.Grant grant,
            int resets,
            int corrections) {

        /** Returns the call with a part of its tokens. */
        Taken of(long tokens) {
            Answer part = answer.withCharge(answer.charge().withCost(tokens));
            return new Taken(instance, account, part, grant, resets, corrections);
        }
    }

    boolean isEmpty() {
        return taken.isEmpty();
    }

    void add(Taken call) {
        taken.add(call);
    }

    void settle() {
        int last = history.random.nextInt(
                Math.min(taken.size(), history.random.nextInt(4) == 0 ? JointHistory.STEPS : 20));
        Taken back = taken.remove(taken.size() - 1 - last);
        Charge charge = back.answer.charge();
        long cost =
                switch (history.random.nextInt(4)) {
                    case 0 ->
                        charge.cost()
                                + history.random.nextLong(
                                        history.random.nextBoolean()
                                                ? 3
                                                : 2 * charge.spec().capacity());
                    case 1 -> history.random.nextLong(charge.cost() + 1);
                    default -> 0;
                };
        if (cost > charge.cost()) {
            owe(back, cost);
        } else {
            giveBack(back, cost);
        }
    }

    private void owe(Taken back, long cost) {
        JointAccount account = back.account;
        Charge charge = back.answer.charge();
        long more = cost - charge.cost();
        boolean remote = account == history.shared.get(Kind.of(charge.policy()));
        long[] before = missing(back);
        long leasedBefore = back.instance.leased();
        if (account.calendar != null && before[0] / before[1] + more > 11) {
            return; // a debt ends within 365 days, which 11 months are
        }
        if (remote) {
            history.prepare(back.instance, charge);
        }
        try {
            back.instance.store.settle(back.answer, cost);
        } catch (BackendException down) {
            assertThat(history.calm).as(history.step).isFalse();
            return;
        }
        long paid = account == history.shared.get(Kind.LEASED)
                ? Math.min(Math.min(account.excused, leasedBefore - back.instance.leased()), more)
                : 0;
        account.excused -= paid; // by tokens of a lease that ended while the machine was frozen
        account.oracle.owed(account.counted(charge.spec()), more - paid, account.now(), history.step);
        if (remote) {
            history.conclude(back.instance, charge);
            LeasePlace.Kept after = history.kept(charge);
            if (account == history.shared.get(Kind.LEASED) && after.missing() > Math.max(after.full(), before[0])) {
                history.events.get(Event.DEBT).increment();
                assertThat(back.instance.leased()).as(history.step).isZero();
                account.excused += history.leased();
            }
        }
    }

    /** Returns the ticks that a bucket is missing, and the ticks of a token there. */
    private long[] missing(Taken back) {
        JointAccount account = back.account;
        Charge charge = back.answer.charge();
        if (account == history.shared.get(Kind.of(charge.policy()))) {
            LeasePlace.Kept kept = history.kept(charge);
            return new long[] {kept.missing(), kept.perToken()};
        }
        BucketStore memory = back.answer.fallback() ? back.instance.fallback : back.instance.memory;
        return LocalBuckets.missing(memory, back.answer, back.instance.time.nanoTime());
    }

    /** Gives back all but a cost; a part first, one time in three, as stores of one's own do by the default of a settlement. */
    private void giveBack(Taken call, long cost) {
        Charge charge = call.answer.charge();
        long rest = charge.cost() - cost;
        if (rest > 1 && history.random.nextInt(3) == 0) {
            long part = 1 + history.random.nextLong(rest - 1);
            giveBackPart(call.of(part), 0);
            giveBackPart(call.of(rest - part), 0);
        } else {
            giveBackPart(call, cost);
        }
    }

    private void giveBackPart(Taken back, long cost) {
        long leasedBefore = back.instance.leased();
        long[] before = missing(back);
        try {
            if (cost == 0) {
                back.instance.store.giveBack(List.of(back.answer));
            } else {
                back.instance.store.settle(back.answer, cost);
            }
        } catch (BackendException down) {
            assertThat(history.calm).as(history.step).isFalse();
        }
        long[] after = missing(back);
        long returned = after[1] == before[1] ? before[0] - after[0] : 0; // the memory evicts idle buckets
        long perToken = before[1];
        long toLease = back.instance.leased() - leasedBefore;
        JointAccount account = back.account;
        assertThat(returned)
                .as("more than the rest of one call, " + history.step)
                .isBetween(0L, (back.answer.charge().cost() - cost) * perToken);
        assertThat(toLease)
                .as("more leased than the rest of one call, " + history.step)
                .isBetween(0L, back.answer.charge().cost() - cost);
        if (toLease > 0) {
            history.events.get(Event.RETURNED_TO_LEASE).increment();
            assertThat(returned)
                    .as("returned to the lease and to the bucket, " + history.step)
                    .isZero();
            perToken = history.place.perToken(back.answer.charge().spec());
            returned = toLease * perToken;
            LeasePlace.Kept kept = history.kept(back.answer.charge());
            account.excused += kept.missing() > kept.full() ? toLease : 0;
        }
        if (back.resets < account.resets) {
            assertThat(toLease > 0 ? 0 : returned)
                    .as("returned from before a reset, " + history.step)
                    .isZero();
            account.excused += toLease;
            return;
        }
        history.events.get(Event.RETURNED).add(returned > 0 ? 1 : 0);
        if (back.corrections < history.corrections && !back.answer.fallback()) {
            account.oracle.excuse((returned + perToken - 1) / perToken);
        }
        account.oracle.returned(back.grant, returned, perToken, account.now(), history.step);
    }
}
