package io.ratelimit.redis;

import io.lettuce.core.protocol.CommandArgs;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.Charge.Share;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.SharedSlots;
import io.ratelimit.redis.RedisAnswers.ScriptReceipt;
import io.ratelimit.redis.RedisBucketStore.Timing;
import io.ratelimit.redis.RedisScript.Running;
import io.ratelimit.redis.RedisScript.ScriptReply;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.SpecCache;
import io.ratelimit.remote.inflight.RegisterStore.CarriedClaim;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** The calls of the script for charges, and what their replies are for these charges. Thread-safe. */
final class ScriptCalls {

    private final RedisScript script;
    private final RedisKeys keys;
    private final LongSupplier time;
    private final SpecCache<BucketSpec, RedisTickScale> scales = new SpecCache<>(RedisTickScale::of);
    private final SpecCache<BucketSpec, CalendarClock> calendars = new SpecCache<>(CalendarClock::of);

    /** The arguments for one token at once, which are the most frequent ones. */
    private final SpecCache<RedisTickScale, byte[]> toTakeOne =
            new SpecCache<>(ticks -> ScriptArguments.toTake(ticks, 1, 0));

    /** @param time returns {@link RedisBucketStore#SERVER_TIME}, or in tests a time in microseconds */
    ScriptCalls(RedisScript script, RedisKeys keys, LongSupplier time) {
        this.script = script;
        this.keys = keys;
        this.time = time;
    }

    private enum Operation {
        TAKE,
        LEASE,
        LOOK,
        GIVE;

        private final byte[] word = name().toLowerCase(Locale.ROOT).getBytes(StandardCharsets.US_ASCII);
    }

    byte[] key(Charge charge) {
        return keys.key(charge);
    }

    /** Returns the keys to delete so that the bucket of a charge, and its lanes, are full. */
    byte[][] keysToDelete(Charge charge) {
        return charge.share() == null ? new byte[][] {key(charge)} : new byte[][] {key(charge), keys.lanes(charge)};
    }

    private RedisTickScale ticks(Charge charge) {
        return scales.get(charge.spec());
    }

    /** Returns the clock of the charge's bucket; null if it is the server's. */
    private @Nullable CalendarClock calendar(Charge charge) {
        return charge.spec().refill() == Refill.CALENDAR ? calendars.get(charge.spec()) : null;
    }

    Running startLook(List<Charge> charges, Timing timing) {
        return start(Operation.LOOK, charges, timing);
    }

    private Running start(Operation operation, List<Charge> charges, Timing timing) {
        return start(operation, charges, toTake(charges, timing), RedisLanes.toTake(charges, timing, keys));
    }

