package io.ratelimit.replay;

import io.ratelimit.Keys;

/**
 * A set of keys by 64-bit hashes, of which two bits mark denied keys. Holds at most {@value #MAX_KEYS} keys in 16 MB; a
 * further key is not counted.
 */
final class KeyTable {

    static final int MAX_KEYS = 1 << 20;
    private static final long MARKS = 3;

    private long[] slots = new long[1024];
    private int size;
    private boolean full;

    /** Adds a key and its marks, from 0 to 3. */
    void add(String key, int marks) {
        long hash = Keys.hash(key) & ~MARKS;
        hash = hash == 0 ? MARKS + 1 : hash;
        int slot = slot(slots, hash);
        if (slots[slot] == 0) {
            if (size == MAX_KEYS) {
                full = true;
                return;
            }
            size++;
        }
        slots[slot] = hash | slots[slot] & MARKS | marks;
        if (size > slots.length / 2) {
            grow();
        }
    }

    private static int slot(long[] slots, long hash) {
        int slot = (int) (hash >>> 8) & slots.length - 1;
        while (slots[slot] != 0 && (slots[slot] & ~MARKS) != hash) {
            slot = slot + 1 & slots.length - 1;
        }
        return slot;
    }

    private void grow() {
        long[] larger = new long[slots.length * 2];
        for (long hash : slots) {
            if (hash != 0) {
                larger[slot(larger, hash & ~MARKS)] = hash;
            }
        }
        slots = larger;
    }

    int size() {
        return size;
    }

    /** Returns whether there were more keys than the table holds. */
    boolean isFull() {
        return full;
    }

    int marked(int mark) {
        int marked = 0;
        for (long hash : slots) {
            marked += (hash & mark) == 0 ? 0 : 1;
        }
        return marked;
    }
}
