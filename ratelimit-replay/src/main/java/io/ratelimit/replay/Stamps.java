package io.ratelimit.replay;

import java.text.ParsePosition;
import java.time.DateTimeException;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.ResolverStyle;
import java.time.temporal.ChronoField;
import java.time.temporal.TemporalAccessor;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * A reader of the times of log lines: {@code 01/Aug/1995:00:00:01 -0400}, ISO 8601, seconds or milliseconds since 1970, or
 * a format of Tomcat's {@code %{...}t}.
 */
final class Stamps {

    private static final DateTimeFormatter COMMON = format("dd/MMM/uuuu:HH:mm:ss");
    private static final DateTimeFormatter ISO = format("uuuu-MM-dd['T'][' ']HH:mm:ss");
    private static final long MIN_SECONDS = 0;
    private static final long MAX_SECONDS = 9_000_000_000L;

    private static final ZonedDateTime WHOLE = ZonedDateTime.of(2026, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);

    private @Nullable DateTimeFormatter formatter;
    private boolean formatHasFraction;

    private static DateTimeFormatter format(String pattern) {
        return DateTimeFormatter.ofPattern(pattern, Locale.US).withResolverStyle(ResolverStyle.STRICT);
    }

    /** Reads stamps in a format of Tomcat; the empty text and the names of numbers select none. */
    void useFormat(String format) {
        if (!format.isEmpty() && !format.equals("sec") && !format.equals("msec")) {
            try {
                DateTimeFormatter used = DateTimeFormatter.ofPattern(format, Locale.US);
                formatter = used;
                formatHasFraction = !used.format(WHOLE).equals(used.format(WHOLE.plusNanos(123_456_789)));
            } catch (DateTimeException | IllegalArgumentException unreadable) {
                throw new IllegalArgumentException(
                        "--format has the time '%{" + format + "}t', which can't be read: " + unreadable.getMessage());
            }
        }
    }

    /** Sets the time of an entry. Returns false if the text is no time between 1970 and 2255. */
    boolean read(String written, LogEntry entry) {
        boolean bracketed = written.startsWith("[") && written.endsWith("]");
        String text = bracketed ? written.substring(1, written.length() - 1) : written;
        entry.nanoOfSecond = 0; // the entry may have had another time
        try {
            boolean read = formatter != null
                    ? readFormatted(formatter.parse(text), entry)
                    : text.length() >= 20 && text.charAt(2) == '/'
                            ? readDate(COMMON, text, entry)
                            : text.length() >= 19 && text.charAt(4) == '-'
                                    ? readDate(ISO, text, entry)
                                    : readNumber(text, entry);
            return read && entry.localSeconds >= MIN_SECONDS && entry.localSeconds < MAX_SECONDS;
        } catch (DateTimeException | NumberFormatException unreadable) {
            return false;
        }
    }

    /** Reads a date and a time of day; a fraction of a second and an offset may follow. */
    private static boolean readDate(DateTimeFormatter toSecond, String text, LogEntry entry) {
        ParsePosition end = new ParsePosition(0);
        entry.localSeconds = LocalDateTime.from(toSecond.parse(text, end)).toEpochSecond(ZoneOffset.UTC);
        int at = end.getIndex();
        entry.wholeSeconds = at == text.length() || text.charAt(at) != '.' && text.charAt(at) != ',';
        String offset = text.substring(entry.wholeSeconds ? at : readFraction(text, at + 1, entry))
                .trim();
        entry.offsetSeconds =
                offset.isEmpty() ? null : (Integer) ZoneOffset.of(offset).getTotalSeconds();
        return true;
    }

    /** Reads the digits of a fraction of a second, and returns the index behind them. */
    private static int readFraction(String text, int start, LogEntry entry) {
        int at = start;
        for (int unit = 100_000_000; at < text.length() && Character.isDigit(text.charAt(at)); at++, unit /= 10) {
            entry.nanoOfSecond += unit * Character.digit(text.charAt(at), 10);
        }
        return at;
    }

    /** Reads seconds or milliseconds since 1970: a number of more than eleven digits is milliseconds. */
    private static boolean readNumber(String text, LogEntry entry) {
        int point = text.indexOf('.');
        long whole = Long.parseLong(point < 0 ? text : text.substring(0, point));
        boolean millis = whole > 99_999_999_999L;
        entry.localSeconds = millis ? whole / 1000 : whole;
        entry.nanoOfSecond = millis ? (int) (whole % 1000) * 1_000_000 : 0;
        entry.wholeSeconds = !millis && point < 0;
        entry.offsetSeconds = 0;
        return point < 0 || millis || readFraction(text, point + 1, entry) == text.length();
    }

    private boolean readFormatted(TemporalAccessor time, LogEntry entry) {
        entry.localSeconds = LocalDateTime.from(time).toEpochSecond(ZoneOffset.UTC);
        entry.nanoOfSecond = time.get(ChronoField.NANO_OF_SECOND);
        entry.wholeSeconds = !formatHasFraction;
        entry.offsetSeconds =
                time.isSupported(ChronoField.OFFSET_SECONDS) ? time.get(ChronoField.OFFSET_SECONDS) : null;
        return true;
    }
}
