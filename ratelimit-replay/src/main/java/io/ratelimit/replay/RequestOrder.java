package io.ratelimit.replay;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;

/**
 * Puts the requests of a log in the order in which they began, since a log is written in the order in which they end. If
 * the stamps are whole seconds, spreads the requests of each second evenly over it.
 */
final class RequestOrder {

    /** The most lines that are held back, as far as they take no more than {@link #MAX_BYTES}. */
    private static final int WINDOW = 1 << 14;

    /** The most bytes of lines that wait. */
    static final int MAX_BYTES = 16 << 20;

    private static final long NANOS = 1_000_000_000L;

    private final Receiver receiver;

    /** The requests of the window that were added in order. */
    private final ArrayDeque<LogEntry> ordered = new ArrayDeque<>();

    /** The other requests of the window. */
    private final PriorityQueue<LogEntry> unordered = new PriorityQueue<>(RequestOrder::compare);

    private long windowBytes;
    private final List<LogEntry> second = new ArrayList<>();
    private long secondBytes;
    private boolean exactStamps;
    private long late;
    private long latest = Long.MIN_VALUE;

    interface Receiver {

        /** @param spreadNanos the moment of the request if those of its second are spread evenly over it */
        void receive(LogEntry entry, long spreadNanos);
    }

    RequestOrder(Receiver receiver) {
        this.receiver = receiver;
    }

    private static int compare(LogEntry one, LogEntry other) {
        int byStart = Long.compare(one.startNanos, other.startNanos);
        return byStart != 0 ? byStart : Long.compare(one.number, other.number);
    }

    void add(LogEntry entry) {
        exactStamps |= !entry.wholeSeconds;
        boolean inOrder = ordered.isEmpty() || ordered.getLast().startNanos <= entry.startNanos;
        (inOrder ? ordered : unordered).add(entry);
        windowBytes += entry.bytes;
        while (ordered.size() + unordered.size() > WINDOW || windowBytes > MAX_BYTES) {
            removeFirst();
        }
    }

    /** Passes on all requests that are left. */
    void finish() {
        while (!ordered.isEmpty() || !unordered.isEmpty()) {
            removeFirst();
        }
        passOnSecond();
    }

    private void removeFirst() {
        LogEntry next = ordered.peek();
        LogEntry other = unordered.peek();
        boolean takesOther = next == null || other != null && compare(other, next) < 0;
        LogEntry entry = takesOther ? unordered.remove() : ordered.remove();
        windowBytes -= entry.bytes;
        if (entry.startNanos < latest) {
            late++;
        }
        latest = Math.max(latest, entry.startNanos);
        boolean sameSecond = !second.isEmpty()
                && !exactStamps
                && second.size() < WINDOW
                && secondBytes < MAX_BYTES
                && second.get(0).startNanos / NANOS == entry.startNanos / NANOS;
        if (!sameSecond) {
            passOnSecond();
        }
        second.add(entry);
        secondBytes += entry.bytes;
    }

    private void passOnSecond() {
        for (int i = 0; i < second.size(); i++) {
            LogEntry entry = second.get(i);
            receiver.receive(entry, entry.startNanos + (exactStamps ? 0 : i * NANOS / second.size()));
        }
        second.clear();
        secondBytes = 0;
    }

    /** Returns whether stamps have fractions of seconds, so that it is known when in its second a request began. */
    boolean hasExactStamps() {
        return exactStamps;
    }

    /** Returns the number of requests that began before a request that was already passed on. */
    long late() {
        return late;
    }

    /** Returns the moment of the last request; {@link Long#MIN_VALUE} if there was none. */
    long latest() {
        return latest;
    }
}
