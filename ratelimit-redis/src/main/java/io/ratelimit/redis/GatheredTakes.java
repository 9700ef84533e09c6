package io.ratelimit.redis;

import io.lettuce.core.RedisCommandExecutionException;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Charge;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.redis.RedisBucketStore.Timing;
import io.ratelimit.redis.RedisScript.Running;
import io.ratelimit.redis.RedisScript.ScriptReply;
import io.ratelimit.redis.RedisScript.Started;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Takes of any keys, which share a call of Redis if they come at the same time. The thread of the connection sends all that
 * have come since it sent the last ones. A take therefore waits for no reply to another one: while that thread has time, each
 * take has a call of its own, and the busier it is, the more takes share a call. Thread-safe.
 *
 * <p>A take is from one bucket or from several, all or nothing, and may request leases. The script makes each by itself. It
 * leaves out takes that need more than its shortest path, or whose buckets it can't read or write; each of them is made alone
 * afterwards. After an error reply all takes of the call are made alone, since Redis took nothing: the error may concern one
 * key, or a cluster or proxy rejects scripts with several keys. The next {@value #TAKES_ALONE} takes are alone too, so that
 * lasting errors cost few calls; on a cluster behind one address all later takes are. A proxy that replies with an error
 * although Redis ran the script has tokens taken twice, so that less is granted, not more.
 */
final class GatheredTakes {

    /** The buckets from which a call gathers no more takes, since Redis does nothing else during a call: some 0.2 ms. */
    static final int MAX_BUCKETS = 32;

    /** The takes that are made alone after an error reply to a shared call. */
    static final int TAKES_ALONE = 10_000;

    private final ScriptCalls calls;
    private final Supplier<Executor> sender;
    private final Queue<Take> waiting = new ConcurrentLinkedQueue<>();

    /** Whether the sender will look at the waiting takes. */
    private final AtomicBoolean scheduled = new AtomicBoolean();

    /** The takes that are still to be made alone after an error reply. */
    private final AtomicInteger alone = new AtomicInteger();

    /** @param sender returns the thread of the connection */
    GatheredTakes(ScriptCalls calls, Supplier<Executor> sender) {
        this.calls = calls;
        this.sender = sender;
    }

    /** Charges that are taken at once, all or none, with the leases that are requested. */
    interface Takes {
        List<Charge> charges();

        List<LeaseRequest> leases();
    }

    /** A take, whose reply has its buckets alone. */
    private final class Take extends SharingTake implements Takes {

        private final List<Charge> charges;
        private final List<LeaseRequest> leases;

        Take(List<Charge> charges, List<LeaseRequest> leases) {
            this.charges = charges;
            this.leases = leases;
        }

        @Override
        public List<Charge> charges() {
            return charges;
        }

        @Override
        public List<LeaseRequest> leases() {
            return leases;
        }

        @Override
        public boolean cancel(boolean mayInterrupt) {
            if (!isStarted()) {
                scheduled.set(false); // the sender may have ended with its connection
            }
            return super.cancel(mayInterrupt);
        }

        void takeAlone() {
            if (isDone()) {
                return;
            }
            try {
                Running call = startAlone(charges, leases);
                share(List.of(this), call);
                call.whenComplete(this::ended);
            } catch (RuntimeException | Error failed) {
                completeExceptionally(failed);
            }
        }

        void ended(ScriptReply reply, @Nullable Throwable failure) {
            if (failure == null) {
                complete(reply);
            } else {
                completeExceptionally(failure);
            }
        }
    }

    private Running startAlone(List<Charge> charges, List<LeaseRequest> leases) {
        return calls.startTake(charges, leases, Timing.AT_ONCE);
    }

    private static boolean mayShare(Charge charge) {
        return charge.share() == null && charge.spec().refill() != Refill.CALENDAR;
    }

    Started start(List<Charge> charges, List<LeaseRequest> leases) {
        for (int i = 0; i < charges.size(); i++) {
            if (!mayShare(charges.get(i))) {
                return startAlone(charges, leases);
            }
        }
        if (alone.get() > 0 && alone.getAndDecrement() > 0) {
            return startAlone(charges, leases);
        }
        Take take = new Take(charges, leases);
        waiting.add(take);
        if (scheduled.compareAndSet(false, true)) {
            try {
                sender.get().execute(this::sendWaiting);
            } catch (RejectedExecutionException ended) {
                sendWaiting();
            } catch (RuntimeException | Error failed) {
                take.cancel(true);
                sendWaiting();
                throw failed;
            }
        }
        return take;
    }

    private void sendWaiting() {
        scheduled.set(false);
        List<Take> takes = next();
        while (!takes.isEmpty()) {
            send(takes);
            takes = next();
        }
    }

    /** Starts to make each of several takes by itself. The reply leaves out the buckets of those that are to be made alone. */
    static Running startEach(ScriptCalls calls, List<? extends Takes> several) {
        List<Charge> charges = new ArrayList<>(several.size());
        List<byte[]> arguments = new ArrayList<>(several.size());
        StringBuilder word = new StringBuilder("each");
        for (Takes takes : several) {
            for (int i = 0; i < takes.charges().size(); i++) {
                Charge charge = takes.charges().get(i);
                charges.add(charge);
                arguments.add(calls.toTake(charge, LeaseRequest.find(takes.leases(), charge)));
                word.append(i == 0 ? ' ' : '+');
            }
        }
        return calls.start((to, serverMicros) -> {
            to.add(charges.size());
            charges.forEach(charge -> to.addKey(calls.key(charge)));
            for (int i = 0; i < arguments.size(); i++) {
                to.add(ScriptArguments.each(arguments, i));
            }
            to.add(word.toString());
            calls.addTestTime(to);
        });
    }

    private List<Take> next() {
        List<Take> takes = new ArrayList<>();
        int buckets = 0;
        while (buckets < MAX_BUCKETS) {
            Take take = waiting.poll();
            if (take == null) {
                break;
            } else if (!take.isDone()) {
                takes.add(take);
                buckets += take.charges.size();
            }
        }
        return takes;
    }

    private void send(List<Take> takes) {
        if (takes.size() == 1) {
            takes.get(0).takeAlone();
            return;
        }
        try {
            Running call = startEach(calls, takes);
            SharingTake.share(takes, call);
            call.whenComplete((reply, failure) -> ended(takes, reply, failure));
        } catch (RuntimeException | Error failed) {
            takes.forEach(take -> take.completeExceptionally(failed));
        }
    }

    private void ended(List<Take> takes, ScriptReply reply, @Nullable Throwable failure) {
        if (failure instanceof RedisCommandExecutionException) {
            alone.set(RedisFailures.isCrossSlot(failure) ? Integer.MAX_VALUE : TAKES_ALONE);
            takes.forEach(Take::takeAlone);
            return;
        }
        int bucket = 0;
        for (Take take : takes) {
            if (failure != null) {
                take.completeExceptionally(failure);
            } else if (reply.has(bucket)) {
                take.complete(reply.part(bucket, take.charges.size()));
            } else {
                take.takeAlone();
            }
            bucket += take.charges.size();
        }
    }
}
