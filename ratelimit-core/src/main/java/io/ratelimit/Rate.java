package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.time.format.DateTimeParseException;
import java.util.Locale;
import java.util.Map;

/**
 * How fast tokens come back: so many in each period.
 *
 * @param tokens the tokens of one period, at least 1
 * @param period the period, from 1 microsecond to 365 days, in whole microseconds
 */
public record Rate(long tokens, Duration period) {

    private static final Duration MIN_PERIOD = Duration.ofNanos(1_000);
    private static final Duration MAX_PERIOD = Duration.ofDays(365);
    private static final long MAX_TOKENS_PER_NANOSECOND = 10;

    private static final Map<String, Duration> UNITS = Map.ofEntries(
            Map.entry("us", Duration.ofNanos(1_000)),
            Map.entry("ms", Duration.ofMillis(1)),
            Map.entry("s", Duration.ofSeconds(1)),
            Map.entry("second", Duration.ofSeconds(1)),
            Map.entry("m", Duration.ofMinutes(1)),
            Map.entry("minute", Duration.ofMinutes(1)),
            Map.entry("h", Duration.ofHours(1)),
            Map.entry("hour", Duration.ofHours(1)),
            Map.entry("d", Duration.ofDays(1)),
            Map.entry("day", Duration.ofDays(1)));

    public Rate {
        check(tokens >= 1, "the tokens of a rate", "at least 1", tokens);
        check(
                period.compareTo(MIN_PERIOD) >= 0 && period.compareTo(MAX_PERIOD) <= 0,
                "the period of a rate",
                "between 1us and 365d",
                textOf(period));
        check(period.toNanos() % 1_000 == 0, "the period of a rate", "whole microseconds", textOf(period));
        check(
                tokens <= MAX_TOKENS_PER_NANOSECOND * period.toNanos(),
                "a rate",
                "at most 10,000,000,000 tokens a second",
                tokens + "/" + textOf(period));
    }

    /**
     * Reads a rate such as {@code 600/1m}, {@code 10/s}, {@code 600/minute}, {@code 1/2s}, {@code 5/100ms} or
     * {@code 3/PT1M}: tokens, a slash, and a period. The units are us, ms, s, m, h, d, second, minute, hour and day.
     *
     * @throws IllegalArgumentException if the text is no rate; the message says what would do
     */
    public static Rate of(String text) {
        String trimmed = text.strip();
        int slash = trimmed.indexOf('/');
        if (slash < 1) {
            throw unreadable(text, "say how many tokens in which period, such as '600/1m' or '10/s'");
        }
        return new Rate(
                tokensOf(text, trimmed.substring(0, slash).strip()),
                periodOf(text, trimmed.substring(slash + 1).strip()));
    }

    private static long tokensOf(String text, String tokens) {
        try {
            return Long.parseLong(tokens);
        } catch (NumberFormatException notWhole) {
            throw unreadable(text, "'" + tokens + "' is not a whole number of tokens that fits, say '600/1m'");
        }
    }

    private static Duration periodOf(String text, String period) {
        try {
            return durationOf(period);
        } catch (IllegalArgumentException unreadable) {
            throw new IllegalArgumentException("'" + text + "' is not a rate: " + unreadable.getMessage(), unreadable);
        }
    }

    /**
     * Reads {@code 100ms}, {@code minute} or {@code PT1M}; a number needs a unit. Also {@code -1s}: whoever wants none
     * below zero can say so better.
     *
     * @throws IllegalArgumentException if the text is no duration; the message says what would do
     */
    public static Duration durationOf(String text) {
        int start = text.startsWith("-") ? 1 : 0;
        int digits = start;
        while (digits < text.length() && Character.isDigit(text.charAt(digits))) {
            digits++;
        }
        String unit = text.substring(digits).strip().toLowerCase(Locale.ROOT);
        if (unit.isEmpty() && digits > start) {
            throw new IllegalArgumentException("'" + text + "' has no unit: say '" + text + "ms', '" + text + "s'");
        }
        try {
            if (unit.startsWith("p")) {
                return Duration.parse(text);
            }
            Duration one = UNITS.get(unit);
            if (one != null) {
                return digits == 0 ? one : one.multipliedBy(Long.parseLong(text.substring(0, digits)));
            }
        } catch (ArithmeticException | DateTimeParseException | NumberFormatException tooLargeOrMalformed) {
            throw new IllegalArgumentException("'" + text + "' is not a period that can be read");
        }
        throw new IllegalArgumentException("'" + text + "' is not a period: say us, ms, s, m, h or d (as in '100ms'),"
                + " second, minute, hour or day, or ISO-8601 such as 'PT1M'");
    }

    private static IllegalArgumentException unreadable(String text, String hint) {
        return new IllegalArgumentException("'" + text + "' is not a rate: " + hint);
    }

    /** The rate as it is written: {@code 600/1m}. */
    @Override
    public String toString() {
        return tokens + "/" + textOf(period);
    }

    /** A duration as people write it: in the largest unit that is whole. */
    public static String textOf(Duration duration) {
        if (duration.isZero()) {
            return "0s";
        }
        boolean fitsNanos = Math.abs(duration.toDays()) < 100_000;
        for (String unit : new String[] {"d", "h", "m", "s", "ms", "us"}) {
            Duration one = UNITS.get(unit);
            if (fitsNanos && one != null && duration.toNanos() % one.toNanos() == 0) {
                return duration.toNanos() / one.toNanos() + unit;
            }
        }
        return duration.toString();
    }
}
