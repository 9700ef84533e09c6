package io.ratelimit;

import static io.ratelimit.Check.check;
import static io.ratelimit.Check.invalid;

import java.math.BigInteger;
import java.time.Duration;
import java.time.format.DateTimeParseException;
import java.time.temporal.ChronoUnit;
import java.util.Locale;
import java.util.Map;

/**
 * The speed at which tokens come back: a number of tokens in each period.
 *
 * @param tokens the tokens of one period, at least 1; at most 10,000,000,000 a second
 * @param period the period, from 1 microsecond to 365 days, in whole microseconds
 */
public record Rate(long tokens, Duration period) {

    private static final Duration MIN_PERIOD = Duration.ofNanos(1_000);
    private static final Duration MAX_PERIOD = Duration.ofDays(365);
    private static final long MAX_TOKENS_PER_NANOSECOND = 10;

    private static final String NO_DURATION = "is not a duration: write a number and a unit, such as '2s' or '500ms'";
    private static final String NO_PERIOD =
            "is not a period: write us, ms, s, m, h or d (as in '100ms'), second, minute,"
                    + " hour, day, week or month, or ISO-8601 such as 'PT1M'";

    /** The mean length of a month: a twelfth of the mean year of the Gregorian calendar. */
    static final Duration MONTH = ChronoUnit.MONTHS.getDuration();

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
            Map.entry("day", Duration.ofDays(1)),
            Map.entry("week", Duration.ofDays(7)),
            Map.entry("month", MONTH));

    /** @throws IllegalArgumentException if a component is outside its range; the message contains the range */
    public Rate {
        check(tokens >= 1, "the tokens of a rate", "at least 1", tokens);
        check(
                period.compareTo(MIN_PERIOD) >= 0 && period.compareTo(MAX_PERIOD) <= 0,
                "the period of a rate",
                "between 1us and 365d",
                period);
        check(period.toNanos() % 1_000 == 0, "the period of a rate", "whole microseconds", period);
        if (tokens > MAX_TOKENS_PER_NANOSECOND * period.toNanos()) {
            throw invalid("a rate", "at most 10,000,000,000 tokens a second", tokens + "/" + format(period));
        }
    }

    /**
     * Reads a rate such as {@code 600/1m}, {@code 10/s}, {@code 600/minute}, {@code 1/2s}, {@code 5/100ms} or
     * {@code 3/PT1M}: tokens, a slash, and a period. The units are us, ms, s, m, h, d, second, minute, hour, day, week and
     * month. Unless a bucket is refilled by the calendar, a month is 30.436875 days.
     *
     * @throws IllegalArgumentException if the text is not a rate; the message contains a correct example or the range
     */
    public static Rate of(String text) {
        String trimmed = text.strip();
        int slash = trimmed.indexOf('/');
        if (slash < 1) {
            throw unreadable(text, "write the tokens and the period, such as '600/1m' or '10/s'");
        }
        String tokens = trimmed.substring(0, slash).strip();
        String period = trimmed.substring(slash + 1).strip();
        return new Rate(parseTokens(text, tokens, period), parsePeriod(text, period));
    }

    private static long parseTokens(String text, String tokens, String period) {
        try {
            return parseAscii(tokens);
        } catch (NumberFormatException notWhole) {
            throw unreadable(
                    text,
                    "'" + tokens
                            + (tokens.matches("[0-9]+") ? "' is too many tokens" : "' is not a whole number of tokens")
                            + ": write '" + inWholeTokens(tokens, period) + "'");
        }
    }

    /** Returns the same rate in whole tokens, as 1/2s for 0.5/s; 600/1m if there is none. */
    private static String inWholeTokens(String tokens, String period) {
        if (tokens.matches("[0-9]{1,9}\\.[0-9]{1,9}")) {
            try {
                BigInteger scaled = new BigInteger(tokens.replace(".", ""));
                BigInteger scale = BigInteger.TEN.pow(tokens.length() - tokens.indexOf('.') - 1);
                BigInteger common = scaled.gcd(scale);
                Duration longer =
                        parseDuration(period).multipliedBy(scale.divide(common).longValueExact());
                return new Rate(scaled.divide(common).longValueExact(), longer).toString();
            } catch (IllegalArgumentException | ArithmeticException outOfRange) {
                return "600/1m";
            }
        }
        return "600/1m";
    }

    /** Like {@link Long#parseLong(String)}, but rejects the digits of other scripts. */
    private static long parseAscii(String digits) {
        if (!digits.chars().allMatch(c -> c < 128)) {
            throw new NumberFormatException("not in ASCII digits");
        }
        return Long.parseLong(digits);
    }

    private static Duration parsePeriod(String text, String period) {
        try {
            return parseDuration(period, NO_PERIOD);
        } catch (IllegalArgumentException unreadable) {
            throw new IllegalArgumentException("'" + text + "' is not a rate: " + unreadable.getMessage(), unreadable);
        }
    }

    /**
     * Reads a duration such as {@code 100ms}, {@code minute} or {@code PT1M}; a number needs a unit. Accepts negative
     * durations; callers validate the sign.
     *
     * @throws IllegalArgumentException if the text is not a duration; the message contains a correct example
     */
    public static Duration parseDuration(String text) {
        return parseDuration(text, NO_DURATION);
    }

    /** @param mistake what is wrong with a text that has no known unit */
    private static Duration parseDuration(String text, String mistake) {
        int start = text.startsWith("-") ? 1 : 0;
        int digits = start;
        while (digits < text.length() && isDigit(text.charAt(digits))) {
            digits++;
        }
        String unit = text.substring(digits).strip().toLowerCase(Locale.ROOT);
        if (unit.isEmpty() && digits > start) {
            throw new IllegalArgumentException("'" + text + "' has no unit: write '" + text + "ms' or '" + text + "s'");
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
            throw new IllegalArgumentException("'" + text + "' is not a duration that can be read");
        }
        throw new IllegalArgumentException("'" + text + "' " + mistake);
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }

    private static IllegalArgumentException unreadable(String text, String hint) {
        return new IllegalArgumentException("'" + text + "' is not a rate: " + hint);
    }

    /** Returns the rate as users write it: {@code 600/1m}. */
    @Override
    public String toString() {
        return tokens + "/" + (period.equals(MONTH) ? "month" : format(period));
    }

    /** Returns a duration as users write it: a whole number of the largest possible unit. */
    public static String format(Duration duration) {
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
