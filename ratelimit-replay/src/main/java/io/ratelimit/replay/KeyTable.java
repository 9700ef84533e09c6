package io.ratelimit.replay;

import io.ratelimit.Keys;
import java.util.HashMap;
import java.util.Map;

/**
 * The keys of a policy by their 64-bit hashes, each with two bits that mark denials. Holds at most {@value #MAX_KEYS} keys
 * in 64 MB; a further key is not counted.
 */
final class KeyTable {

    static final int MAX_KEYS = 1 << 20;

    private final Map<Long, Byte> marks = new HashMap<>();
    private boolean full;

    /** Adds a key and its marks, from 0 to 3. */
    void add(String key, int added) {
        Long hash = Keys.hash(key);
        if (marks.size() < MAX_KEYS || marks.containsKey(hash)) {
            marks.merge(hash, (byte) added, (one, other) -> (byte) (one | other));
        } else {
            full = true;
        }
    }

    int size() {
        return marks.size();
    }

    /** Returns whether there were more keys than the table holds. */
    boolean isFull() {
        return full;
    }

    int marked(int mark) {
        return (int) marks.values().stream().filter(each -> (each & mark) != 0).count();
    }
}
