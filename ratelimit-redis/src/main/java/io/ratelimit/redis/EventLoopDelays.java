package io.ratelimit.redis;

import io.lettuce.core.resource.NettyCustomizer;
import io.netty.channel.Channel;
import io.netty.util.concurrent.EventExecutor;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * The delays of the threads that send commands and read replies. If all processors are busy, or the process was stopped
 * (garbage collection, a suspended machine), a reply may be unread in the socket. A timeout then proves nothing about
 * Redis. Each thread records the time at a fixed rate; a gap is a delay. Thread-safe.
 *
 * <p>The threads may belong to the application, whose code may block one of them for good. While another thread is on time,
 * a thread that stands still for a second explains no timeouts: an outage of Redis would remain unnoticed.
 */
final class EventLoopDelays implements NettyCustomizer {

    private static final long STEP = Duration.ofMillis(20).toNanos();
    private static final long DELAYED = 2 * STEP;
    private static final long STUCK = Duration.ofSeconds(1).toNanos();

    private final Map<EventExecutor, Beat> beats = new ConcurrentHashMap<>();

    /** The thread of the latest connection. */
    private volatile Executor latest = Runnable::run;

    /** The last record of a thread, and the end of its last delay. Only this thread writes both. */
    private static final class Beat implements Runnable {

        private volatile long last = System.nanoTime();
        private volatile long delayedUntil = last - Duration.ofDays(1).toNanos();
        private final EventExecutor loop;
        private final Future<?> records;

        /** The open connections; changed within the map's lock. */
        private int channels;

        Beat(EventExecutor loop) {
            this.loop = loop;
            this.records = loop.scheduleAtFixedRate(this, 0, STEP, TimeUnit.NANOSECONDS);
        }

        @Override
        public void run() {
            long now = System.nanoTime();
            if (now - last > DELAYED) {
                delayedUntil = now;
            }
            last = now;
        }

        boolean wasDelayedSince(long moment) {
            return System.nanoTime() - last > DELAYED || delayedUntil - moment > 0;
        }

        boolean isStuck() {
            return System.nanoTime() - last > STUCK;
        }
    }

    @Override
    public void afterChannelInitialized(Channel channel) {
        EventExecutor loop = channel.eventLoop();
        latest = loop;
        Beat beat = beats.compute(loop, (same, known) -> {
            Beat counting = known != null ? known : new Beat(same);
            counting.channels++;
            return counting;
        });
        channel.closeFuture().addListener(closed -> close(beat));
    }

    /** Ends the records of a thread with its last connection. */
    private void close(Beat beat) {
        beats.computeIfPresent(beat.loop, (same, known) -> {
            if (known != beat || --beat.channels > 0) {
                return known;
            }
            beat.records.cancel(false);
            return null;
        });
    }

    /** Ends the records. Of a thread that ends, the last record would look like a delay for ever. */
    void end() {
        beats.values().removeIf(beat -> {
            beat.records.cancel(false);
            return true;
        });
    }

    /** Returns the thread of the latest connection, or runs a task at once if there was none. */
    Executor latest() {
        return latest;
    }

    /** Returns whether delays explain a timeout since a moment of {@link System#nanoTime}. */
    boolean wereDelayedSince(long moment) {
        boolean stuck = false;
        boolean onTime = false;
        for (Beat beat : beats.values()) {
            if (beat.loop.isShuttingDown()) {
                continue;
            }
            if (beat.isStuck()) {
                stuck = true;
            } else if (beat.wasDelayedSince(moment)) {
                return true;
            } else {
                onTime = true;
            }
        }
        return stuck && !onTime;
    }

    /** Returns whether a thread stands still. Its connection may have to be replaced by one of another thread. */
    boolean isAnyStuck() {
        return beats.values().stream().anyMatch(beat -> beat.isStuck() && !beat.loop.isShuttingDown());
    }
}
