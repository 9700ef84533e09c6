package io.ratelimit;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The queues of waiting calls, one for each policy: their lengths, and whether another call may join. A queue keeps no
 * order, since each call has taken its tokens ahead, and its turn is fixed by then. Thread-safe.
 */
final class WaitQueues {

    private final BucketStore store;
    private final TimeSource time;
    private final Map<String, AtomicInteger> queues = new ConcurrentHashMap<>();

    WaitQueues(BucketStore store, TimeSource time) {
        this.store = store;
        this.time = time;
    }

    /** Returns how many calls of a policy wait, or are about to. */
    int size(ThrottlePolicy policy) {
        return queue(policy.name()).get();
    }

    private AtomicInteger queue(String policy) {
        return queues.computeIfAbsent(policy, name -> new AtomicInteger());
    }

    /** Returns a call that may wait. Close it after the wait, or if the call doesn't wait. */
    Call call() {
        return new Call();
    }

    /** The places of one call in the queues, at most one for a policy. */
    final class Call implements AutoCloseable {

        private final List<String> joined = new ArrayList<>();

        /** Takes the tokens at once; or ahead, if each bucket that is short has them in time and its queue has a place. */
        Decision take(List<Charge> charges) {
            Decision atOnce = store.take(charges);
            if (atOnce.outcome() != Outcome.DENIED) {
                return atOnce;
            }
            Decision refined = deny(atOnce, WaitQueues::isTooLong, Outcome.TOO_LONG);
            List<Answer> denials = refined.denials();
            if (!denials.stream().allMatch(WaitQueues::mayWait)) {
                return refined;
            }
            Answer full = join(denials);
            return full == null ? takeAhead(charges) : deny(refined, full::equals, Outcome.QUEUE_FULL);
        }

        /** Takes the tokens ahead, and also joins the queues of buckets that other calls have emptied meanwhile. */
        private Decision takeAhead(List<Charge> charges) {
            Decision ahead = store.reserve(charges);
            List<Answer> waiting = waiting(ahead);
            Answer full = join(waiting);
            if (full != null) {
                store.giveBack(ahead.answers());
                return deny(ahead, full::equals, Outcome.QUEUE_FULL);
            }
            leave(policy -> waiting.stream().noneMatch(answer -> policy.equals(name(answer))));
            return ahead;
        }

        /** Joins the queues, or returns the first answer whose queue is full. */
        private @Nullable Answer join(List<Answer> answers) {
            for (Answer answer : answers) {
                if (!joined.contains(name(answer))) {
                    if (!tryJoin(answer.policy())) {
                        return answer;
                    }
                    joined.add(name(answer));
                }
            }
            return null;
        }

        /** Parks the thread until the tokens of an allowed call are due; gives them back if it is interrupted. */
        void await(Decision decision) throws InterruptedException {
            if (decision.waitNanos() > 0) {
                try {
                    time.parkUntil(time.nanoTime() + decision.waitNanos());
                } catch (InterruptedException interrupted) {
                    store.giveBack(decision.taken());
                    throw interrupted;
                }
            }
        }

        @Override
        public void close() {
            leave(policy -> true);
        }

        private void leave(Predicate<String> policies) {
            joined.stream().filter(policies).forEach(policy -> queue(policy).decrementAndGet());
            joined.removeIf(policies);
        }
    }

    private boolean tryJoin(ThrottlePolicy policy) {
        AtomicInteger queue = queue(policy.name());
        int limit = policy.queueLimit();
        int before = queue.get();
        while (before < limit && !queue.compareAndSet(before, before + 1)) {
            before = queue.get();
        }
        return before < limit;
    }

    private static String name(Answer answer) {
        return answer.policy().name();
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
     * The queues of policies in shadow mode. They hold no call: a call that would wait keeps a place until its turn
     * would have come. A shadow denial is thus one that an enforced policy would have made. Thread-safe.
     */
    static final class Shadow {

        private final BucketStore store;
        private final TimeSource time;
        private final Map<String, Turns> queues = new ConcurrentHashMap<>();

        Shadow(BucketStore store, TimeSource time) {
            this.store = store;
            this.time = time;
        }

        /** Returns how many calls of a policy would wait now. */
        int size(ThrottlePolicy policy) {
            return queue(policy).size(time.nanoTime());
        }

        /** Takes the tokens at once; or ahead, if they come in time and the queue has a place. */
        Decision take(Charge charge) {
            List<Charge> charges = List.of(charge);
            Decision atOnce = store.take(charges);
            if (atOnce.outcome() != Outcome.DENIED || charge.maxWait().isZero()) {
                return atOnce;
            }
            if (isTooLong(atOnce.answers().get(0))) {
                return deny(atOnce, Outcome.TOO_LONG);
            }
            int limit = charge.policy().queueLimit();
            return size(charge.policy()) < limit ? takeAhead(charges, limit) : deny(atOnce, Outcome.QUEUE_FULL);
        }

        private Decision takeAhead(List<Charge> charges, int limit) {
            Decision ahead = store.reserve(charges);
            boolean waits = ahead.allowed() && ahead.waitNanos() > 0;
            if (waits && !queue(charges.get(0).policy()).join(time.nanoTime(), ahead.waitNanos(), limit)) {
                store.giveBack(ahead.answers());
                return deny(ahead, Outcome.QUEUE_FULL);
            }
            return ahead;
        }

        private static Decision deny(Decision decision, Outcome outcome) {
            return WaitQueues.deny(decision, answer -> true, outcome);
        }

        private Turns queue(ThrottlePolicy policy) {
            return queues.computeIfAbsent(policy.name(), name -> new Turns());
        }

        /** The moments at which the calls would proceed, the next one first. */
        private static final class Turns {

            private final PriorityQueue<Long> moments = new PriorityQueue<>((one, other) -> Long.signum(one - other));

            synchronized int size(long now) {
                while (!moments.isEmpty() && moments.peek() - now <= 0) {
                    moments.remove();
                }
                return moments.size();
            }

            synchronized boolean join(long now, long waitNanos, int limit) {
                return size(now) < limit && moments.add(now + waitNanos);
            }
        }
    }
}
