package io.ratelimit;

import io.ratelimit.Decision.Outcome;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What policies in shadow mode say to calls that may wait, so that a no is one that the call would have got. Nobody is
 * kept: who would wait holds a place in line until his moment would have come. Thread-safe.
 */
final class ShadowLines {

    private final BucketStore store;
    private final TimeSource time;
    private final Map<String, Line> lines = new ConcurrentHashMap<>();

    ShadowLines(BucketStore store, TimeSource time) {
        this.store = store;
        this.time = time;
    }

    /** How many calls of a policy would wait now. */
    int size(ThrottlePolicy policy) {
        return line(policy).size(time.nanoTime());
    }

    /** Takes at once; or ahead, if the tokens will come soon enough and there is room in the line. */
    Decision take(Charge charge) {
        List<Charge> one = List.of(charge);
        Decision atOnce = store.take(one);
        if (atOnce.outcome() != Outcome.DENIED || charge.maxWait().isZero()) {
            return atOnce;
        }
        if (WaitingLines.isTooLong(atOnce.answers().get(0))) {
            return refused(atOnce, Outcome.TOO_LONG);
        }
        int limit = charge.policy().waiting().queueLimit();
        return size(charge.policy()) < limit ? takeAhead(one, limit) : refused(atOnce, Outcome.QUEUE_FULL);
    }

    private Decision takeAhead(List<Charge> one, int limit) {
        Decision ahead = store.reserve(one);
        boolean waits = ahead.allowed() && ahead.waitNanos() > 0;
        if (waits && !line(one.get(0).policy()).join(time.nanoTime(), ahead.waitNanos(), limit)) {
            store.giveBack(ahead.answers());
            return refused(ahead, Outcome.QUEUE_FULL);
        }
        return ahead;
    }

    private static Decision refused(Decision decision, Outcome outcome) {
        return WaitingLines.refused(decision, answer -> true, outcome);
    }

    private Line line(ThrottlePolicy policy) {
        return lines.computeIfAbsent(policy.name(), name -> new Line());
    }

    /** The moments of those who would wait, the next one first. */
    private static final class Line {

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
