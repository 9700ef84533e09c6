package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RequestConditionTests {

    private final List<String> failures = new ArrayList<>();

    @ParameterizedTest
    @CsvSource({"method == 'GET', true", "method == 'POST', false", "true, true", "user == null, true"})
    void matchesIfItIsTrue(String text, boolean matches) {
        assertThat(matches(text)).isEqualTo(matches);
        assertThat(failures).isEmpty();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "user              | neither true nor false",
                "method            | neither true nor false",
                "contentLength     | neither true nor false",
                "user.length() > 1 | org.springframework.expression.spel.SpelEvaluationException METHOD_CALL_ON_NULL_OBJECT_NOT_ALLOWED",
                "!method           | org.springframework.expression.spel.SpelEvaluationException TYPE_CONVERSION_ERROR",
            })
    void matchesIfItIsNeitherTrueNorFalse(String text, String why) {
        assertThat(matches(text)).isTrue();
        assertThat(failures).containsExactly("policy: its condition, so it applied: " + why);
    }

    @ParameterizedTest
    @ValueSource(strings = {"false", "1 > 2", "!true"})
    void aConditionThatIsAlwaysFalseIsRejected(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestCondition.of(text))
                .withMessage("'" + text
                        + "' is true for no request, so the policy would limit nothing. For that write 'mode: off'");
    }

    @ParameterizedTest
    @ValueSource(strings = {"'yes'", "1", "null", "1 / 0"})
    void aConstantThatIsNoBooleanIsRejected(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RequestCondition.of(text))
                .withMessageStartingWith("A condition must be true or false, but '" + text + "' is neither");
    }

    private boolean matches(String text) {
        return RequestCondition.of(text)
                .matches(
                        FixedFacts.NONE,
                        "policy",
                        (policy, what, why) -> failures.add(policy + ": " + what + ": " + why));
    }
}
