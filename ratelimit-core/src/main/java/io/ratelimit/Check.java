package io.ratelimit;

import java.time.Duration;

/** The one form of the message for an invalid argument: its requirement and its value. */
final class Check {

    private Check() {}

    static void check(boolean ok, String name, String requirement, long value) {
        if (!ok) {
            throw invalid(name, requirement, value);
        }
    }

    /** @param value shown by its text, and a duration as users write it; the text is composed only for the message */
    static void check(boolean ok, String name, String requirement, Object value) {
        if (!ok) {
            throw invalid(name, requirement, value);
        }
    }

    static IllegalArgumentException invalid(String name, String requirement, Object value) {
        Object shown = value instanceof Duration duration ? Rate.format(duration) : value;
        return new IllegalArgumentException(name + " must be " + requirement + ", but was " + shown);
    }
}
