package io.ratelimit;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;

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

    /**
     * Takes at once; or ahead, where all that are short will have the tokens soon enough and there is room in their
     * lines. Where the call is allowed, {@link #await} must follow.
     */
    Decision take(List<Charge> charges) {
        Decision atOnce = store.take(charges);
        if (atOnce.outcome() != Outcome.DENIED) {
            return atOnce;
        }
        Decision refined = refused(atOnce, WaitingLines::isTooLong, Outcome.TOO_LONG);
        List<Answer> violations = refined.violations();
        return violations.stream().allMatch(WaitingLines::mayWait) ? takeInLine(charges, refined, violations) : refined;
    }

    private static boolean isTooLong(Answer answer) {
        long maxWait = answer.charge().maxWait().toNanos();
        return maxWait > 0 && answer.decision().retryNanos() > maxWait;
    }

    private static boolean mayWait(Answer answer) {
        return !answer.charge().maxWait().isZero() && answer.decision().outcome() == Outcome.DENIED;
    }

    private Decision takeInLine(List<Charge> charges, Decision atOnce, List<Answer> violations) {
        List<Answer> joined = new ArrayList<>();
        for (Answer answer : violations) {
            if (!join(answer.policy())) {
                joined.forEach(this::leave);
                return refused(atOnce, other -> other == answer, Outcome.QUEUE_FULL);
            }
            joined.add(answer);
        }
        try {
            Decision ahead = store.reserve(charges);
            waiting(ahead).forEach(answer -> standInFor(answer, joined));
            return ahead;
        } finally {
            joined.forEach(this::leave);
        }
    }

    /** One who waits in a line has joined it, or came into it because others took meanwhile. */
    private void standInFor(Answer waiting, List<Answer> joined) {
        if (!joined.removeIf(answer -> answer.charge() == waiting.charge())) {
            line(waiting.policy()).incrementAndGet();
        }
    }

    private static Decision refused(Decision decision, Predicate<Answer> which, Outcome outcome) {
        return Decision.of(decision.answers().stream()
                .map(answer -> !answer.allowed() && which.test(answer) ? answer.as(outcome) : answer)
                .toList());
    }

    /** Holds the calling thread until the tokens of an allowed call are due; gives them back if it is interrupted. */
    void await(Decision decision) throws InterruptedException {
        List<Answer> waiting = waiting(decision);
        if (!waiting.isEmpty()) {
            try {
                time.parkUntil(time.nanoTime() + decision.waitNanos());
            } catch (InterruptedException interrupted) {
                store.giveBack(decision.answers());
                throw interrupted;
            } finally {
                waiting.forEach(this::leave);
            }
        }
    }

    private static List<Answer> waiting(Decision decision) {
        return decision.waitNanos() == 0
                ? List.of()
                : decision.answers().stream()
                        .filter(answer -> answer.decision().waitNanos() > 0)
                        .toList();
    }

    private boolean join(ThrottlePolicy policy) {
        AtomicInteger line = line(policy);
        int before = line.get();
        while (before < policy.waiting().queueLimit()) {
            if (line.compareAndSet(before, before + 1)) {
                return true;
            }
            before = line.get();
        }
        return false;
    }

    private void leave(Answer answer) {
        line(answer.policy()).decrementAndGet();
    }

    /** How many calls of a policy wait. */
    int size(ThrottlePolicy policy) {
        return line(policy).get();
    }

    private AtomicInteger line(ThrottlePolicy policy) {
        return lines.computeIfAbsent(policy.name(), name -> new AtomicInteger());
    }
}
