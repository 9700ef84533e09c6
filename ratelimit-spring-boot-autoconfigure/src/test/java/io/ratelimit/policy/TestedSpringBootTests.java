package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** The warning of a version of Spring Boot that is not tested. */
@ExtendWith(OutputCaptureExtension.class)
class TestedSpringBootTests {

    @ParameterizedTest
    @ValueSource(strings = {"4.0.0", "4.0.0-RC2", "4.0.6"})
    void warnsOfASpringBootThatIsNotTested(String version, CapturedOutput output) {
        RateLimitEnabledCondition.warnOfUntested(version);
        assertThat(output)
                .contains(
                        "ratelimit is tested on Spring Boot 4.0.7 and later, but this application runs on Spring Boot "
                                + version + ": limits may not work. Upgrade to 4.0.7 or later");
    }

    @ParameterizedTest
    @ValueSource(strings = {"4.0.7", "4.0.10", "4.0.60", "4.1.0", "4.1.0-M1", "5.0.1"})
    void doesNotWarnOfATestedOne(String version, CapturedOutput output) {
        RateLimitEnabledCondition.warnOfUntested(version);
        assertThat(output).isEmpty();
    }
}
