package io.ratelimit.redis;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.redis.RedisScript.ScriptReply;
import io.ratelimit.redis.RedisScript.Started;
import io.ratelimit.remote.Deadline;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Takes from single buckets, with at most a few calls of Redis at a time for each bucket and cost. Takes that come
 * during these calls wait in a queue and share the next call. This call takes the cost as often as it fits, for the
 * takes that came first. A hot bucket therefore needs a few calls for each round trip, however many threads take from
 * it. Thread-safe.
 *
 * <p>A single call at a time would make the fewest calls. But each take that comes during a call would then wait for
 * two round trips instead of one, which halves the throughput of a few threads. With several calls the next one ends
 * soon.
 */
final class CombinedTakes {

    /** The most calls at a time for one bucket and cost. */
    static final int MAX_CALLS = 8;

    private final ScriptCalls calls;

    private final Function<Charge, Started> single;
    private final Map<Bucket, Queue> queues = new ConcurrentHashMap<>();

    /** @param single starts the call of a take that shares none with takes of the same bucket */
    CombinedTakes(ScriptCalls calls, Function<Charge, Started> single) {
        this.calls = calls;
        this.single = single;
    }

    private record Bucket(String policy, String key, long cost) {

        static Bucket of(Charge charge) {
            return new Bucket(charge.policy().name(), charge.key(), charge.cost());
        }
    }

    /** A take that waits for the reply that decides it. The thread of the take makes the answer. */
    private final class Take extends SharingTake {

        private final Charge charge;
        private final long end;

        /** The place of this take in the call that decided it. */
        private int place;

        /** @param end when this take is late, as {@link System#nanoTime} */
        Take(Charge charge, long end) {
            this.charge = charge;
            this.end = end;
        }

        void complete(int place, ScriptReply reply) {
            this.place = place;
            complete(reply);
        }

        /** Has later takes start calls of their own if those that this take waited for are lost. */
        @Override
        public boolean cancel(boolean mayInterrupt) {
            if (!isStarted()) {
                queues.computeIfPresent(Bucket.of(charge), (bucket, queue) -> queue.isOverdue() ? null : queue);
            }
            return super.cancel(mayInterrupt);
        }
    }

    private enum Added {
        TO_START,
        GATHERED,
        CLOSED
    }

    /** The takes of one bucket and cost that wait for the next call. */
    private static final class Queue {

        private final Bucket bucket;
        private final BucketSpec spec;
        private List<Take> gathered = new ArrayList<>(0);

        /** The calls under way; 0 if the queue is closed. */
        private int calls = 1;

        /** When all takes of the calls under way are late, and the calls cancelled, as {@link System#nanoTime}. */
        private long busyUntil;

        Queue(Bucket bucket, Take first) {
            this.bucket = bucket;
            this.spec = first.charge.spec();
            this.busyUntil = first.end;
        }

        private void busyWith(Take take) {
            busyUntil = take.end - busyUntil > 0 ? take.end : busyUntil;
        }

        /** Returns whether calls were lost: an error kept them from being started, or from ending. */
        synchronized boolean isOverdue() {
            return System.nanoTime() - busyUntil > 0;
        }

        /** Adds a take to the next call, unless the caller has to start a call for it or this queue is closed. */
        synchronized Added add(Take take) {
            if (calls == 0) {
                return Added.CLOSED;
            }
            if (calls < MAX_CALLS) {
                calls++;
                busyWith(take);
                return Added.TO_START;
            }
            gathered.add(take);
            return Added.GATHERED;
        }

        /**
         * Returns the takes of the next call, which replaces a call that has ended. Leaves out takes that have timed
         * out.
         *
         * @param undecided the takes of the ended call that it didn't decide
         * @return empty if there is no next call; the queue is closed if it was the last one
         */
        synchronized List<Take> next(List<Take> undecided) {
            calls--; // before what may fail for want of memory
            if (undecided.isEmpty() && gathered.isEmpty()) {
                return undecided;
            }
            List<Take> next = new ArrayList<>(undecided);
            next.addAll(gathered);
            next.removeIf(Take::isDone);
            next.forEach(this::busyWith);
            gathered = new ArrayList<>(0);
            calls += next.isEmpty() ? 0 : 1;
            return next;
        }

        synchronized boolean isClosed() {
            return calls == 0;
        }
    }

    /** @throws BackendException if the call failed, or its reply is late; the tokens may be taken then */
    Answer take(Charge charge, Deadline.Call call) {
        Take take = new Take(charge, System.nanoTime() + call.leftNanos());
        join(take);
        ScriptReply reply = RedisScript.result(take, call);
        return calls.answer(charge, take.place, reply);
    }

    private void join(Take take) {
        Bucket bucket = Bucket.of(take.charge);
        while (true) {
            Queue queue = queues.get(bucket);
            if (queue == null) {
                Queue created = new Queue(bucket, take);
                if (queues.putIfAbsent(bucket, created) == null) {
                    start(created, List.of(take));
                    return;
                }
            } else if (!queue.spec.equals(take.charge.spec())) {
                start(new Queue(bucket, take), List.of(take));
                return;
            } else {
                Added added = queue.add(take);
                if (added == Added.TO_START) {
                    start(queue, List.of(take));
                }
                if (added != Added.CLOSED) {
                    return;
                }
                queues.remove(bucket, queue); // in case the thread that closed it failed before
            }
        }
    }

    private void start(Queue queue, List<Take> takes) {
        try {
            Charge charge = takes.get(0).charge;
            await(queue, takes, takes.size() == 1 ? single.apply(charge) : calls.startTakes(charge, takes.size()));
        } catch (RuntimeException | Error failed) {
            proceed(queue, List.of());
            takes.forEach(take -> take.completeExceptionally(failed));
        }
    }

    private void await(Queue queue, List<Take> takes, Started call) {
        SharingTake.share(takes, call);
        call.whenComplete((reply, failure) -> completed(queue, takes, reply, failure));
    }

    private void completed(Queue queue, List<Take> takes, ScriptReply reply, @Nullable Throwable failure) {
        int decided = takes.size();
        try {
            decided = failure == null ? reply.decided(decided) : decided;
        } catch (RuntimeException | Error failed) {
            failure = failed;
        }
        proceed(queue, decided == takes.size() ? List.of() : takes.subList(decided, takes.size()));
        for (int i = 0; i < decided; i++) {
            if (failure == null) {
                takes.get(i).complete(i, reply);
            } else {
                takes.get(i).completeExceptionally(failure);
            }
        }
    }

    /** Starts the next call of a queue; removes the queue if it was closed. */
    private void proceed(Queue queue, List<Take> undecided) {
        List<Take> next = queue.next(undecided);
        if (!next.isEmpty()) {
            start(queue, next);
        } else if (queue.isClosed()) {
            queues.remove(queue.bucket, queue);
        }
    }
}
