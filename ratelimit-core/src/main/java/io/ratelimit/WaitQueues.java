package io.ratelimit;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy.Mode;
import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Lets calls wait, each in the queues of its policies: decides whether another call may join. A queue keeps no order, since
 * each call has taken its tokens ahead, and its turn is fixed by then. Thread-safe.
 */
final class WaitQueues {

    private final Throttlers throttlers;
    private final BucketStore store;
    private final TimeSource time;

    WaitQueues(Throttlers throttlers, BucketStore store, TimeSource time) {
        this.throttlers = throttlers;
        this.store = store;
        this.time = time;
    }

    /**
     * The queue of one policy: its length, and in shadow mode the turns of the calls that would wait. Thread-safe.
     *
     * <p>A queue in shadow mode holds no call: a call that would wait for tokens keeps a place until its turn would have
     * come. A denial for tokens is thus one that an enforced policy would have made; a call without a slot is denied at
     * once.
     */
    static final class Queue {

        private final AtomicInteger calls = new AtomicInteger();

        /** The moments at which the calls would proceed, the next one first. */
        private final PriorityQueue<Long> turns = new PriorityQueue<>((one, other) -> Long.signum(one - other));

        private int size() {
            return calls.get();
        }

        boolean tryJoin(int limit) {
            int before = calls.get();
            while (before < limit && !calls.compareAndSet(before, before + 1)) {
                before = calls.get();
            }
            return before < limit;
        }

        void leave() {
            calls.decrementAndGet();
        }

        private synchronized int turns(long now) {
            while (!turns.isEmpty() && turns.peek() - now <= 0) {
                turns.remove();
            }
            return turns.size();
        }

        private synchronized boolean addTurn(long now, long waitNanos, int limit) {
            return turns(now) < limit && turns.add(now + waitNanos);
        }
    }

    /** Returns how many calls of a policy wait, or are about to; for a policy in shadow mode, how many would wait now. */
    int size(ThrottlePolicy policy) {
        return policy.mode() == Mode.SHADOW
                ? queue(policy).turns(time.nanoTime())
                : queue(policy).size();
    }

    private Queue queue(ThrottlePolicy policy) {
        return throttlers.of(policy).queue();
    }

    private Queue queue(Answer answer) {
        return queue(answer.policy());
    }

    /** Returns a call that may wait. Close it after the wait, or if the call doesn't wait. */
    Call call() {
        return new Call();
    }

    /** The places of one call in the queues, at most one for a policy. */
    final class Call implements InFlightCalls.Taker, AutoCloseable {

        private final List<Queue> joined = new ArrayList<>();

        /** Takes the tokens at once; or ahead, if each bucket that is short has them in time and its queue has a place. */
        @Override
        public Decision take(List<Charge> charges, List<SharedSlots.Request> slots) {
            Decision atOnce = store.takeWithSlots(charges, slots);
            if (atOnce.outcome() != Outcome.DENIED) {
                return atOnce;
            }
            Decision refined = deny(atOnce, WaitQueues::isTooLong, Outcome.TOO_LONG);
            List<Answer> denials = refined.denials();
            if (!denials.stream().allMatch(WaitQueues::mayWait)) {
                return refined;
            }
            Answer full = join(denials);
            return full == null
                    ? takeAhead(charges, slots)
                    : deny(refined, answer -> answer == full, Outcome.QUEUE_FULL);
        }

        @Override
        public boolean mayWait() {
            return true;
        }

        /** Takes the tokens ahead, and also joins the queues of buckets that other calls have emptied meanwhile. */
        private Decision takeAhead(List<Charge> charges, List<SharedSlots.Request> slots) {
            Decision ahead = reserve(charges, slots);
            List<Answer> waiting = waiting(ahead);
            Answer full = join(waiting);
            if (full != null) {
                store.giveBack(ahead.answers());
                return deny(ahead, answer -> answer == full, Outcome.QUEUE_FULL);
            }
            leave(queue -> waiting.stream().noneMatch(answer -> queue == queue(answer)));
            return ahead;
        }

