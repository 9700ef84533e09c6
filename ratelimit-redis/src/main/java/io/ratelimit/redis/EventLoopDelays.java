package io.ratelimit.redis;

import io.lettuce.core.resource.NettyCustomizer;
import io.netty.channel.Channel;
import io.netty.util.concurrent.EventExecutor;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * The delays of the threads that send commands and read replies. If all processors are busy, or the process was stopped
 * (garbage collection, a suspended machine), a reply may be unread in the socket. A timeout then proves nothing about
 * Redis. Each thread records the time at a fixed rate; a gap is a delay. Thread-safe.
 */
final class EventLoopDelays implements NettyCustomizer {

    private static final long STEP = Duration.ofMillis(20).toNanos();
    private static final long DELAYED = 2 * STEP;

    private final Map<EventExecutor, Beat> beats = new ConcurrentHashMap<>();

    /** The last record of a thread, and the end of its last delay. Only this thread writes. */
    private static final class Beat implements Runnable {

        private volatile long last = System.nanoTime();
        private volatile long delayedUntil = last - Duration.ofDays(1).toNanos();

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
    }

    @Override
    public void afterChannelInitialized(Channel channel) {
        beats.computeIfAbsent(channel.eventLoop(), EventLoopDelays::start);
    }

    private static Beat start(EventExecutor loop) {
        Beat beat = new Beat();
        loop.scheduleAtFixedRate(beat, 0, STEP, TimeUnit.NANOSECONDS);
        return beat;
    }

    /** Returns whether a thread was delayed since a moment of {@link System#nanoTime}, or is delayed now. */
    boolean wasDelayedSince(long moment) {
        for (Beat beat : beats.values()) {
            if (beat.wasDelayedSince(moment)) {
                return true;
            }
        }
        return false;
    }
}
