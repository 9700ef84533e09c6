package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.key.KeyPart.Availability;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RequestCostTests {

    private final List<String> failures = new ArrayList<>();

    @ParameterizedTest
    @CsvSource({
        "1, 1",
        "' 800 ', 800",
        "0, 0",
        "-1, -1",
        "-2147483648, -2147483648",
        "1e3, 1000",
        "2.0, 2",
        "2 * 3, 6",
        "99999999999999999999, 9223372036854775807",
        "1e999999999, 9223372036854775807",
        "-1e999999999, -9223372036854775807"
    })
    void aNumberIsAConstantCost(String text, long number) {
        RequestCost cost = RequestCost.of(text);
        assertThat(cost.constant()).isEqualTo(number);
        assertThat(cost.availability()).isEqualTo(Availability.IMMEDIATE);
        assertThat(tokens(cost, null)).isEqualTo(Math.max(number, 1));
        assertThat(failures).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"0.5", "1.5", "3 / 2.0", "-0.5", "1e-999999999"})
    void aFractionIsRejected(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestCost.of(text))
                .withMessage("A cost must be a whole number, but was " + text);
    }

    @Test
    void aConfiguredNumberHasAsciiDigits() {
        assertThatIllegalArgumentException().isThrownBy(() -> RequestCost.of("\u0663"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"'many'", "true", "null", "1 / 0", "{1, 2}", "1.0 / 0"})
    void aConstantThatIsNoNumberIsRejected(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestCost.of(text))
                .withMessage("A cost must be a number, but '" + text + "' is not a number");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "header('n')                  | 7     | 7",
                "header('n')                  | 1.5   | 2",
                "header('n')                  | 0.001 | 1",
                "header('n')                  | 1e3   | 1000",
                "header('n')                  | 1e999999999 | 9223372036854775807",
                "header('n')                  | 9223372036854775807 | 9223372036854775807",
                "header('n')                  | 9223372036854775808 | 9223372036854775807",
                "header('n')                  | 99999999999999999999999999999999999999999 | 9223372036854775807",
                "header('n')                  | +00000000000000000000000000000000000000000007 | 7",
                "header('n')                  | 0x00000000000000000000000000000000000000000007 | 7",
                "header('n')                  | 7.00000000000000000000000000000000000000000000 | 7",
                "header('n')                  | Infinity | 9223372036854775807",
                "header('n').length()         | 12345 | 5",
                "header('n').length() / 2.0   | 12345 | 3",
                "header('n').length() * 1.0e300 | 1   | 9223372036854775807",
                "header('n').length() * 3L    | 1     | 3",
                "header('n') == 'a' ? 10 : 2  | a     | 10",
                "header('n') == 'a' ? 10 : 2  | b     | 2",
            })
    void anExpressionIsRoundedUpAndSaturates(String text, String header, long tokens) {
        RequestCost cost = RequestCost.of(text);
        assertThat(cost.constant()).isNull();
        assertThat(tokens(cost, header)).isEqualTo(tokens);
        assertThat(failures).isEmpty();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "header('n')                  | 0     | below 1",
                "header('n')                  | -1    | below 1",
                "header('n')                  | -0.5  | below 1",
                "header('n')                  | -2147483648 | below 1",
                "header('n')                  | -1e999999999 | below 1",
                "header('n').length() - 2147483647 | 1 | below 1",
                "header('n')                  | many  | java.lang.NumberFormatException",
                "header('n')                  | NaN   | java.lang.NumberFormatException",
                "header('other')              | 5     | missing",
                "header('n')                  | \" \"   | missing",
                "header('n') == '5'           | 5     | java.lang.NumberFormatException",
                "0.0 / (header('n').length() - 1) | 5 | java.lang.NumberFormatException",
                "header('other').length()     | 5     | org.springframework.expression.spel.SpelEvaluationException METHOD_CALL_ON_NULL_OBJECT_NOT_ALLOWED",
                "1 / (header('n').length() - 1) | 5   | java.lang.ArithmeticException",
            })
    void anUnusableValueCountsAsOneAndIsReported(String text, String header, String why) {
        assertThat(tokens(RequestCost.of(text), header)).isEqualTo(1);
        assertThat(failures).containsExactly("policy: its cost, which counted as 1: " + why);
    }

    @Test
    void aNumberOfAHundredThousandDigitsIsTheLargest() {
        assertThat(tokens(RequestCost.of("header('n')"), "9".repeat(100_000))).isEqualTo(Long.MAX_VALUE);
        assertThat(tokens(RequestCost.of("header('n')"), "-" + "9".repeat(100_000)))
                .isEqualTo(1);
        assertThat(failures).containsExactly("policy: its cost, which counted as 1: below 1");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "header('n')                    | many | 50 | java.lang.NumberFormatException",
                "header('n')                    | NaN  | 50 | java.lang.NumberFormatException",
                "number(header('n')) / 10       | many | 50 | java.lang.IllegalStateException",
                "1 / (header('n').length() - 4) | many | 50 | java.lang.ArithmeticException",
                "header('n')                    | -5   | 1  | below 1",
                "header('n')                    | ''   | 1  | missing",
                "header('other')                | 5    | 1  | missing",
            })
    void aFailedEvaluationCountsAsTheMaximum(String text, String header, long tokens, String why) {
        assertThat(tokens(RequestCost.of(text).withMaximum(50), header)).isEqualTo(tokens);
        assertThat(failures).containsExactly("policy: its cost, which counted as " + tokens + ": " + why);
    }

    @Test
    void aLargerCostIsCappedAtTheMaximum() {
        assertThat(tokens(RequestCost.of("header('n')").withMaximum(50), "49")).isEqualTo(49);
        assertThat(tokens(RequestCost.of("header('n')").withMaximum(50), "51")).isEqualTo(50);
        assertThat(tokens(RequestCost.of("header('n')").withMaximum(50), "1e99"))
                .isEqualTo(50);
        assertThat(tokens(RequestCost.of("900").withMaximum(50), null)).isEqualTo(50);
    }

    @Test
    void hasADescription() {
        assertThat(RequestCost.of("900").describe()).isEqualTo("900 tokens a request");
        assertThat(RequestCost.of("900").withMaximum(50).describe()).isEqualTo("50 tokens a request");
        assertThat(RequestCost.of("header('n')").describe()).isEqualTo("header('n') tokens a request");
        assertThat(RequestCost.of("header('n')").withMaximum(50).describe())
                .isEqualTo("header('n') tokens a request, at most 50");
        assertThat(RequestCost.of("header('n')").withMaximum(50)).hasToString("header('n')");
    }

    private long tokens(RequestCost cost, String header) {
        Map<String, String> headers = new HashMap<>();
        headers.put("n", header);
        return cost.tokens(
                FixedFacts.NONE.withHeaders(headers),
                "policy",
                (policy, what, why) -> failures.add(policy + ": " + what + ": " + why));
    }
}
