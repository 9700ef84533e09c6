package io.ratelimit.redis;

import io.lettuce.core.RedisNoScriptException;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.failover.Deadline;
import io.ratelimit.redis.RedisScript.Reply;
import io.ratelimit.redis.RedisScript.Running;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Takes from single buckets, of which there are at most a few calls of Redis at a time for each bucket and cost. Takes that
 * come during these calls gather, and share the next call: it takes the cost as often as it fits, and the takes that came first
 * get it. So a hot bucket needs a few calls for each round trip, however many threads take from it. Thread-safe.
 *
 * <p>One call at a time would be fewest. But each take that comes during a call would then wait for two round trips in place
 * of one, which halves the throughput of a few threads. With several calls the next one ends soon.
 */
final class CombinedTakes {

    /** The most calls at a time for one bucket and cost. */
    static final int MAX_CALLS = 8;

    private final Calls calls;
    private final Map<Bucket, Line> lines = new ConcurrentHashMap<>();

    /** Script calls that takes of the same cost from the same bucket share. */
    interface Calls {

        /** Starts a call that takes the cost of a charge so many times, or as often as it fits. */
        Running start(Charge charge, int times);

        /** Starts a call again, with the text of the script. */
        Running startWithText(Running call);

        /** Returns how many takes of a call its reply decides, from the first on. */
        int decided(int takes, Reply reply);

        /** Returns the answer of the take at a place of a call, as if the takes had been made one after another. */
        Answer answer(Charge charge, int place, Reply reply);
    }

    CombinedTakes(Calls calls) {
        this.calls = calls;
    }

    private record Bucket(String policy, String key, long cost) {

        static Bucket of(Charge charge) {
            return new Bucket(charge.policy().name(), charge.key(), charge.cost());
        }
    }

    /** A take that waits for the reply that decides it. The thread of the take makes the answer. */
    private static final class Take extends CompletableFuture<Reply> {

        private final Charge charge;
        private volatile @Nullable Batch batch;
        /** The place in the call that decided. */
        private int place;

        Take(Charge charge) {
            this.charge = charge;
        }

        /** Returns when the call was written to the connection, as {@link System#nanoTime}; 0 if it wasn't yet. */
        long sentAt() {
            Batch shared = batch;
            return shared == null ? 0 : shared.call.sent().sentAt();
        }

        void complete(int place, Reply reply) {
            this.place = place;
            complete(reply);
        }

        /** Cancels the call if no other take waits for it. */
        void abandon() {
            Batch shared = batch;
            if (shared != null && shared.takes.stream().allMatch(Take::isDone)) {
                shared.call.reply().cancel(true);
            }
        }
    }

    /** The takes of one call. */
    private record Batch(List<Take> takes, Running call) {}

    private enum Added {
        TO_START,
        GATHERED,
        CLOSED
    }

    /** The takes of one bucket that gather during calls. */
    private static final class Line {

        private final BucketSpec spec;
        private List<Take> gathered = new ArrayList<>(0);
        /** The calls under way; 0 if the line is closed. */
        private int calls = 1;

        Line(BucketSpec spec) {
            this.spec = spec;
        }

        /** Adds a take, to the next call or to one that the caller has to start. */
        synchronized Added add(Take take) {
            if (calls == 0) {
                return Added.CLOSED;
            }
            if (calls < MAX_CALLS) {
                calls++;
                return Added.TO_START;
            }
            gathered.add(take);
            return Added.GATHERED;
        }

        /** Returns the takes of the next call, in place of one that has ended. A take that is late by now is left out. */
        synchronized List<Take> next(List<Take> undecided) {
            if (undecided.isEmpty() && gathered.isEmpty()) {
                calls--;
                return undecided;
            }
            List<Take> next = new ArrayList<>(undecided);
            next.addAll(gathered);
            next.removeIf(Take::isDone);
            gathered = new ArrayList<>(0);
            calls -= next.isEmpty() ? 1 : 0;
            return next;
        }

        synchronized boolean isClosed() {
            return calls == 0;
        }
    }

    /**
     * Takes a charge at once.
     *
     * @throws BackendException if the call failed, or its reply is late
     */
    Answer take(Charge charge, Deadline.Call call) {
        Take take = new Take(charge);
        join(take);
        try {
            Reply reply = call.await(take, take::sentAt);
            return calls.answer(charge, take.place, reply);
        } catch (BackendException failed) {
            take.abandon();
            throw failed;
        }
    }

    private void join(Take take) {
        Bucket bucket = Bucket.of(take.charge);
        while (true) {
            Line line = lines.get(bucket);
            if (line == null) {
                Line own = new Line(take.charge.spec());
                if (lines.putIfAbsent(bucket, own) == null) {
                    start(own, List.of(take));
                    return;
                }
            } else if (!line.spec.equals(take.charge.spec())) {
                start(new Line(take.charge.spec()), List.of(take));
                return;
            } else {
                Added added = line.add(take);
                if (added == Added.TO_START) {
                    start(line, List.of(take));
                }
                if (added != Added.CLOSED) {
                    return;
                }
            }
        }
    }

    private void start(Line line, List<Take> takes) {
        try {
            await(line, takes, calls.start(takes.get(0).charge, takes.size()));
        } catch (RuntimeException | Error failed) {
            proceed(line, takes, List.of());
            takes.forEach(take -> take.completeExceptionally(failed));
        }
    }

    private void await(Line line, List<Take> takes, Running call) {
        Batch batch = new Batch(takes, call);
        for (Take take : takes) {
            take.batch = batch;
        }
        call.reply().whenComplete((reply, failure) -> completed(line, batch, reply, failure));
    }

    private void completed(Line line, Batch batch, Reply reply, @Nullable Throwable failure) {
        List<Take> takes = batch.takes;
        int decided = takes.size();
        try {
            if (failure instanceof RedisNoScriptException) {
                await(line, takes, calls.startWithText(batch.call));
                return;
            }
            decided = failure == null ? calls.decided(decided, reply) : decided;
        } catch (RuntimeException failed) {
            failure = failed;
        }
        proceed(line, takes, takes.subList(decided, takes.size()));
        for (int i = 0; i < decided; i++) {
            if (failure == null) {
                takes.get(i).complete(i, reply);
            } else {
                takes.get(i).completeExceptionally(failure);
            }
        }
    }

    /** Starts the next call of a line, or ends the line. */
    private void proceed(Line line, List<Take> takes, List<Take> undecided) {
        List<Take> next = line.next(undecided);
        if (!next.isEmpty()) {
            start(line, next);
        } else if (line.isClosed()) {
            lines.remove(Bucket.of(takes.get(0).charge), line);
        }
    }
}
