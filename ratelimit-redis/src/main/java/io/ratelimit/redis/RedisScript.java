package io.ratelimit.redis;

import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BackendException;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.RedisBucketStore.TimedArguments;
import io.ratelimit.remote.Deadline;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The script that counts in Redis. It is called by its SHA, or by its text if the server hasn't loaded it. A call that needs
 * the periods of a calendar passes those around the server's time as it is estimated, and is repeated with the right ones if
 * the server's time is outside. Thread-safe.
 */
final class RedisScript {

    private static final String RESOURCE = "bucket.lua";

    /**
     * How often a call is repeated: once with the text, and with other periods. The periods around the server's time contain
     * it, unless the server's clock is set by days between two calls.
     */
    private static final int MAX_REPEATS = 4;

    private final Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis;
    private final TimeSource clock;
    private final byte[] text = read();
    private final byte[] sha = sha1(text);

    /** The server's time as the last reply showed it, less the clock's nanoseconds at that moment. */
    private volatile long serverAhead;

    /** @param clock this machine's: its wall time is the first guess of the server's */
    RedisScript(Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis, TimeSource clock) {
        this.redis = redis;
        this.clock = clock;
        this.serverAhead = clock.wallNanos() - clock.nanoTime();
    }

    /** Returns the server's time in microseconds, as it is estimated. */
    private long serverMicros() {
        return (clock.nanoTime() + serverAhead) / 1_000;
    }

    /** Records the time that a reply showed. */
    void setServerMicros(long micros) {
        serverAhead = 1_000 * micros - clock.nanoTime();
    }

    /** Writes the keys and the arguments of a call. */
    interface Arguments {

        /** @param serverMicros the server's time in microseconds, which the periods of calendars are to contain */
        void addTo(CommandArgs<byte[], byte[]> command, long serverMicros);
    }

    /**
     * A script call that was started, and its reply. A call that the script couldn't make is repeated, also if no thread waits
     * for the reply.
     */
    final class Running extends CompletableFuture<ScriptReply> {

        private final Arguments arguments;
        private int repeats;
        private volatile @Nullable Command command;

        /** The nanoseconds for which the server had the call before it was repeated. */
        private volatile long servedNanos;

        private Running(Arguments arguments) {
            this.arguments = arguments;
        }

        /**
         * Returns when the call was written to the connection, as {@link System#nanoTime}, or before if it was repeated; 0
         * if it hasn't been written.
         */
        long sentAt() {
            Command sent = command;
            long sentAt = sent == null ? 0 : sent.arguments.sentAt();
            return sentAt == 0 ? 0 : sentAt - servedNanos;
        }

        private void send(CommandType type, byte[] script, long serverMicros) {
            TimedArguments all = new TimedArguments();
            all.add(script);
            arguments.addTo(all, serverMicros);
            CompletableFuture<ScriptReply> reply =
                    redis.get().dispatch(type, new ScriptReply.Output(), all).toCompletableFuture();
            command = new Command(all, reply);
            reply.whenComplete(this::replied);
        }

        private void replied(ScriptReply reply, @Nullable Throwable failure) {
            try {
                boolean toRepeat = repeats < MAX_REPEATS && !isCancelled();
                if (failure instanceof RedisNoScriptException && toRepeat) {
                    repeat(CommandType.EVAL, text, serverMicros());
                } else if (failure != null) {
                    completeExceptionally(failure);
                } else if (!reply.hasOtherPeriods()) {
                    complete(reply);
                } else if (toRepeat) {
                    setServerMicros(reply.now(0));
                    repeat(CommandType.EVALSHA, sha, reply.now(0));
                } else {
                    completeExceptionally(new BackendException("the clock of Redis was set by days again and again"));
                }
            } catch (RuntimeException | Error failed) {
                completeExceptionally(failed);
            }
        }

        private void repeat(CommandType type, byte[] script, long serverMicros) {
            repeats++;
            servedNanos = System.nanoTime() - sentAt();
            send(type, script, serverMicros);
        }

        /** Cancels the command as well, so that it isn't written any more. */
        @Override
        public boolean cancel(boolean mayInterrupt) {
            boolean cancelled = super.cancel(mayInterrupt);
            Command sent = command;
            if (sent != null) {
                sent.reply.cancel(mayInterrupt);
            }
            return cancelled;
        }
    }

    /** The command of a call, and its reply. */
    private record Command(TimedArguments arguments, CompletableFuture<ScriptReply> reply) {}

    /** Starts a call. The method {@link #result} waits for the reply. */
    Running start(Arguments arguments) {
        Running call = new Running(arguments);
        call.send(CommandType.EVALSHA, sha, serverMicros());
        return call;
    }

    /**
     * Waits for the reply to a call.
     *
     * @throws BackendException if the call failed, or its reply is late
     */
    static ScriptReply result(Running script, Deadline.Call call) {
        return call.await(script, script::sentAt);
    }

    private static byte[] read() {
        try (InputStream in = RedisScript.class.getResourceAsStream(RESOURCE)) {
            return Objects.requireNonNull(in, RESOURCE).readAllBytes();
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    private static byte[] sha1(byte[] text) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-1").digest(text);
            return HexFormat.of().formatHex(hash).getBytes(StandardCharsets.US_ASCII);
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
