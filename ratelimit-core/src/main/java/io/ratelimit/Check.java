package io.ratelimit;

/** The one form of the message for an invalid argument: its requirement and its value. */
final class Check {

    private Check() {}

    static void check(boolean ok, String name, String requirement, long value) {
        if (!ok) {
            throw new IllegalArgumentException(name + " must be " + requirement + ", but was " + value);
        }
    }

    static void check(boolean ok, String name, String requirement, Object value) {
        if (!ok) {
            throw new IllegalArgumentException(name + " must be " + requirement + ", but was " + value);
        }
    }
}
