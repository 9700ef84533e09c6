package io.ratelimit;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The slots of one policy in the memory of this process, by their keys. There is an entry for each key with a held slot, and
 * for one key more: the one whose last slot was released last, since its next call is often the next call. Thread-safe.
 */
final class PolicySlots {

    private static final long SHORTEST_RETRY = TimeUnit.SECONDS.toNanos(1);
    private static final int REMEMBERED = 32;

    /** The longest time that counts: a client whose requests run for hours must not set the retry time of all others. */
    private static final long LONGEST_HELD = TimeUnit.MINUTES.toNanos(1);

    /** The mean from which on the time of every call is measured. */
    private static final long LONG_CALL = TimeUnit.MILLISECONDS.toNanos(1);

    private static final int SHORT_CALLS = 8;

    private final Map<String, KeySlots> keys = new ConcurrentHashMap<>();
    /** The slots that were left without a held one last; perhaps used again since, or closed. */
    private final AtomicReference<@Nullable KeySlots> unused = new AtomicReference<>();

    private final AtomicLong meanHeldNanos = new AtomicLong();

    int held() {
        int held = 0;
        for (KeySlots slots : keys.values()) {
            held += slots.held();
        }
        return held;
    }

    int held(String key) {
        KeySlots slots = keys.get(key);
        return slots == null ? 0 : slots.held();
    }

    /** Returns the number of keys with held slots, and perhaps one more. */
    int size() {
        return keys.size();
    }

    /** Returns the slots of the key, one of which was taken for the caller; null if as many as the limit are held. */
    @Nullable
    KeySlots take(String key, int limit) {
        while (true) {
            KeySlots slots = slots(key);
            KeySlots.Take taken = slots.take(limit);
            if (taken != KeySlots.Take.CLOSED) {
                return taken == KeySlots.Take.TAKEN ? slots : null;
            }
            removeClosed(slots);
        }
    }

    /** Returns the slots of the key. New ones have none held: if the map fails after it has added them, nothing leaks. */
    private KeySlots slots(String key) {
        KeySlots slots = keys.get(key);
        if (slots != null) {
            return slots;
        }
        KeySlots fresh = new KeySlots(key);
        KeySlots raced = keys.putIfAbsent(key, fresh);
        return raced == null ? fresh : raced;
    }

    /** Takes a slot of a key, or joins the key's queue. */
    KeySlots.Waiter enqueue(String key, IntSupplier limit) {
        while (true) {
            KeySlots slots = slots(key);
            KeySlots.Waiter waiter = slots.enqueue(limit);
            if (waiter != null) {
                return waiter;
            }
            removeClosed(slots);
        }
    }

    /** Removes closed slots. Threads that find them call it too, since the closing thread may be suspended before. */
    private void removeClosed(KeySlots closed) {
        keys.remove(closed.key(), closed);
    }

    void release(KeySlots slots) {
        released(slots, slots.release());
    }

    /** Keeps slots whose last one was released, in place of others. */
    void released(KeySlots slots, boolean last) {
        if (last && unused.get() != slots) {
            KeySlots before = unused.getAndSet(slots);
            if (before != null && before.close()) {
                removeClosed(before);
            }
        }
    }

    /**
     * Returns whether the next call's time is needed for the mean. Of short calls, one of eight is enough: two readings of the
     * clock take as long as to take a slot and to release it.
     */
    boolean isMeasured() {
        long mean = meanHeldNanos.getOpaque();
        return mean == 0 || mean >= LONG_CALL || ThreadLocalRandom.current().nextInt(SHORT_CALLS) == 0;
    }

    /** Records how long a slot was held: follows the mean of the last slots. Concurrent calls may lose a value, which doesn't matter. */
    void record(long heldNanos) {
        long held = Math.min(heldNanos, LONGEST_HELD);
        long before = meanHeldNanos.getOpaque();
        meanHeldNanos.setOpaque(before == 0 ? held : before + (held - before) / REMEMBERED);
    }

    void limitChanged() {
        keys.values().forEach(KeySlots::handOver);
    }

    /** Returns the mean time between two releases of a key whose slots are all held; at least a second. */
    long retryNanos(int limit) {
        return Math.max(SHORTEST_RETRY, meanHeldNanos.getOpaque() / limit);
    }
}