    private byte[][] toTake(List<Charge> charges, Timing timing) {
        byte[][] arguments = new byte[charges.size()][];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = toTake(charges.get(i), timing);
        }
        return arguments;
    }

    private byte[] toTake(Charge charge, Timing timing) {
        RedisTickScale ticks = ticks(charge);
        long waitMicros = waitMicros(charge, timing);
        return charge.cost() == 1 && waitMicros == 0
                ? toTakeOne.get(ticks)
                : ScriptArguments.toTake(ticks, charge.cost(), waitMicros);
    }

    private long waitMicros(Charge charge, Timing timing) {
        Share share = charge.share();
        return share == null ? timing.waitMicros(charge) : -ticks(charge).price(share.leave());
    }

    /** Starts to take the cost of a charge as often as it fits, and at most so many times, for several takes. */
    Running startTakes(Charge charge, int times) {
        RedisTickScale ticks = ticks(charge);
        long maxTokens = charge.cost() * Math.min(times, ticks.capacity() / charge.cost());
        return start(Operation.LEASE, charge, ScriptArguments.toLease(ticks, charge.cost(), 0, maxTokens));
    }

    Running start(RedisScript.Arguments arguments) {
        return script.start(arguments);
    }

    /** Returns the argument to take from a bucket at once. */
    byte[] toTake(Charge charge, @Nullable LeaseRequest lease) {
        return lease == null ? toTake(charge, Timing.AT_ONCE) : toLease(lease, charge.cost());
    }

    Running startTake(List<Charge> charges, List<LeaseRequest> leases, Timing timing) {
        if (leases.isEmpty()) {
            return start(Operation.TAKE, charges, timing);
        }
        byte[][] arguments = new byte[charges.size()][];
        for (int i = 0; i < arguments.length; i++) {
            Charge charge = charges.get(i);
            LeaseRequest lease = LeaseRequest.find(leases, charge);
            arguments[i] = lease == null
                    ? ScriptArguments.toLease(ticks(charge), charge.cost(), waitMicros(charge, timing), 0, 0)
                    : toLease(lease, charge.cost());
        }
        return start(Operation.LEASE, charges, arguments, RedisLanes.toTake(charges, timing, keys));
    }

    /** Returns the answers of a call that took all of the charges or none, and passes the leases that were requested. */
    List<Answer> taken(List<Charge> charges, List<LeaseRequest> leases, Timing timing, ScriptReply reply) {
        List<Answer> answers = answers(charges, timing, reply);
        if (!leases.isEmpty() && answers.stream().allMatch(Answer::allowed)) {
            grant(charges, leases, reply);
        }
        return answers;
    }

    /** Takes all of the charges or none at once, and sets registers in the same call. */
    Decision take(
            List<Charge> charges,
            List<CarriedClaim> claims,
            Duration timeToLive,
            RedisRegisters registers,
            Deadline.Call call) {
        BucketArguments buckets = new BucketArguments(
                Operation.TAKE,
                charges,
                toTake(charges, Timing.AT_ONCE),
                RedisLanes.toTake(charges, Timing.AT_ONCE, keys));
        Running running = registers.start((to, serverMicros) -> {
            to.add(claims.size() + buckets.keyCount());
            claims.forEach(claim -> to.addKey(registers.key(claim)));
            buckets.addKeys(to);
            to.add(claims.size()).add(charges.size());
            claims.forEach(claim -> registers.addArguments(claim.claim(), timeToLive, to::add));
            buckets.addArguments(to, serverMicros);
        });
        ScriptReply reply = RedisScript.result(running, call);
        return RedisRegisters.complete(claims, reply, buckets.keyCount())
                ? Decision.of(answers(charges, Timing.AT_ONCE, reply))
                : SharedSlots.denial(charges);
    }

    private byte[] toLease(LeaseRequest lease, long cost) {
        long micros = (lease.charge().policy().lease().toNanos() + 999) / 1_000;
        return ScriptArguments.toLease(ticks(lease.charge()), cost, micros, lease.maxTokens());
    }

    Running startGivingBack(List<Answer> taken) {
        byte[][] arguments = new byte[taken.size()][];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = toSettle(taken.get(i), 0);
        }
        return start(
                Operation.GIVE,
                taken.stream().map(Answer::charge).toList(),
                arguments,
                RedisLanes.toSettle(taken, 0, keys));
    }

    Running startSettling(Answer taken, long cost) {
        return start(
                Operation.GIVE,
                List.of(taken.charge()),
                new byte[][] {toSettle(taken, cost)},
                RedisLanes.toSettle(List.of(taken), cost, keys));
    }

    private byte[] toSettle(Answer taken, long cost) {
        RedisTickScale ticks = ticks(taken.charge());
        long rest = taken.charge().cost() - cost;
        return rest < 0
                ? ScriptArguments.toOwe(ticks, -rest)
                : ScriptArguments.toGiveBack(ticks, rest, cost, (ScriptReceipt) taken.receipt());
    }

    private Running start(Operation operation, Charge charge, byte[] arguments) {
        return start(operation, List.of(charge), new byte[][] {arguments}, RedisLanes.NONE);
    }

    private Running start(Operation operation, List<Charge> charges, byte[][] arguments, RedisLanes lanes) {
        return start(new BucketArguments(operation, charges, arguments, lanes));
    }

    private final class BucketArguments implements RedisScript.Arguments {

        private final Operation operation;
        private final List<Charge> charges;
        private final byte[][] keys;
        private final byte[][] arguments;
        private final RedisLanes lanes;

        BucketArguments(Operation operation, List<Charge> charges, byte[][] arguments, RedisLanes lanes) {
            this.operation = operation;
            this.charges = charges;
            this.arguments = arguments;
            this.lanes = lanes;
            this.keys = new byte[arguments.length][];
            for (int i = 0; i < keys.length; i++) {
                keys[i] = key(charges.get(i));
            }
        }

        @Override
        public void addTo(CommandArgs<byte[], byte[]> to, long serverMicros) {
            to.add(keyCount());
            addKeys(to);
            addArguments(to, serverMicros);
        }

        int keyCount() {
            return keys.length + lanes.keys().size();
        }

        void addKeys(CommandArgs<byte[], byte[]> to) {
            to.addKeys(keys);
            lanes.keys().forEach(to::addKey);
        }

        void addArguments(CommandArgs<byte[], byte[]> to, long serverMicros) {
            long now = time.getAsLong();
            for (int i = 0; i < keys.length; i++) {
                CalendarClock calendar = calendar(charges.get(i));
                if (calendar == null) {
                    to.add(arguments[i]);
                } else {
                    byte[] all = ScriptArguments.withCalendar(calendar, serverMicros, arguments[i]);
                    if (operation == Operation.TAKE || operation == Operation.LOOK) {
                        ScriptArguments.setWait(
                                all, calendar, now == RedisBucketStore.SERVER_TIME ? serverMicros : now);
                    }
                    to.add(all);
                }
            }
            lanes.arguments().forEach(to::add);
            if (operation != Operation.TAKE || now != RedisBucketStore.SERVER_TIME) {
                to.add(operation.word);
            }
            addTestTime(to, now);
        }
    }

    void addTestTime(CommandArgs<byte[], byte[]> to) {
        addTestTime(to, time.getAsLong());
    }

    private static void addTestTime(CommandArgs<byte[], byte[]> to, long now) {
        if (now != RedisBucketStore.SERVER_TIME) {
            to.add(now);
        }
    }

    private List<Answer> answers(List<Charge> charges, Timing timing, ScriptReply reply) {
        boolean taken = true;
        for (int i = 0; i < charges.size(); i++) {
            taken &= reply.missing(i) >= 0;
        }
        List<Answer> answers = new ArrayList<>(charges.size());
        int lane = charges.size();
        for (int i = 0; i < charges.size(); i++) {
            Charge charge = charges.get(i);
            Answer answer = answer(charge, i, reply, taken, timing);
            if (charge.share() != null) {
                answer = ofShare(charge, answer, i, lane, reply, taken, timing);
                lane += RedisLanes.of(charge) == null ? 0 : 1;
            }
            answers.add(answer);
        }
        return answers;
    }

    /**
     * @param i the place of the pool in the reply
     * @param place the place of the lane, if the charge has one
     */
    private Answer ofShare(
            Charge charge, Answer ofPool, int i, int place, ScriptReply reply, boolean taken, Timing timing) {
        if (ofPool.allowed()) {
            return RedisLanes.served(charge, ofPool, place, reply, taken);
        }
        return RedisLanes.hasTokens(charge, place, reply)
                ? RedisAnswers.inDebt(charge, ticks(charge), reply.lacking(i), timing, reply.now(i))
                : RedisLanes.sooner(charge, ofPool, place, reply, timing);
    }

    /** Returns the answer of the take at a place among several, as if they had been made one after another. */
    Answer answer(Charge charge, int place, ScriptReply reply) {
        if (reply.tookOnce()) {
            return answer(charge, 0, reply, true, Timing.AT_ONCE);
        }
        RedisTickScale ticks = ticks(charge);
        CalendarClock calendar = calendar(charge);
        long now = now(reply, 0, calendar);
        long price = ticks.price(charge.cost());
        long allowed = reply.leased(0) / price;
        long before = reply.lacking(0) - (allowed - place) * price;
        return place < allowed
                ? RedisAnswers.taken(
                        charge, ticks, before, reply.returned(0), now, reply.at(0), reply.begun(0), calendar)
                : RedisAnswers.denied(charge, ticks, reply.lacking(0), Timing.AT_ONCE, now, calendar);
    }

    Answer seen(Charge charge, Timing timing, ScriptReply reply) {
        Answer answer = answer(charge, 0, reply, false, timing);
        return charge.share() == null ? answer : ofShare(charge, answer, 0, 1, reply, false, timing);
    }

    private Answer answer(Charge charge, int i, ScriptReply reply, boolean taken, Timing timing) {
        RedisTickScale ticks = ticks(charge);
        CalendarClock calendar = calendar(charge);
        long now = now(reply, i, calendar);
        if (reply.missing(i) < 0) {
            return RedisAnswers.denied(charge, ticks, reply.lacking(i), timing, now, calendar);
        }
        long price = Math.max(reply.leased(i), ticks.price(charge.cost())); // leased tokens are still available
        long before = reply.missing(i) - price;
        return taken
                ? RedisAnswers.taken(
                        charge, ticks, before, reply.returned(i), now, reply.at(i), reply.begun(i), calendar)
                : RedisAnswers.available(charge, ticks, before, now, calendar);
    }

    BucketSnapshot snapshot(Charge charge, ScriptReply reply) {
        BucketSpec lane = RedisLanes.of(charge);
        if (lane != null) {
            return RedisLanes.snapshot(lane, reply, charge.cost());
        }
        RedisTickScale ticks = ticks(charge);
        CalendarClock calendar = calendar(charge);
        long missing = reply.missing(0) < 0 ? reply.lacking(0) : reply.missing(0) - ticks.price(charge.cost());
        return RedisAnswers.seen(charge, ticks, missing, now(reply, 0, calendar), calendar);
    }

    /** Returns the time of a bucket. If it is that of a calendar, records the server's time. */
    private long now(ScriptReply reply, int i, @Nullable CalendarClock calendar) {
        long now = reply.now(i);
        if (calendar != null) {
            script.setServerMicros(calendar.momentOf(now));
        }
        return now;
    }

    /** Takes a lease, but not the charge of the request, and waits for the bucket. */
    BucketSnapshot lease(LeaseRequest lease, Deadline.Call call) {
        ScriptReply reply = RedisScript.result(start(Operation.LEASE, lease.charge(), toLease(lease, 0)), call);
        grant(List.of(lease.charge()), List.of(lease), reply);
        return RedisAnswers.leasedFrom(lease.charge(), ticks(lease.charge()), reply, 0);
    }

    /** Passes leases to their requests, if the script took some. */
    private void grant(List<Charge> charges, List<LeaseRequest> leases, ScriptReply reply) {
        for (int i = 0; i < charges.size(); i++) {
            LeaseRequest lease = LeaseRequest.find(leases, charges.get(i));
            if (lease != null && reply.leased(i) > 0) {
                lease.grant(RedisAnswers.grant(lease.charge(), ticks(lease.charge()), reply, i));
            }
        }
    }
}
