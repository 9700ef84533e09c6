package io.ratelimit;

/** The one form of a refused argument: what must hold, and what was there. */
final class Check {

    private Check() {}

    static void check(boolean ok, String what, String requirement, long value) {
        if (!ok) {
            throw new IllegalArgumentException(what + " must be " + requirement + ", but was " + value);
        }
    }

    static void check(boolean ok, String what, String requirement, Object value) {
        if (!ok) {
            throw new IllegalArgumentException(what + " must be " + requirement + ", but was " + value);
        }
    }
}