        /** Joins the queues, or returns the first answer whose queue is full. */
        private @Nullable Answer join(List<Answer> answers) {
            for (Answer answer : answers) {
                Queue queue = queue(answer);
                if (!joined.contains(queue)) {
                    if (!queue.tryJoin(answer.policy().queueLimit())) {
                        return answer;
                    }
                    joined.add(queue);
                }
            }
            return null;
        }

        /** Parks the thread until the tokens of an allowed call are due; gives them back if the wait fails. */
        void await(Decision decision) throws InterruptedException {
            if (decision.waitNanos() > 0) {
                try {
                    time.parkUntil(time.nanoTime() + decision.waitNanos());
                } catch (InterruptedException | RuntimeException | Error failed) {
                    try {
                        decision.release();
                    } finally {
                        store.giveBack(decision.taken());
                    }
                    throw failed;
                }
            }
        }

        @Override
        public void close() {
            leave(queue -> true);
        }

        private void leave(Predicate<Queue> queues) {
            for (int i = joined.size() - 1; i >= 0; i--) {
                if (queues.test(joined.get(i))) {
                    joined.remove(i).leave();
                }
            }
        }
    }

    /** Takes the slots, and then the tokens: those that were taken ahead may not come back, since later calls rely on it. */
    private Decision reserve(List<Charge> charges, List<SharedSlots.Request> slots) {
        for (SharedSlots.Request slot : slots) {
            slot.take();
            if (slot.isDenied()) {
                return SharedSlots.denial(charges);
            }
        }
        return store.reserve(charges);
    }

    static boolean anyMayWait(List<Charge> charges) {
        for (int i = 0; i < charges.size(); i++) {
            if (!charges.get(i).maxWait().isZero()) {
                return true;
            }
        }
        return false;
    }

    private static boolean isTooLong(Answer answer) {
        long maxWait = answer.charge().maxWait().toNanos();
        return !answer.allowed() && maxWait > 0 && answer.retryNanos() > maxWait;
    }

    private static boolean mayWait(Answer answer) {
        return !answer.charge().maxWait().isZero() && answer.outcome() == Outcome.DENIED;
    }

    private static List<Answer> waiting(Decision decision) {
        return decision.answers().stream()
                .filter(answer -> decision.allowed() && answer.waitNanos() > 0)
                .toList();
    }

    private static Decision deny(Decision decision, Predicate<Answer> answers, Outcome outcome) {
        return Decision.of(decision.answers().stream()
                .map(answer -> answers.test(answer) ? answer.asDenial(outcome) : answer)
                .toList());
    }

    /**
     * Takes the tokens of a policy in shadow mode at once; or ahead, if they come in time and the queue has a place. Holds no
     * call.
     */
    Decision takeInShadow(List<Charge> charges, List<SharedSlots.Request> slots) {
        Charge charge = charges.get(0);
        Decision atOnce = store.takeWithSlots(charges, slots);
        if (atOnce.outcome() != Outcome.DENIED || charge.maxWait().isZero()) {
            return atOnce;
        }
        if (isTooLong(atOnce.answers().get(0))) {
            return deny(atOnce, answer -> true, Outcome.TOO_LONG);
        }
        int limit = charge.policy().queueLimit();
        return queue(charge.policy()).turns(time.nanoTime()) < limit
                ? takeAheadInShadow(charges, slots, limit)
                : deny(atOnce, answer -> true, Outcome.QUEUE_FULL);
    }

    private Decision takeAheadInShadow(List<Charge> charges, List<SharedSlots.Request> slots, int limit) {
        Decision ahead = reserve(charges, slots);
        boolean waits = ahead.allowed() && ahead.waitNanos() > 0;
        if (waits && !queue(charges.get(0).policy()).addTurn(time.nanoTime(), ahead.waitNanos(), limit)) {
            store.giveBack(ahead.answers());
            return deny(ahead, answer -> true, Outcome.QUEUE_FULL);
        }
        return ahead;
    }
}
