package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Threads;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.util.NumberUtils;

/** Tests that each text which Spring converts to a number is read as the same number. */
@Tag("slow")
class NumberTextTests {

    private static final String ZEROS = "0".repeat(41);

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "5            | 5",
                "05           | 5",
                "+5           | 5",
                "' 5 '        | 5",
                "'1 000'      | 1000",
                "'\u00015'    | 5",
                "'5\u2003'    | 5",
                "0x5          | 5",
                "0X1f         | 31",
                "#1F          | 31",
                "-0x1F        | -31",
                "-#1F         | -31",
                "0x-5         | -5",
                "-0x-5        | 5",
                "\uff15       | 5",
                "\u0665       | 5",
                "0x\uff26     | 15",
                "1e3          | 1000",
                "1E+3         | 1000",
                "100.0        | 100",
                "1e2          | 100",
                ".5           | 0.5",
                "5.           | 5",
                "5d           | 5",
                "1e1F         | 10",
                "0x1p3        | 8",
                "0x1.8p1      | 3",
                "0x.8p1d      | 1",
                "-0           | 0",
                "0e5          | 0",
                "1e999999999  | 1E+1000000",
                "1e99999999999999999999 | 1E+1000000",
                "-1e999999999 | -1E+1000000",
                "1e-999999999 | 1E-1000000",
                "0x1p99999    | 1E+1000000",
                "Infinity     | 1E+1000000",
                "-Infinity    | -1E+1000000",
            })
    void readsEachSpelling(String text, String number) {
        assertThat(NumberText.read(text)).hasToString(number);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                "+",
                "-",
                "--5",
                "+-5",
                "0x",
                "#",
                "x5",
                "5x",
                "5L",
                "1,000",
                "1_000",
                ".",
                "e5",
                "1e",
                "1e+",
                "1.2.3",
                "many",
                "NaN",
                "null",
                "true",
                "0x1g",
                "1e5e5",
                "5dd",
                "Infinit",
                "Infinityx",
                "\u0967\u0bf0"
            })
    void aTextThatIsNoNumberIsNull(String text) {
        assertThat(NumberText.read(text)).isNull();
    }

    @Test
    void zerosDoNotCountAsSignificantDigits() {
        for (String text : List.of(
                ZEROS + "100",
                "+" + ZEROS + "100",
                "0x" + ZEROS + "64",
                "#" + ZEROS + "64",
                "\u0660".repeat(50) + "100",
                "100." + ZEROS,
                "0." + ZEROS + "1e44",
                "1" + ZEROS + "e-39",
                "1e" + ZEROS + "2",
                "0x" + ZEROS + "64.0p0")) {
            assertThat(NumberText.read(text)).as(text).hasToString("100");
        }
        assertThat(NumberText.read("-" + ZEROS + "100")).hasToString("-100");
        assertThat(NumberText.read("-0x" + ZEROS + "64")).hasToString("-100");
    }

    @Test
    void digitsBeyondTheFortiethAreRoundedAwayFromZero() {
        String nines = "9".repeat(50);
        assertThat(NumberText.read(nines)).isGreaterThan(new BigDecimal("9e49")).isLessThan(new BigDecimal("1e50"));
        assertThat(NumberText.read("-" + nines)).isLessThan(new BigDecimal("-9e49"));
        assertThat(NumberText.read("5." + ZEROS + "1")).isGreaterThan(new BigDecimal(5));
        assertThat(NumberText.read("5." + ZEROS + "0")).hasToString("5");
        assertThat(NumberText.read("f".repeat(100))).isNull();
        assertThat(NumberText.read("0x" + "f".repeat(100))).isGreaterThan(new BigDecimal("1e120"));
        assertThat(NumberText.read("0x" + "f".repeat(2_000))).hasToString("1E+1000000");
    }

    @Test
    void aMillionDigitsAreReadInLinearTime() {
        long before = Threads.cpuNanos();
        for (String part : List.of("9", "0", " ", "\u0660", "0x0", "e0", "0.0")) {
            String long0 = part + part.substring(part.length() - 1).repeat(1_000_000);
            NumberText.read(long0);
            NumberText.read("-" + long0 + "e5");
        }
        assertThat(NumberText.read("9".repeat(1_000_000))).isGreaterThan(new BigDecimal("9e999998"));
        assertThat(Threads.cpuNanos() - before).isLessThan(Duration.ofSeconds(3).toNanos());
    }

    /** Compares with Spring's conversion; the repetition number is the seed. */
    @RepeatedTest(50)
    void agreesWithSpringsConversion(RepetitionInfo run) {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        for (int i = 0; i < 2_000; i++) {
            String text = spelling(random);
            BigDecimal number = NumberText.read(text);
            for (Class<? extends Number> type :
                    List.of(Long.class, Integer.class, BigInteger.class, BigDecimal.class, Double.class)) {
                Number converted = convert(text, type);
                if (converted != null) {
                    assertThat(number)
                            .as("seed %d, '%s' as %s", run.getCurrentRepetition(), text, type)
                            .isNotNull();
                    check(converted, number, "seed " + run.getCurrentRepetition() + ", '" + text + "'");
                }
            }
        }
    }

    private static void check(Number converted, BigDecimal number, String what) {
        if (converted instanceof Double value) {
            assertThat(number.doubleValue()).as(what).isEqualTo(value == 0 ? 0.0 : value);
            return;
        }
        BigDecimal exact = new BigDecimal(converted.toString());
        if (exact.stripTrailingZeros().precision() <= 40) {
            assertThat(number).as(what).isEqualByComparingTo(exact);
        } else {
            assertThat(number.subtract(exact).abs())
                    .as(what)
                    .isLessThan(exact.abs().movePointLeft(39));
        }
    }

    private static Number convert(String text, Class<? extends Number> type) {
        try {
            Number number = NumberUtils.parseNumber(text, type);
            return number instanceof Double value && value.isNaN() ? null : number;
        } catch (IllegalArgumentException none) {
            return null;
        }
    }

    private static String spelling(SplittableRandom random) {
        StringBuilder text = new StringBuilder();
        space(random, text);
        text.append(one(random, "", "", "", "+", "-", "-"));
        boolean hex = random.nextInt(4) == 0;
        text.append(hex ? one(random, "0x", "0X", "#", "0x-", "0x+") : "");
        digits(random, text, hex);
        boolean fraction = random.nextInt(3) == 0;
        if (fraction) {
            text.append('.');
            digits(random, text, hex);
        }
        if (random.nextInt(3) == 0) {
            text.append(hex ? one(random, "p", "P") : one(random, "e", "E"))
                    .append(one(random, "", "+", "-"))
                    .append(random.nextInt(8) == 0 ? ZEROS : "")
                    .append(random.nextInt(40));
        }
        text.append(one(random, "", "", "", "d", "f", "F", "D"));
        space(random, text);
        return text.toString();
    }

    private static void digits(SplittableRandom random, StringBuilder text, boolean hex) {
        text.append(one(random, "", "", "0", ZEROS, "\u0660".repeat(45)));
        char zero = one(random, "0", "0", "0", "\u0660", "\uff10").charAt(0);
        int count = random.nextInt(random.nextInt(6) == 0 ? 60 : 12);
        for (int i = 0; i < count; i++) {
            int digit = random.nextInt(hex ? 16 : 10);
            text.append(digit < 10 ? (char) (zero + digit) : Character.forDigit(digit, 16));
            if (random.nextInt(30) == 0) {
                text.append(' ');
            }
        }
        text.append(one(random, "", "", "", ZEROS));
    }

    private static void space(SplittableRandom random, StringBuilder text) {
        text.append(one(random, "", "", "", " ", "\t", "\u2003", "\u0001"));
    }

    private static String one(SplittableRandom random, String... choices) {
        return choices[random.nextInt(choices.length)];
    }
}
