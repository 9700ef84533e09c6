package io.ratelimit.redis;

import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BackendException;
import io.ratelimit.CalendarClock;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.RedisAnswers.ScriptReceipt;
import io.ratelimit.redis.RedisBucketStore.TimedArguments;
import io.ratelimit.remote.Deadline;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
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

    static final String RESOURCE = "bucket.lua";

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

    static byte[] read(String resource) {
        try (InputStream in = RedisScript.class.getResourceAsStream(resource)) {
            return Objects.requireNonNull(in, resource).readAllBytes();
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

        /** Returns whether a call took the cost only once, as from a bucket with promises. It decides only its first take. */
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

    /** The arguments of the script for one bucket: numbers of eight bytes each, and then the name of the spec. */
    static final class ScriptArguments {

        /** The price of a cost that never fits: no bucket has so many ticks. */
        private static final long NEVER = RedisTickScale.MAX_TICKS + 1;

        /** The first number of the arguments for a bucket with calendar refill. */
        private static final double CALENDAR = -1;

        /** The place of the wait: behind the seven numbers of the calendar and four others. */
        private static final int WAIT_WITH_CALENDAR = 11 * Double.BYTES;

        /** The step in the arguments of a give without a receipt. */
        private static final long NOT_RECORDED = -1;

        /** The kept tokens in the arguments of a give, if the bucket owes the tokens instead. */
        private static final long OWED = -1;

        private ScriptArguments() {}

        /**
         * Returns the arguments to take tokens, or to look at the bucket.
         *
         * @param waitMicros the microseconds that the call may wait; below zero, the ticks that it has to leave
         */
        static byte[] toTake(RedisTickScale ticks, long cost, long waitMicros) {
            return of(ticks, ticks.perStep(), ticks.stepMicros(), ticks.full(), price(ticks, cost), waitMicros);
        }

        /**
         * Returns the arguments to take tokens ahead of their use.
         *
         * @param cost the tokens of the call; 0 if no call needs any
         * @param micros the time for which the tokens are leased; 0 to take the cost several times at once
         * @param maxTokens the most tokens to take
         */
        static byte[] toLease(RedisTickScale ticks, long cost, long micros, long maxTokens) {
            return toLease(ticks, cost, 0, micros, maxTokens);
        }

        /** @param waitMicros as for {@link #toTake} */
        static byte[] toLease(RedisTickScale ticks, long cost, long waitMicros, long micros, long maxTokens) {
            long max = Math.min(maxTokens, RedisTickScale.MAX_TICKS / ticks.perToken()) * ticks.perToken();
            return of(
                    ticks,
                    ticks.perStep(),
                    ticks.stepMicros(),
                    ticks.full(),
                    price(ticks, cost),
                    waitMicros,
                    micros,
                    max);
        }

        private static long price(RedisTickScale ticks, long cost) {
            return ticks.fits(cost) ? ticks.price(cost) : NEVER;
        }

        /**
         * Returns the arguments to give tokens back.
         *
         * @param kept the tokens of the same take that are not given back
         */
        static byte[] toGiveBack(RedisTickScale ticks, long tokens, long kept, @Nullable ScriptReceipt receipt) {
            return receipt == null
                    ? of(ticks, tokens, NOT_RECORDED, 0, 0, kept, 0)
                    : of(ticks, tokens, receipt.step(), receipt.rest(), receipt.before(), kept, receipt.begun());
        }

        /** Returns the arguments to take tokens even if the bucket has too few. */
        static byte[] toOwe(RedisTickScale ticks, long tokens) {
            return of(ticks, tokens, NOT_RECORDED, 0, 0, OWED, 0);
        }

        /**
         * Returns arguments preceded by the periods of a calendar around the server's time, from which the script computes the
         * time of the calendar.
         */
        static byte[] withCalendar(CalendarClock calendar, long serverMicros, byte[] arguments) {
            ByteBuffer bytes = ByteBuffer.allocate(7 * Double.BYTES + arguments.length);
            bytes.putDouble(CALENDAR).putDouble(calendar.periodMicros());
            for (long number : calendar.around(serverMicros)) {
                bytes.putDouble(number);
            }
            return bytes.put(arguments).array();
        }

        /**
         * Sets the wait in the arguments of a take with a calendar to the time that the calendar's clock has at the end of the
         * wait, less its time now. This clock is faster than the server's, so a true wait would end before its batches come.
         *
         * @param micros the server's time in microseconds
         */
        static void setWait(byte[] arguments, CalendarClock calendar, long micros) {
            ByteBuffer bytes = ByteBuffer.wrap(arguments);
            long wait = (long) bytes.getDouble(WAIT_WITH_CALENDAR);
            if (wait > 0) {
                bytes.putDouble(WAIT_WITH_CALENDAR, calendar.at(micros + wait) - calendar.at(micros));
            }
        }

        private static byte[] of(RedisTickScale ticks, long... numbers) {
            byte[] name = ticks.name().getBytes(StandardCharsets.US_ASCII);
            ByteBuffer bytes = ByteBuffer.allocate(numbers.length * Double.BYTES + name.length);
            for (long number : numbers) {
                bytes.putDouble(number);
            }
            return bytes.put(name).array();
        }
    }
}
