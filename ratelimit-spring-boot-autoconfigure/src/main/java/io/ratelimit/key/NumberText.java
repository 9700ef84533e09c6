package io.ratelimit.key;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import org.jspecify.annotations.Nullable;

/**
 * Reads a number from a text that a client chose, in time proportional to the length of the text. Accepts each spelling
 * that Spring converts to a Java number for a controller: digits of any script, white space anywhere, {@code 0x1F},
 * {@code #1F}, {@code 1e3}, {@code 5d}. Keeps 40 significant digits, rounds the rest away from zero, and limits the
 * exponent to a million. Therefore a number is readable with any amount of digits or zeros. Equal numbers have equal texts.
 */
final class NumberText {

    private static final int MAX_DIGITS = 40;
    private static final int MAX_EXPONENT = 1_000_000;
    private static final int MAX_LONG_DIGITS = 15;
    private static final int MAX_SHIFT = 4096;
    private static final BigDecimal MAX_LONG = BigDecimal.valueOf(Long.MAX_VALUE);
    private static final BigDecimal INFINITY = BigDecimal.valueOf(1, -MAX_EXPONENT);

    private final String text;
    private final StringBuilder digits = new StringBuilder(MAX_DIGITS + 1);
    private int position;
    private int radix = 10;
    private int exponentStep = 1;
    private long exponent;
    private boolean hasDigits;
    private boolean isRounded;

    private NumberText(String text) {
        this.text = text;
    }

    /** Returns the number that a text spells, or null if it spells none. */
    static @Nullable BigDecimal read(String text) {
        NumberText number = new NumberText(text);
        boolean negative = number.skipSign();
        if (number.skipRadix()) {
            negative ^= number.skipSign(); // as BigInteger reads 0x-5
        }
        BigDecimal magnitude = number.magnitude();
        return magnitude == null || number.next() != 0 ? null : negative ? magnitude.negate() : magnitude;
    }

    /**
     * Returns the number that a value is or spells, rounded up to a whole number. A number whose magnitude exceeds
     * {@code Long.MAX_VALUE} counts as that, or as its negative.
     *
     * @throws NumberFormatException if the value is no number
     */
    static long ceiling(@Nullable Object value) {
        if (value instanceof Long number) {
            return number;
        } else if (value instanceof Integer number) {
            return number;
        } else if (value instanceof Double number && !number.isNaN()) {
            return (long) Math.ceil(number);
        } else if (value instanceof BigInteger number) {
            return ceiling(new BigDecimal(number));
        }
        BigDecimal number = value instanceof BigDecimal decimal ? decimal : read(String.valueOf(value));
        if (number == null) {
            throw new NumberFormatException("it is no number");
        }
        return ceiling(number);
    }

    /** Compares before rounding: a number such as 1e999999999 has too many digits to write out. */
    private static long ceiling(BigDecimal number) {
        if (number.abs().compareTo(MAX_LONG) >= 0) {
            return number.signum() * Long.MAX_VALUE;
        }
        boolean isFraction = number.abs().compareTo(BigDecimal.ONE) < 0;
        return isFraction
                ? Math.max(number.signum(), 0)
                : number.setScale(0, RoundingMode.CEILING).longValue();
    }

    private @Nullable BigDecimal magnitude() {
        readDigits(0);
        if (skipAny(".")) {
            readDigits(-exponentStep);
        }
        if (!hasDigits) {
            return radix == 10 && skip("Infinity") ? INFINITY : null;
        }
        if (skipAny(radix == 10 ? "eE" : "pP") && !readExponent()) {
            return null;
        }
        skipAny("dDfF");
        return digits.isEmpty() ? BigDecimal.ZERO : canonical(radix == 10 ? decimal() : hexadecimal());
    }

    /**
     * @param step the change of the exponent for each digit that is kept
     */
    private void readDigits(int step) {
        for (int digit = digit(radix); digit >= 0; digit = digit(radix)) {
            hasDigits = true;
            if (digits.length() == MAX_DIGITS) {
                exponent += step + exponentStep;
                isRounded |= digit > 0;
                continue;
            }
            exponent += step;
            if (digit > 0 || !digits.isEmpty()) {
                digits.append(Character.forDigit(digit, radix));
            }
        }
    }

    private boolean readExponent() {
        boolean negative = skipSign();
        long value = -1;
        for (int digit = digit(10); digit >= 0; digit = digit(10)) {
            value = Math.min(Math.max(value, 0) * 10 + digit, Integer.MAX_VALUE);
        }
        exponent += negative ? -value : value;
        return value >= 0;
    }

    private BigDecimal decimal() {
        int scale = (int) -Math.max(-MAX_EXPONENT, Math.min(exponent, MAX_EXPONENT));
        if (digits.length() <= MAX_LONG_DIGITS) {
            return BigDecimal.valueOf(Long.parseLong(digits, 0, digits.length(), 10), scale);
        }
        return isRounded
                ? new BigDecimal(new BigInteger(digits.append('1').toString()), scale + 1)
                : new BigDecimal(new BigInteger(digits.toString()), scale);
    }

    private BigDecimal hexadecimal() {
        BigInteger value = new BigInteger(digits.toString(), 16);
        int power = (int) Math.max(-MAX_EXPONENT, Math.min(exponent, MAX_EXPONENT));
        if (power >= 0 && power <= MAX_SHIFT) {
            return new BigDecimal(value.shiftLeft(power), new MathContext(MAX_DIGITS, RoundingMode.UP));
        }
        double scaled = Math.scalb(value.doubleValue(), power);
        return Double.isInfinite(scaled) ? INFINITY : new BigDecimal(Math.max(scaled, Double.MIN_VALUE));
    }

    /** Returns the same form for equal numbers: 100, 1e2 and 100.0 are one key. */
    private static BigDecimal canonical(BigDecimal number) {
        BigDecimal stripped = number.stripTrailingZeros();
        return stripped.scale() < 0 && stripped.scale() >= -MAX_DIGITS ? stripped.setScale(0) : stripped;
    }

    /** Returns whether the sign is a minus. */
    private boolean skipSign() {
        boolean minus = next() == '-';
        skipAny("+-");
        return minus;
    }

    private boolean skipRadix() {
        int start = position;
        if (skipAny("#") || skipAny("0") && skipAny("xX")) {
            radix = 16;
            exponentStep = 4;
            return true;
        }
        position = start;
        return false;
    }

    private boolean skip(String word) {
        for (int i = 0; i < word.length(); i++) {
            if (next() != word.charAt(i)) {
                return false;
            }
            position++;
        }
        return true;
    }

    private boolean skipAny(String characters) {
        boolean found = characters.indexOf(next()) >= 0;
        position += found ? 1 : 0;
        return found;
    }

    /** Returns the value of the next digit and skips it; -1 if the next character is no digit. */
    private int digit(int radix) {
        int digit = Character.digit(next(), radix);
        position += digit >= 0 ? 1 : 0;
        return digit;
    }

    /** Returns the next character that is no white space, or 0 at the end. */
    private char next() {
        while (position < text.length()
                && (text.charAt(position) <= ' ' || Character.isWhitespace(text.charAt(position)))) {
            position++;
        }
        return position < text.length() ? text.charAt(position) : 0;
    }
}
