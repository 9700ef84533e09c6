package io.ratelimit;

import org.jspecify.annotations.Nullable;

/** Slots that a later call releases if their own thread had too little stack left for it. */
abstract class Unreleased {

    /** The next one of those that are still to be released. */
    @Nullable
    Unreleased next;

    /** Releases the slots that weren't released yet. */
    abstract void releaseSlots();
}
