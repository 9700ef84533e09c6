package io.ratelimit;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The calls that wait, policy by policy: how many there are, and whether another may. Their order is that of their
 * tokens, which they have already. Thread-safe.
 */
final class WaitingLines {

    private final BucketStore store;
    private final TimeSource time;
    private final Map<String, AtomicInteger> lines = new ConcurrentHashMap<>();

    WaitingLines(BucketStore store, TimeSource time) {
        this.store = store;
        this.time = time;
    }

    /** How many calls of a policy wait, or are about to. */
    int size(ThrottlePolicy policy) {
        return line(policy.name()).get();
    }

    private AtomicInteger line(String policy) {
        return lines.computeIfAbsent(policy, name -> new AtomicInteger());
    }

    /** A call that may wait. To be closed when it has waited or won't. */
    Call call() {
        return new Call();
    }

    /** One call's places in line, at most one for a policy. */
    final class Call implements AutoCloseable {

        private final List<String> joined = new ArrayList<>();

        /**
         * Takes at once; or ahead, where all that are short will have the tokens soon enough and there is room in their
         * lines.
         */
        Decision take(List<Charge> charges) {
            Decision atOnce = store.take(charges);
            if (atOnce.outcome() != Outcome.DENIED) {
                return atOnce;
            }
            Decision refined = refused(atOnce, WaitingLines::isTooLong, Outcome.TOO_LONG);
            List<Answer> violations = refined.violations();
            if (!violations.stream().allMatch(WaitingLines::mayWait)) {
                return refined;
            }
            Answer full = join(violations);
            return full == null ? takeAhead(charges) : refused(refined, full::equals, Outcome.QUEUE_FULL);
        }

        /** Who waits joined before, but where tokens were there then and others took them meanwhile. */
        private Decision takeAhead(List<Charge> charges) {
            Decision ahead = store.reserve(charges);
            List<Answer> waiting = waiting(ahead);
            Answer full = join(waiting);
            if (full != null) {
                store.giveBack(ahead.answers());
                return refused(ahead, full::equals, Outcome.QUEUE_FULL);
            }
            leave(policy -> waiting.stream().noneMatch(answer -> policy.equals(name(answer))));
            return ahead;
        }

        /** Joins the lines, or returns the first that is full. */
        private @Nullable Answer join(List<Answer> answers) {
            for (Answer answer : answers) {
                if (!joined.contains(name(answer))) {
                    if (!hasRoom(answer.policy())) {
                        return answer;
                    }
                    joined.add(name(answer));
                }
            }
            return null;
        }

        /** Holds the calling thread until the tokens of an allowed call are due; gives them back if it is interrupted. */
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

        private void leave(Predicate<String> which) {
            joined.stream().filter(which).forEach(policy -> line(policy).decrementAndGet());
            joined.removeIf(which);
        }
    }

    private boolean hasRoom(ThrottlePolicy policy) {
        AtomicInteger line = line(policy.name());
        int limit = policy.waiting().queueLimit();
        int before = line.get();
        while (before < limit && !line.compareAndSet(before, before + 1)) {
            before = line.get();
        }
        return before < limit;
    }

    private static String name(Answer answer) {
        return answer.policy().name();
    }

    /** Whether any of the charges may wait at all. */
    static boolean anyMayWait(List<Charge> charges) {
        for (int i = 0; i < charges.size(); i++) {
            if (!charges.get(i).maxWait().isZero()) {
                return true;
            }
        }
        return false;
    }

    static boolean isTooLong(Answer answer) {
        long maxWait = answer.charge().maxWait().toNanos();
        return !answer.allowed() && maxWait > 0 && answer.decision().retryNanos() > maxWait;
    }

    private static boolean mayWait(Answer answer) {
        return !answer.charge().maxWait().isZero() && answer.decision().outcome() == Outcome.DENIED;
    }

    private static List<Answer> waiting(Decision decision) {
        return decision.answers().stream()
                .filter(answer -> decision.allowed() && answer.decision().waitNanos() > 0)
                .toList();
    }

    static Decision refused(Decision decision, Predicate<Answer> which, Outcome outcome) {
        return Decision.of(decision.answers().stream()
                .map(answer -> which.test(answer) ? answer.as(outcome) : answer)
                .toList());
    }
}
