package io.ratelimit.remote.inflight;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.function.Predicate;

/** The calls of a key that have no slot yet, in their order of arrival. For one thread at a time. */
final class CallQueue {

    private final Deque<SlotCall> calls = new ArrayDeque<>(2);
    private int asking;

    int size() {
        return calls.size();
    }

    boolean isEmpty() {
        return calls.isEmpty();
    }

    SlotCall first() {
        return calls.element();
    }

    /** Returns whether a call waits for the next reply only. */
    boolean hasAsking() {
        return asking > 0;
    }

    /** Returns whether a call waits for a slot. */
    boolean hasWaiting() {
        return calls.size() > asking;
    }

    void join(SlotCall call) {
        calls.add(call);
        asking += call.waits ? 0 : 1;
    }

    /** Removes a call, and returns whether it was here. */
    boolean leave(SlotCall call) {
        boolean left = calls.remove(call);
        asking -= left && !call.waits ? 1 : 0;
        return left;
    }

    /** Removes the calls that a test decides, which is called in their order. */
    void removeDecided(Predicate<SlotCall> decides) {
        for (Iterator<SlotCall> each = calls.iterator(); each.hasNext(); ) {
            SlotCall call = each.next();
            if (decides.test(call)) {
                each.remove();
                asking -= call.waits ? 0 : 1;
            }
        }
    }

    /** Records that a claim is made for all calls. */
    void claim() {
        calls.forEach(call -> call.claimed = true);
    }

    /** Returns whether a claim was made for the first call. */
    boolean isClaimed() {
        return !calls.isEmpty() && calls.element().claimed;
    }
}
