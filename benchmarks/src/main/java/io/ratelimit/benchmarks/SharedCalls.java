package io.ratelimit.benchmarks;

import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.async.RedisAsyncCommands;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The least that calls of a script for several keys cost: the thread of the connection sends the keys that have come since it
 * sent the last ones. The script returns a number for each key.
 */
final class SharedCalls {

    private static final int MAX_KEYS = 32;

    private final RedisAsyncCommands<String, byte[]> redis;
    private final Executor sender;
    private final String sha;
    private final byte[][] arguments;
    private final Queue<Call> waiting = new ConcurrentLinkedQueue<>();
    private final AtomicBoolean scheduled = new AtomicBoolean();

    /** The call for one key. */
    private static final class Call extends CompletableFuture<Long> {

        private final String key;

        Call(String key) {
            this.key = key;
        }
    }

    /** @param sender the thread of the connection */
    SharedCalls(RedisAsyncCommands<String, byte[]> redis, Executor sender, String sha, byte[]... arguments) {
        this.redis = redis;
        this.sender = sender;
        this.sha = sha;
        this.arguments = arguments;
    }

    /** Starts the call for a key. */
    CompletableFuture<Long> start(String key) {
        Call call = new Call(key);
        waiting.add(call);
        if (scheduled.compareAndSet(false, true)) {
            sender.execute(this::sendWaiting);
        }
        return call;
    }

    private void sendWaiting() {
        scheduled.set(false);
        List<Call> calls = next();
        while (!calls.isEmpty()) {
            send(calls);
            calls = next();
        }
    }

    private List<Call> next() {
        List<Call> calls = new ArrayList<>();
        for (Call call = waiting.poll(); call != null; call = calls.size() < MAX_KEYS ? waiting.poll() : null) {
            calls.add(call);
        }
        return calls;
    }

    private void send(List<Call> calls) {
        String[] keys = calls.stream().map(call -> call.key).toArray(String[]::new);
        redis.<List<Long>>evalsha(sha, ScriptOutputType.MULTI, keys, arguments).whenComplete((replies, failure) -> {
            for (int i = 0; i < keys.length; i++) {
                if (failure == null) {
                    calls.get(i).complete(replies.get(i));
                } else {
                    calls.get(i).completeExceptionally(failure);
                }
            }
        });
    }
}
