package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatException;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.expression.spel.standard.SpelExpression;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.expression.spel.support.StandardEvaluationContext;

class ExactArithmeticTests {

    private final StandardEvaluationContext context = new StandardEvaluationContext();
    private final AtomicInteger calls = new AtomicInteger();

    ExactArithmeticTests() {
        context.setVariable("rows", 3_000_000);
        context.setVariable("long", 9_000_000_000_000_000L);
        context.setVariable("list", List.of(3_000_000, 1));
        context.setVariable("price", new BigDecimal("2.5"));
        context.setVariable("float", 2.5f);
        context.setVariable("name", "alice@example.org");
        context.setBeanResolver((any, name) -> new Source(calls));
    }

    public record Source(AtomicInteger calls) {

        public String text() {
            return "t" + calls.incrementAndGet();
        }

        public int number() {
            return calls.incrementAndGet();
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            commentCharacter = '~',
            value = {
                "T(java.lang.Math).max(1, #rows * 1000)           | 2147483647",
                "T(java.lang.Math).max(1, #rows * 1000 * 1000)    | 2147483647",
                "T(java.lang.Math).max(1, -#rows * 1000)          | 1",
                "T(java.lang.Math).max(1L, #long * 10000)         | 9223372036854775807",
                "T(java.lang.Math).max(1, true ? #rows * 1000 : 0) | 2147483647",
                "T(java.lang.Math).max(1, null ?: #rows * 1000)   | 2147483647",
                "T(java.lang.Math).max(1.0f, #float * 2)          | 5.0",
                "null ?: #rows * 1000                             | 3000000000",
                "-(#rows * 1000)                                  | -3000000000",
                "-(-2147483647 - 1)                               | 2147483648",
                "+(#rows * 1000)                                  | 3000000000",
                "!(#rows * 1000 > 5) ? 1 : 2                      | 2",
                "#list.![#this * 1000]                            | [3000000000, 1000]",
                "#list.?[#this * 1000 > 2147483647]               | [3000000]",
                "#list.^[#this * 1000 > 0]                        | 3000000",
                "#list.$[#this * 1000 > 0]                        | 1",
                "#list?.![#this * 1000]                           | [3000000000, 1000]",
                "#list[#rows - 2999999]                           | 1",
                "{#rows * 1000, {#rows}}                          | [3000000000, [3000000]]",
                "{'a': #rows * 1000}                              | {a=3000000000}",
                "(#rows * 1000).toString()                        | 2147483647",
                "(#rows * 1000) ^ 2                               | 9000000000000000000",
                "#rows ^ 2                                        | 9000000000000",
                "#rows * 1000 between {1, 2147483647}             | false",
                "(#rows + 'a') matches '3.*a'                     | true",
                "(#rows * 1000) instanceof T(java.math.BigInteger) | true",
                "(#price * 2).longValue()                         | 5",
                "#name.substring(#name.indexOf('@') + 1)          | example.org",
                "'a'.concat('b' + #name?.length())                | ab17",
                "2 - 1 == 1 and 'a' + 'b' == 'ab'                 | true",
                "'a' * 3                                          | aaa",
                "{1, -1}.contains(2 - 3)                          | true",
            })
    void numbersDoNotOverflowInAnyNode(String text, String value) {
        assertThat(value(text)).hasToString(value);
    }

    @ParameterizedTest
    @ValueSource(strings = {"new java.math.BigDecimal(#rows * 1000)", "#rows = #rows * 1000"})
    void aCalculationThatCantBeReplacedIsRejected(String text) {
        SpelExpression expression = parse(text);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ExactArithmetic.exact(expression))
                .withMessageContaining("can't contain a calculation");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            commentCharacter = '~',
            value = {
                "@bean.text() + '-' + 'a'                | t1-a | 1",
                "@bean.text() + @bean.text() + 'a'       | t1t2a | 2",
                "(@bean.text() + 'a') == 't1a'           | true | 1",
                "(@bean.text() + 'a') matches 't1a'      | true | 1",
                "{@bean.text() + 'a', 1}                 | [t1a, 1] | 1",
                "@bean.number() + 'a' + @bean.number()   | 1a2  | 2",
                "@bean.number() * 10 > 5 ? 'a' : 'b'     | a    | 1",
            })
    void anOperandIsEvaluatedOnce(String text, String value, int count) {
        assertThat(value(text)).hasToString(value);
        assertThat(calls).hasValue(count);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"#none + 'a'", "'a' + #none", "#none * 2", "-#none", "'a'.concat('b' + #none)", "#none - 1"})
    void aMissingOperandFails(String text) {
        assertThatException().isThrownBy(() -> value(text)).withMessage("an operand is missing");
    }

    @Test
    void hugeNumbersAreBounded() {
        context.setVariable("huge", BigInteger.TEN.pow(1_000));
        assertThat((BigInteger) value("#huge * #huge")).isGreaterThan(BigInteger.TEN.pow(1_200));
        assertThat((BigInteger) value("#huge * -#huge"))
                .isLessThan(BigInteger.TEN.pow(1_200).negate());
        assertThat(value("#huge * 0 * #huge")).isEqualTo(BigInteger.ZERO);
        assertThat(value("#huge ^ 1000000")).isEqualTo(Double.POSITIVE_INFINITY);
        assertThat(NumberText.ceiling(value("#huge ^ 1000000"))).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void anExpressionWithoutCalculationsIsReturnedUnchanged() {
        for (String text : List.of("#rows", "#list[0] > -1", "{-1, 2}", "#name matches 'a.*' ? #name : 'b'")) {
            SpelExpression parsed = parse(text);
            assertThat(ExactArithmetic.exact(parsed)).as(text).isSameAs(parsed);
        }
    }

    /** Compares with {@link BigInteger}; the repetition number is the seed. */
    @RepeatedTest(20)
    void agreesWithIntegersOfAnySize(RepetitionInfo run) {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        for (int i = 0; i < 200; i++) {
            StringBuilder text = new StringBuilder();
            BigInteger expected = sum(random, text, 4);
            String seed = "seed " + run.getCurrentRepetition() + ": " + text;
            assertThat(value(text.toString())).as(seed).hasToString(expected.toString());
            assertThat(value("{0, " + text + "}[1]")).as(seed).hasToString(expected.toString());
            assertThat(value("{1}.![" + text + "]")).as(seed).hasToString("[" + expected + "]");
        }
    }

    private static BigInteger sum(SplittableRandom random, StringBuilder text, int depth) {
        if (depth == 0 || random.nextInt(5) == 0) {
            int number = random.nextInt(Integer.MAX_VALUE);
            text.append(number).append(random.nextInt(3) == 0 ? "L" : "");
            return BigInteger.valueOf(number);
        }
        text.append('(');
        boolean negative = random.nextInt(4) == 0;
        text.append(negative ? "-" : "");
        BigInteger left = sum(random, text, depth - 1);
        BigInteger signed = negative ? left.negate() : left;
        int operator = random.nextInt(3);
        text.append(List.of(" + ", " - ", " * ").get(operator));
        BigInteger right = sum(random, text, depth - 1);
        text.append(')');
        return operator == 0 ? signed.add(right) : operator == 1 ? signed.subtract(right) : signed.multiply(right);
    }

    private Object value(String text) {
        return ExactArithmetic.exact(parse(text)).getValue(context, Map.of());
    }

    private static SpelExpression parse(String text) {
        return new SpelExpressionParser().parseRaw(text);
    }
}
