package io.ratelimit.redis;

import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BackendException;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.RedisBucketStore.TimedArguments;
import io.ratelimit.remote.Deadline;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The script that counts in Redis. It is called by its SHA, or by its text if the server hasn't loaded it. A call that needs
 * the periods of a calendar passes those around the server's time as it is estimated, and is repeated with the right ones if
 * the server's time is outside. Thread-safe.
 */
final class RedisScript {

    static final String RESOURCE = "bucket.lua";

    /** The comments on lines of their own. */
    private static final Pattern COMMENTS = Pattern.compile("--\\[\\[(?s:.*?)]]\\n|(?m:^) *--.*\\n");

    /**
     * How often a call is repeated: once with the text, and with other periods. The periods around the server's time contain
     * it, unless the server's clock is set by days between two calls.
     */
    private static final int MAX_REPEATS = 4;

    private final Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis;
    private final TimeSource clock;
    private final byte[] text;
    private final byte[] sha;

    /** The server's time as the last reply showed it, less the clock's nanoseconds at that moment. */
    private volatile long serverAhead;

    /** @param clock this machine's: its wall time is the first guess of the server's */
    RedisScript(Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis, TimeSource clock) {
        this(redis, clock, read(RESOURCE));
    }

    /** Creates a script that replies as the script for buckets does. */
    RedisScript(Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis, TimeSource clock, byte[] text) {
        this.text = text;
        this.sha = sha1(text).getBytes(StandardCharsets.US_ASCII);
        this.redis = redis;
        this.clock = clock;
        this.serverAhead = clock.wallNanos() - clock.nanoTime();
    }

    private long serverMicros() {
        return (clock.nanoTime() + serverAhead) / 1_000;
    }

    void setServerMicros(long micros) {
        serverAhead = 1_000 * micros - clock.nanoTime();
    }

    /** Writes the keys and the arguments of a call. */
    interface Arguments {

        /** @param serverMicros the server's time in microseconds, which the periods of calendars are to contain */
        void addTo(CommandArgs<byte[], byte[]> command, long serverMicros);
    }

    abstract static class Started extends CompletableFuture<ScriptReply> {

        /**
         * Returns when the call was written to the connection, as {@link System#nanoTime}, or before if it was repeated; 0
         * if it hasn't been written.
         */
        abstract long sentAt();
    }

    /**
     * A script call that was started, and its reply. A call that the script couldn't make is repeated, also if no thread waits
     * for the reply.
     */
    final class Running extends Started {

        private final Arguments arguments;
        private int repeats;
        private volatile @Nullable Command command;

        /** The nanoseconds for which the server had the call before it was repeated. */
        private volatile long servedNanos;

        private Running(Arguments arguments) {
            this.arguments = arguments;
        }

        @Override
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

    private record Command(TimedArguments arguments, CompletableFuture<ScriptReply> reply) {}

    Running start(Arguments arguments) {
        Running call = new Running(arguments);
        call.send(CommandType.EVALSHA, sha, serverMicros());
        return call;
    }

    /** @throws BackendException if the call failed, or its reply is late */
    static ScriptReply result(Started script, Deadline.Call call) {
        return call.await(script, script::sentAt);
    }

    /** Reads a script without its comments, since the first calls after a restart of the server send all of it. */
    static byte[] read(String resource) {
        try (InputStream in = RedisScript.class.getResourceAsStream(resource)) {
            String text = new String(Objects.requireNonNull(in, resource).readAllBytes(), StandardCharsets.UTF_8);
            return COMMENTS.matcher(text).replaceAll("").getBytes(StandardCharsets.UTF_8);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    static String sha1(byte[] text) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-1").digest(text));
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /**
     * The reply of the script: for each bucket numbers in the order in which {@code bucket.lua} returns them. A give returns
     * an empty reply. If the call is to be made with other periods, the reply is the server's time alone.
     */
    static final class ScriptReply {

        private static final int NUMBERS = 6;

        private long[] numbers = new long[NUMBERS];
        private boolean hasOtherPeriods;

        /** Returns whether there is a reply for a bucket, or for a lane or a register behind the buckets. */
        boolean has(int bucket) {
            return NUMBERS * bucket < numbers.length && now(bucket) != 0;
        }

        ScriptReply part(int first, int count) {
            ScriptReply reply = new ScriptReply();
            reply.numbers = Arrays.copyOfRange(numbers, NUMBERS * first, NUMBERS * (first + count));
            return reply;
        }

        /** Returns whether the script did nothing, since the server's time is outside the periods of a calendar. */
        boolean hasOtherPeriods() {
            return hasOtherPeriods;
        }

        /** Returns the time of a bucket in microseconds: the server's, or that of the bucket's calendar. */
        long now(int bucket) {
            return numbers[NUMBERS * bucket];
        }

        /** Returns the missing ticks of a bucket; below zero as the script returned them. */
        long missing(int bucket) {
            return numbers[NUMBERS * bucket + 1];
        }

        /** Returns the missing ticks of a bucket, also if it had too few tokens. */
        long lacking(int bucket) {
            long missing = missing(bucket);
            return missing < 0 ? -missing - 1 : missing;
        }

        /** Returns the name of the count of ticks given back to a bucket. */
        long begun(int bucket) {
            return numbers[NUMBERS * bucket + 2];
        }

        /** Returns the ticks that had been given back to a bucket, less those of leases: it may be below zero. */
        long returned(int bucket) {
            return numbers[NUMBERS * bucket + 3];
        }

        /** Returns the ticks that a lease took, with those of the price; 0 if at most the price was taken. */
        long leased(int bucket) {
            return numbers[NUMBERS * bucket + 4];
        }

        /** Returns how many of several takes from one bucket the reply decides, from the first on. */
        int decided(int takes) {
            return tookOnce() ? 1 : takes;
        }

        /** Returns whether a call took the cost only once, as from a bucket with an advance. It decides only its first take. */
        boolean tookOnce() {
            return missing(0) >= 0 && leased(0) == 0;
        }

        /** Returns the time of a bucket, as {@link #now}, or the later moment at which it stands still. */
        long at(int bucket) {
            return Math.max(numbers[NUMBERS * bucket + 5], now(bucket));
        }

        /** Reads a reply: one text, or an array of one text for each bucket. */
        static final class Output extends CommandOutput<byte[], byte[], ScriptReply> {

            private int first;

            Output() {
                super(ByteArrayCodec.INSTANCE, new ScriptReply());
            }

            @Override
            public void multi(int count) {
                output.numbers = new long[NUMBERS * Math.max(count, 0)];
            }

            @Override
            public void set(@Nullable ByteBuffer text) {
                if (text != null) {
                    int next = first;
                    first += NUMBERS;
                    while (next < first && text.hasRemaining() && !isSpec(text)) {
                        output.numbers[next++] = (long) text.getDouble();
                    }
                    output.hasOtherPeriods |= next == first - NUMBERS + 1;
                }
            }

            /**
             * Returns whether a spec follows, which begins with a digit, a byte from 0x30 to 0x39. No number does: the first byte
             * of 0 is 0, that of 1 and more at least 0x3F, and that of a negative number has the sign.
             */
            private static boolean isSpec(ByteBuffer text) {
                byte next = text.get(text.position());
                return next >= '0' && next <= '9';
            }
        }
    }
}
