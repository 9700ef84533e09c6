package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.key.KeyResolver;
import io.ratelimit.key.RequestFacts;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** What is printed when a mistake in the configuration stops the start: all of it. */
@ExtendWith(OutputCaptureExtension.class)
class ConfigurationFailureTests {

    private static final String FILE = "URL [file:application.yml] - ";
    private static final String POLICY = "ratelimit:\n  policies:\n    api:\n      rate: 5/s\n      ";
    private static final String PROPERTIES =
            "Below 'ratelimit' there are: enabled, mode, backend, on-backend-failure, headers, exclude-paths, client-ip,"
                    + " filter, redis, policies.";
    private static final String POLICY_PROPERTIES =
            "\nA policy, whose name has no dot, has: rate, capacity, refill, cost, max-cost, tiers, tier, overrides, key,"
                    + " ignore-case, on-missing-key, max-keys, applies-to, paths, exclude-paths, methods, condition,"
                    + " phase, max-wait, queue-limit, refund-on, rejection-delay, retry-jitter, status, mode,"
                    + " backend, on-backend-failure.";

    @TempDir
    private Path directory;

    private CapturedOutput output;

    @BeforeEach
    void capture(CapturedOutput output) {
        this.output = output;
    }

    // The rate

    @Test
    void aPolicyWithoutARate() {
        assertThat(failure("""
                ratelimit:
                  policies:
                    api:
                      key: ip
                      capacity: 5
                """)).isEqualTo("""
                Description:

                The throttle policy 'api' has no rate.

                    ratelimit.policies.api.key: URL [file:application.yml] - 4:12
                    ratelimit.policies.api.capacity: URL [file:application.yml] - 5:17

                Action:

                Say how many tokens come back in which period: 'ratelimit.policies.api.rate: 600/1m', for example.""");
    }

    @Test
    void aPolicyWithoutAnything() {
        assertThat(failure("ratelimit:\n  policies:\n    api:")).isEqualTo("""
                Description:

                The throttle policy 'api' has no rate.

                    ratelimit.policies.api: URL [file:application.yml] - 3:9

                Action:

                Say how many tokens come back in which period: 'ratelimit.policies.api.rate: 600/1m', for example.""");
    }

    @Test
    void anEmptyPolicy() {
        assertThat(failure("ratelimit:\n  policies:\n    api: {}"))
                .startsWith("Description:\n\nThe throttle policy 'api' has no rate.\n");
    }

    @Test
    void aRateInPlaceOfAPolicy() {
        assertThat(failure("ratelimit:\n  policies:\n    api: 600/1m")).isEqualTo("""
                Description:

                'ratelimit.policies.api' has a value where the properties of a throttle policy belong.

                    ratelimit.policies.api: URL [file:application.yml] - 3:10

                Action:

                Write them below the policy's name: 'ratelimit.policies.api.rate: 600/1m', for example.""");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "5/100     | '100' has no unit: say '100ms', '100s'",
                "fast      | 'fast' is not a rate: say how many tokens in which period, such as '600/1m' or '10/s'",
                "/s        | '/s' is not a rate: say how many tokens in which period, such as '600/1m' or '10/s'",
                "5/        | '' is not a period: say us, ms, s, m, h or d (as in '100ms'), second, minute, hour or day, or ISO-8601 such as 'PT1M'",
                "5/1m30s   | '1m30s' is not a period: say us, ms, s, m, h or d (as in '100ms'), second, minute, hour or day, or ISO-8601 such as 'PT1M'",
                "5/1ns     | '1ns' is not a period: say us, ms, s, m, h or d (as in '100ms'), second, minute, hour or day, or ISO-8601 such as 'PT1M'",
                "5/PT      | 'PT' is not a period that can be read",
                "1.5/s     | '1.5/s' is not a rate: '1.5' is not a whole number of tokens that fits, say '600/1m'",
                "0/s       | the tokens of a rate must be at least 1, but was 0",
                "-5/s      | the tokens of a rate must be at least 1, but was -5",
                "5/0s      | the period of a rate must be between 1us and 365d, but was 0s",
                "5/PT-1M   | the period of a rate must be between 1us and 365d, but was -1m",
                "1/366d    | the period of a rate must be between 1us and 365d, but was 366d",
                "20000000000/s | a rate must be at most 10,000,000,000 tokens a second, but was 20000000000/1s",
                "99999999999999999999/s | '99999999999999999999/s' is not a rate: '99999999999999999999' is not a whole number of tokens that fits, say '600/1m'",
            })
    void aRateThatIsNone(String rate, String reason) {
        assertThat(failure("""
                ratelimit:
                  policies:
                    api:
                      rate: %s
                """.formatted(rate)))
                .isEqualTo(unreadable(
                        "ratelimit.policies.api.rate",
                        rate,
                        "4:13",
                        "io.ratelimit.Rate",
                        "java.lang.String to io.ratelimit.Rate",
                        "java.lang.IllegalArgumentException: " + reason));
    }

    @Test
    void aRateThatIsANumber() {
        assertThat(failure("ratelimit:\n  policies:\n    api:\n      rate: 5"))
                .isEqualTo(unreadable(
                        "ratelimit.policies.api.rate",
                        "5",
                        "4:13",
                        "io.ratelimit.Rate",
                        "java.lang.Integer to io.ratelimit.Rate",
                        "java.lang.IllegalArgumentException: '5' is not a rate: say how many tokens in which period,"
                                + " such as '600/1m' or '10/s'"));
    }

    @Test
    void aRateFromAPlaceholderThatNothingFills() {
        assertThat(failure("ratelimit:\n  policies:\n    api:\n      rate: ${MY_RATE}"))
                .isEqualTo(unreadable(
                        "ratelimit.policies.api.rate",
                        "${MY_RATE}",
                        "4:13",
                        "io.ratelimit.Rate",
                        "java.lang.String to io.ratelimit.Rate",
                        "java.lang.IllegalArgumentException: '${MY_RATE}' is not a rate: say how many tokens in which"
                                + " period, such as '600/1m' or '10/s'"));
    }

    @Test
    void aRateOfMoreTokensThanABucketCanHold() {
        assertThat(failure("ratelimit:\n  policies:\n    api:\n      rate: 1000000000001/1h"))
                .isEqualTo(invalid(
                        "ratelimit.policies.api.rate",
                        "1000000000001/1h",
                        "4:13",
                        "capacity must be between 1 and 1,000,000,000,000, but was 1000000000001"));
    }

    // Numbers

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "capacity: 0             | 17 | capacity must be between 1 and 1,000,000,000,000, but was 0",
                "capacity: -1            | 17 | capacity must be between 1 and 1,000,000,000,000, but was -1",
                "capacity: 1000000000001 | 17 | capacity must be between 1 and 1,000,000,000,000, but was 1000000000001",
                "capacity: 100000000     | 17 | the time from empty to full must be at most ten years, but was 100000000 tokens at 1000/1d: raise the rate or lower the capacity",
                "capacity: 1.5           | 17 | It must be a whole number, but was 1.5.",
                "cost: 1001              | 13 | cost must be at most the capacity of 'api', 1000, but was 1001: no request could ever be allowed",
                "max-cost: 0             | 17 | max-cost must be between 1 and the capacity of 'api', 1000, but was 0",
                "max-cost: 1001          | 17 | max-cost must be between 1 and the capacity of 'api', 1000, but was 1001",
                "max-cost: 1.5           | 17 | It must be a whole number, but was 1.5.",
                "max-keys: 0             | 17 | max-keys must be at least 1, but was 0",
                "max-keys: -1            | 17 | max-keys must be at least 1, but was -1",
                "status: 200             | 15 | status must be between 400 and 599, but was 200: clients would take the refusal for a success",
                "status: 399             | 15 | status must be between 400 and 599, but was 399: clients would take the refusal for a success",
                "status: 600             | 15 | status must be between 400 and 599, but was 600: clients would take the refusal for a success",
            })
    void aNumberOutsideItsDomain(String line, int column, String reason) {
        String[] property = line.split(": ");
        assertThat(failure("""
                ratelimit:
                  policies:
                    api:
                      rate: 1000/d
                      %s
                """.formatted(line)))
                .isEqualTo(invalid("ratelimit.policies.api." + property[0], property[1], "5:" + column, reason));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "capacity: many      | 17 | java.lang.Long | java.lang.String to java.lang.Long | java.lang.NumberFormatException: For input string: \"many\"",
                "cost: lots          | 13 | io.ratelimit.key.RequestCost | java.lang.String to io.ratelimit.key.RequestCost | java.lang.IllegalArgumentException: A request has no 'lots': there are method, path, endpoint, ip, user, roles, contentLength, header('NAME'), query('NAME'), cookie('NAME'), pathVariable('NAME') and number(TEXT)",
                "cost: 0.5           | 13 | io.ratelimit.key.RequestCost | java.lang.Double to io.ratelimit.key.RequestCost | java.lang.IllegalArgumentException: A cost must be a whole number, but was 0.5",
                "cost: true          | 13 | io.ratelimit.key.RequestCost | java.lang.Boolean to io.ratelimit.key.RequestCost | java.lang.IllegalArgumentException: A cost must be a number, but 'true' is none",
                "condition: false    | 18 | io.ratelimit.key.RequestCondition | java.lang.Boolean to io.ratelimit.key.RequestCondition | java.lang.IllegalArgumentException: 'false' is true for no request, so the policy would limit nothing. For that say 'mode: off'",
                "condition: 1        | 18 | io.ratelimit.key.RequestCondition | java.lang.Integer to io.ratelimit.key.RequestCondition | java.lang.IllegalArgumentException: A condition must be true or false, but '1' is neither: say \"method == 'POST'\"",
                "condition: user ==  | 18 | io.ratelimit.key.RequestCondition | java.lang.String to io.ratelimit.key.RequestCondition | java.lang.IllegalArgumentException: 'user ==' can't be read as an expression: EL1042E: Problem parsing right operand",
                "condition: user ==  | 18 | io.ratelimit.key.RequestCondition | java.lang.String to io.ratelimit.key.RequestCondition | java.lang.IllegalArgumentException: 'user ==' can't be read as an expression: EL1042E: Problem parsing right operand",
                "condition: path matches '(' | 18 | io.ratelimit.key.RequestCondition | java.lang.String to io.ratelimit.key.RequestCondition | java.lang.IllegalArgumentException: '(path matches '(')' has no pattern: Unclosed group",
                "condition: T(System).exit(0) | 18 | io.ratelimit.key.RequestCondition | java.lang.String to io.ratelimit.key.RequestCondition | java.lang.IllegalArgumentException: 'T(System)' can't be used in an expression of a policy, which sees the facts of the request alone: there are method, path, endpoint, ip, user, roles, contentLength, header('NAME'), query('NAME'), cookie('NAME'), pathVariable('NAME') and number(TEXT)",
                "max-keys: all       | 17 | int  | java.lang.String to @org.springframework.boot.context.properties.bind.DefaultValue int | java.lang.NumberFormatException: For input string: \"all\"",
                "max-keys: 2147483648 | 17 | int | java.lang.Long to @org.springframework.boot.context.properties.bind.DefaultValue int | java.lang.IllegalArgumentException: Could not convert number [2147483648] of type [java.lang.Long] to target class [java.lang.Integer]: overflow",
                "status: teapot      | 15 | int  | java.lang.String to @org.springframework.boot.context.properties.bind.DefaultValue int | java.lang.NumberFormatException: For input string: \"teapot\"",
                "ignore-case: maybe  | 20 | boolean | java.lang.String to @org.springframework.boot.context.properties.bind.DefaultValue boolean | java.lang.IllegalArgumentException: Invalid boolean value 'maybe'",
            })
    void aValueThatIsNoNumberOrBoolean(String line, int column, String type, String conversion, String reason) {
        assertThat(policy(line)).isEqualTo(unreadable(line, column, type, conversion, reason));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "5ms     | '5ms' is not a retry jitter: say the least and the most, such as '1ms-5ms'",
                "5ms-1ms | the least retry jitter must be at most the most, 1ms, but was 5ms",
                "1us-2us | the least retry jitter must be whole milliseconds from 0ms on, but was 1us",
                "-1ms-5ms | '-1ms-5ms' is not a retry jitter: say the least and the most, such as '1ms-5ms'",
                "1-5     | '1' has no unit: say '1ms', '1s'",
                "1ms-25h | the most retry jitter must be at most 1d, but was 25h",
            })
    void aRetryJitterThatIsNone(String jitter, String reason) {
        assertThat(policy("retry-jitter: " + jitter))
                .isEqualTo(unreadable(
                        "retry-jitter: " + jitter,
                        21,
                        "io.ratelimit.RetryJitter",
                        "java.lang.String to io.ratelimit.RetryJitter",
                        "java.lang.IllegalArgumentException: " + reason));
    }

    // Waiting

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "5      | java.lang.Integer | '5' has no unit: say '5ms', '5s'",
                "0      | java.lang.Integer | '0' has no unit: say '0ms', '0s'",
                "true   | java.lang.Boolean | 'true' is not a period: say us, ms, s, m, h or d (as in '100ms'), second, minute, hour or day, or ISO-8601 such as 'PT1M'",
                "-5s    | java.lang.String | max-wait must be between 0 and 365 days, but was -5s",
                "PT-5S  | java.lang.String | max-wait must be between 0 and 365 days, but was -5s",
                "366d   | java.lang.String | max-wait must be between 0 and 365 days, but was 366d",
                "1m30s  | java.lang.String | '1m30s' is not a period: say us, ms, s, m, h or d (as in '100ms'), second, minute, hour or day, or ISO-8601 such as 'PT1M'",
            })
    void aWaitThatIsNone(String wait, String type, String reason) {
        assertThat(policy("max-wait: " + wait))
                .isEqualTo(unreadable(
                        "max-wait: " + wait,
                        17,
                        "io.ratelimit.autoconfigure.MaxWait",
                        type + " to io.ratelimit.autoconfigure.MaxWait",
                        "java.lang.IllegalArgumentException: " + reason));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, -1})
    void aQueueThatHoldsNobody(int limit) {
        assertThat(policy("max-wait: 2s\n      queue-limit: " + limit))
                .isEqualTo(invalid(
                        "ratelimit.policies.api.queue-limit",
                        Integer.toString(limit),
                        "6:20",
                        "queue-limit must be at least 1, but was " + limit));
    }

    @Test
    void aQueueWhereNobodyWaits() {
        assertThat(policy("queue-limit: 5")).isEqualTo("""
                Description:

                The throttle policy 'api' has a queue-limit, but lets no request wait.

                    ratelimit.policies.api.queue-limit: URL [file:application.yml] - 5:20

                Action:

                Say for how long they may, as in 'ratelimit.policies.api.max-wait: 2s', or remove the queue-limit.""");
    }

    @Test
    void aRetryJitterThatIsANumber() {
        assertThat(policy("retry-jitter: 5"))
                .isEqualTo(unreadable(
                        "retry-jitter: 5",
                        21,
                        "io.ratelimit.RetryJitter",
                        "java.lang.Integer to io.ratelimit.RetryJitter",
                        "java.lang.IllegalArgumentException: '5' is not a retry jitter: say the least and the most,"
                                + " such as '1ms-5ms'"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "-2s   | rejection-delay must be between 0s and 1m, but was -2s",
                "61s   | rejection-delay must be between 0s and 1m, but was 61s",
                "PT-2S | rejection-delay must be between 0s and 1m, but was -2s",
                "2000d | rejection-delay must be between 0s and 1m, but was 2000d",
                "2x    | '2x' is not a period: say us, ms, s, m, h or d (as in '100ms'), second, minute, hour or day, or ISO-8601 such as 'PT1M'",
                "late  | 'late' is not a period: say us, ms, s, m, h or d (as in '100ms'), second, minute, hour or day, or ISO-8601 such as 'PT1M'",
            })
    void aRejectionDelayThatIsNone(String delay, String reason) {
        assertThat(policy("rejection-delay: " + delay))
                .isEqualTo(unreadable(
                        "rejection-delay: " + delay,
                        24,
                        "io.ratelimit.web.servlet.RejectionDelay",
                        "java.lang.String to io.ratelimit.web.servlet.RejectionDelay",
                        "java.lang.IllegalArgumentException: " + reason));
    }

    /** A number alone would be milliseconds elsewhere in Spring Boot, and seconds to some who read it. */
    @ParameterizedTest
    @ValueSource(strings = {"500", "0"})
    void aRejectionDelayWithoutAUnit(String delay) {
        assertThat(policy("rejection-delay: " + delay))
                .isEqualTo(unreadable(
                        "rejection-delay: " + delay,
                        24,
                        "io.ratelimit.web.servlet.RejectionDelay",
                        "java.lang.Integer to io.ratelimit.web.servlet.RejectionDelay",
                        "java.lang.IllegalArgumentException: '" + delay + "' has no unit: say '" + delay + "ms', '"
                                + delay + "s'"));
    }

    // Choices

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "mode: shade          | 13 | io.ratelimit.ThrottlePolicy$Mode  | ENFORCE OFF SHADOW",
                "refill: greedily     | 15 | io.ratelimit.BucketSpec$Refill    | GREEDY INTERVAL",
                "on-missing-key: ip   | 23 | io.ratelimit.key.MissingKey       | CLIENT_IP DENY SHARED SKIP",
            })
    void aChoiceOfAPolicyThatIsNone(String line, int column, String type, String valid) {
        assertThat(policy(line))
                .isEqualTo(unreadable(
                                line,
                                column,
                                type,
                                "java.lang.String to " + type,
                                "java.lang.IllegalArgumentException: No enum constant " + type.replace('$', '.') + "."
                                        + line.substring(line.indexOf(' ') + 1))
                        + validValues(valid));
    }

    @Test
    void aPhaseThatIsNone() {
        assertThat(policy("phase: early"))
                .isEqualTo(unreadable(
                                "phase: early",
                                14,
                                "io.ratelimit.web.servlet.Phase",
                                "java.lang.String to io.ratelimit.web.servlet.Phase",
                                "java.lang.IllegalArgumentException: No enum constant"
                                        + " io.ratelimit.web.servlet.Phase.early")
                        + validValues("AFTER_AUTHENTICATION BEFORE_AUTHENTICATION"));
    }

    /** To YAML 'on' is a boolean. */
    @Test
    void aModeThatIsOn() {
        assertThat(policy("mode: on"))
                .isEqualTo(unreadable(
                                "mode: true",
                                13,
                                "io.ratelimit.ThrottlePolicy$Mode",
                                "java.lang.Boolean to io.ratelimit.ThrottlePolicy$Mode",
                                "java.lang.IllegalArgumentException: No enum constant"
                                        + " io.ratelimit.ThrottlePolicy.Mode.true")
                        + validValues("ENFORCE OFF SHADOW"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "mode: enforced    |  9 | io.ratelimit.ThrottlePolicy$Mode                              | ENFORCE OFF SHADOW",
                "headers: draft-12 | 12 | io.ratelimit.autoconfigure.RateLimitProperties$Headers | DRAFT_11 NONE X_RATELIMIT",
            })
    void aChoiceOfTheApplicationThatIsNone(String line, int column, String type, String valid) {
        String[] property = line.split(": ");
        assertThat(failure("ratelimit:\n  " + line))
                .isEqualTo(unreadable(
                                "ratelimit." + property[0],
                                property[1],
                                "2:" + column,
                                type,
                                "java.lang.String to @org.springframework.boot.context.properties.bind.DefaultValue "
                                        + type,
                                "java.lang.IllegalArgumentException: No enum constant " + type.replace('$', '.') + "."
                                        + property[1])
                        + validValues(valid));
    }

    /** Were it taken for false, limits would be off in silence. */
    @Test
    void enabledThatIsNoBoolean() {
        assertThat(failure("ratelimit:\n  enabled: maybe"))
                .isEqualTo(unreadable(
                        "ratelimit.enabled",
                        "maybe",
                        "2:12",
                        "boolean",
                        "java.lang.String to @org.springframework.boot.context.properties.bind.DefaultValue boolean",
                        "java.lang.IllegalArgumentException: Invalid boolean value 'maybe'"));
    }

    // The key

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "usr          | 'usr' is not a part of a key: say ip, user, endpoint, method, session, header:NAME, cookie:NAME, query:NAME, path-variable:NAME, bean:NAME or expression:SPEL",
                "User         | 'User' is not a part of a key: say ip, user, endpoint, method, session, header:NAME, cookie:NAME, query:NAME, path-variable:NAME, bean:NAME or expression:SPEL",
                "header       | 'header' is not a part of a key: say ip, user, endpoint, method, session, header:NAME, cookie:NAME, query:NAME, path-variable:NAME, bean:NAME or expression:SPEL",
                "cookies:sid  | 'cookies:sid' is not a part of a key: say ip, user, endpoint, method, session, header:NAME, cookie:NAME, query:NAME, path-variable:NAME, bean:NAME or expression:SPEL",
                "header:X Api | 'header:X Api' has no header's name after the colon: say 'header:X-Api-Key'",
                "expression:usr | A request has no 'usr': there are method, path, endpoint, ip, user, roles, contentLength, header('NAME'), query('NAME'), cookie('NAME'), pathVariable('NAME') and number(TEXT)",
                "header:Ä     | 'header:Ä' has no header's name after the colon: say 'header:X-Api-Key'",
            })
    void aPartOfAKeyThatIsNone(String part, String reason) {
        assertThat(policy("key: " + part))
                .isEqualTo(unreadable(
                        "key: " + part,
                        12,
                        "java.util.List<io.ratelimit.key.KeyPart>",
                        "java.lang.String to io.ratelimit.key.KeyPart",
                        "java.lang.IllegalArgumentException: " + reason));
    }

    @Test
    void aPartOfAKeyThatIsNoneInAList() {
        assertThat(policy("key: [ip, usr]"))
                .isEqualTo(
                        unreadable(
                                "ratelimit.policies.api.key[1]",
                                "usr",
                                "5:17",
                                "io.ratelimit.key.KeyPart",
                                "java.lang.String to io.ratelimit.key.KeyPart",
                                "java.lang.IllegalArgumentException: 'usr' is not a part of a key: say ip, user, endpoint,"
                                        + " method, session, header:NAME, cookie:NAME, query:NAME, path-variable:NAME, bean:NAME or expression:SPEL"));
    }

    @Test
    void anExpressionThatIsCutAtItsComma() {
        assertThat(policy("key: expression:path.substring(0, 3)"))
                .contains("Value: \"expression:path.substring(0, 3)\"")
                .contains("'path.substring(0' can't be read as an expression: ")
                .contains(". If it was cut at a comma, write the key as a list: [\"expression:...\"])");
    }

    @Test
    void aPartOfAKeyTwice() {
        assertThat(policy("key: [ip, user, ip]")).isEqualTo("""
                Description:

                Invalid value 'ip, user, ip' for configuration property 'ratelimit.policies.api.key'. \
                Validation failed for the following reason:

                key must name each part once

                Action:

                Review the value of the property with the provided reason.""");
    }

    @Test
    void aHeaderAsAMapping() {
        assertThat(failure("""
                ratelimit:
                  policies:
                    api:
                      rate: 5/s
                      key:
                        - header: X-Api-Key
                """))
                .isEqualTo(unknown(
                        "ratelimit.policies.api.key[0].header, with the value \"X-Api-Key\": " + FILE + "6:19",
                        POLICY_PROPERTIES));
    }

    @Test
    void aUserKeyBeforeAuthentication() {
        assertThat(webFailure("""
                ratelimit:
                  policies:
                    api:
                      rate: 5/s
                      key: [endpoint, user]
                      phase: before-authentication
                """))
                .isEqualTo(invalid(
                        "ratelimit.policies.api.phase",
                        "before-authentication",
                        "6:14",
                        "The key has the part 'user', which nobody knows before authentication: all requests would share"
                                + " one bucket. Remove the phase, or count by 'ip'."));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "key: expression:user + method | The key has the part 'expression:user + method', which nobody knows before authentication: all requests would share one bucket. Remove the phase, or count by 'ip'.",
                "cost: roles.size() | The cost 'roles.size()' asks for the user, whom nobody knows before authentication. Remove the phase, or what asks for the user.",
                "condition: user == null | The condition 'user == null' asks for the user, whom nobody knows before authentication. Remove the phase, or what asks for the user.",
            })
    void anExpressionThatAsksForTheUserBeforeAuthentication(String line, String reason) {
        assertThat(webPolicy("phase: before-authentication\n      " + line))
                .isEqualTo(invalid("ratelimit.policies.api.phase", "before-authentication", "5:14", reason));
    }

    @Test
    void aBeanThatIsNotThere() {
        assertThat(new YamlApplication(directory, POLICY + "key: [ip, \"bean:tenant\"]")
                        .withWeb(Resolvers.class)
                        .failure(output))
                .isEqualTo("""
                        Description:

                        'ratelimit.policies.api.key' names a bean, but there is no bean 'tenant'.

                            ratelimit.policies.api.key[0]: URL [file:application.yml] - 5:13
                            ratelimit.policies.api.key[1]: URL [file:application.yml] - 5:17

                        Action:

                        Name one of the beans of the type io.ratelimit.key.KeyResolver: tenantKey, userKey.""");
    }

    @Test
    void aBeanThatIsNoResolver() {
        assertThat(webPolicy("key: bean:environment")).isEqualTo("""
                Description:

                'ratelimit.policies.api.key' names a bean, but the bean 'environment' is no KeyResolver.

                    ratelimit.policies.api.key: URL [file:application.yml] - 5:12

                Action:

                Declare a bean of the type io.ratelimit.key.KeyResolver, and name it.""");
    }

    // Where

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "paths: api/**               | 14 | api/**         | api/**",
                "exclude-paths: api          | 22 | api            | api",
                "paths: /a,api/**            | 14 | /a,api/**      | api/**",
            })
    void aPathPatternWithoutASlash(String line, int column, String value, String pattern) {
        assertThat(webPolicy(line))
                .isEqualTo(invalid(
                        "ratelimit.policies.api." + line.substring(0, line.indexOf(':')),
                        value,
                        "5:" + column,
                        "A path pattern must begin with '/', as in '/api/**', but was '" + pattern
                                + "', which would match nothing."));
    }

    @Test
    void aPathPatternWithoutASlashInAList() {
        assertThat(webPolicy("paths: [/a, api/**]"))
                .isEqualTo(invalid(
                        "ratelimit.policies.api.paths[1]",
                        "api/**",
                        "5:19",
                        "A path pattern must begin with '/', as in '/api/**', but was 'api/**', which would match"
                                + " nothing."));
    }

    @Test
    void anExcludedPathOfTheApplicationWithoutASlash() {
        assertThat(webFailure("ratelimit:\n  exclude-paths: health"))
                .isEqualTo(invalid(
                        "ratelimit.exclude-paths",
                        "health",
                        "2:18",
                        "A path pattern must begin with '/', as in '/api/**', but was 'health', which would match"
                                + " nothing."));
    }

    @Test
    void aPathPatternThatCannotBeRead() {
        assertThat(webPolicy("paths: ['/items/{id']"))
                .isEqualTo(invalid("ratelimit.policies.api.paths[0]", "/items/{id", "5:15", """
                        /items/{id
                                  ^
                        Expected close capture character after variable name }
                        """.stripTrailing()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"get", "Get", "P OST"})
    void aMethodThatIsNone(String method) {
        assertThat(webPolicy("methods: " + method))
                .isEqualTo(invalid(
                        "ratelimit.policies.api.methods",
                        method,
                        "5:16",
                        "A method must be in capital letters, as in 'GET' or 'POST', but was '" + method
                                + "', which would match nothing."));
    }

    @Test
    void aMethodThatIsNoneInAList() {
        assertThat(webPolicy("methods: [GET, post]"))
                .isEqualTo(invalid(
                        "ratelimit.policies.api.methods[1]",
                        "post",
                        "5:22",
                        "A method must be in capital letters, as in 'GET' or 'POST', but was 'post', which would match"
                                + " nothing."));
    }

    // Names

    @Test
    void anUnknownPropertyOfTheApplication() {
        assertThat(failure("ratelimit:\n  backends: redis"))
                .isEqualTo(unknown("ratelimit.backends, with the value \"redis\": " + FILE + "2:13", ""));
    }

    @Test
    void policiesMisspelt() {
        assertThat(failure("ratelimit:\n  polices:\n    api: { rate: 5/s }"))
                .isEqualTo(unknown("ratelimit.polices.api.rate, with the value \"5/s\": " + FILE + "3:18", ""));
    }

    @Test
    void anUnknownPropertyOfAPolicy() {
        assertThat(policy("burst: 7"))
                .isEqualTo(unknown(
                        "ratelimit.policies.api.burst, with the value \"7\": " + FILE + "5:14", POLICY_PROPERTIES));
    }

    @Test
    void anUnknownPropertyOfTheFilter() {
        assertThat(failure("ratelimit.filter.order: 7"))
                .isEqualTo(unknown(
                        "ratelimit.filter.order, with the value \"7\": " + FILE + "1:25",
                        "\nBelow 'filter' there are: after-authentication-order."));
    }

    @Test
    void anUnknownPropertyOfRedis() {
        assertThat(failure("ratelimit.redis.host: here"))
                .isEqualTo(unknown(
                        "ratelimit.redis.host, with the value \"here\": " + FILE + "1:23",
                        "\nBelow 'redis' there are: key-prefix, key-secret, timeout, strategy, local-share."));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "timeout     | 0s  | 0s     | timeout must be between 1ms and 10s, but was 0ms: so long a request may wait for Redis",
                "timeout     | 11s | 11s    | timeout must be between 1ms and 10s, but was 11000ms: so long a request may wait for Redis",
                "local-share | 0   | 0      | local-share must be above 0 and at most 1, but was 0.0: say 0.25 where there are four instances",
                "local-share | 4   | 4      | local-share must be above 0 and at most 1, but was 4.0: say 0.25 where there are four instances",
                "key-prefix  | ' ' | ' '    | key-prefix must be more than blanks: without it the name of the application is taken",
                "key-secret  | ' ' | ' '    | key-secret must be more than blanks, for it would hide nothing: remove it where none is wanted",
            })
    void aValueForRedisThatCanNotWork(String property, String written, String value, String reason) {
        String yaml = "ratelimit.redis." + property + ": '" + written + "'";
        assertThat(failure(yaml))
                .isEqualTo(invalid("ratelimit.redis." + property, value, "1:" + (yaml.indexOf(":") + 3), reason));
    }

    @Test
    void aPolicyWithADotInItsName() {
        assertThat(failure("""
                ratelimit:
                  policies:
                    api: { rate: 5/s }
                    my.api: { rate: 6/s }
                """))
                .isEqualTo(unknown(
                        "ratelimit.policies.my.api.rate, with the value \"6/s\": " + FILE + "4:21", POLICY_PROPERTIES));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "Api",
                "my_api",
                "-api",
                "api/v1",
                "api key",
                "löschen",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            })
    void aNameThatIsNone(String name) {
        assertThat(failure("ratelimit:\n  policies:\n    " + name + ":\n      rate: 5/s"))
                .isEqualTo(badName(name, "ratelimit.policies." + name + ".rate", "4:13"));
    }

    /** In brackets a name is bound as it is. */
    @Test
    void aNameInBracketsThatIsNone() {
        assertThat(failure("ratelimit:\n  policies:\n    '[my.api]': { rate: 5/s }"))
                .isEqualTo(badName("my.api", "ratelimit.policies[my.api].rate", "3:25"));
    }

    @Test
    void theLongestNameIsANameStill() {
        new YamlApplication(directory, "ratelimit.policies." + "a".repeat(64) + ".rate: 5/s")
                .start()
                .close();
    }

    @Test
    void twoNamesThatAreEqualWithoutTheirDashes() {
        assertThat(failure("""
                ratelimit:
                  policies:
                    peruser: { rate: 5/s }
                    per-user: { rate: 6/s }
                """))
                .isEqualTo(twins(
                        "ratelimit.policies.peruser.rate: " + FILE + "3:22",
                        "ratelimit.policies.per-user.rate: " + FILE + "4:23"));
    }

    @Test
    void aVariableThatAddsATwin() {
        YamlApplication application = new YamlApplication(directory, "ratelimit.policies.per-user.rate: 5/s")
                .withVariable("RATELIMIT_POLICIES_PERUSER_RATE", "600/s");

        assertThat(application.failure(output))
                .isEqualTo(twins(
                        "RATELIMIT_POLICIES_PERUSER_RATE: System Environment Property"
                                + " \"RATELIMIT_POLICIES_PERUSER_RATE\"",
                        "ratelimit.policies.per-user.rate: " + FILE + "1:35"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "RATELIMIT_POLICIES_LOGIN_RATE",
                "RATELIMIT_POLICIES_PER_USER_RATE",
                "RATELIMIT_POLICIES_API_RAET",
                "RATELIMIT_POLICIES_API_KEY_RATE",
                "ratelimit_policies_login_rate"
            })
    void aVariableThatSetsNoPropertyOfANamedPolicy(String variable) {
        YamlApplication application =
                new YamlApplication(directory, "ratelimit.policies.api.rate: 5/s").withVariable(variable, "600/s");

        assertThat(application.failure(output))
                .isEqualTo(outside("environment variable", variable, "Named there: api."));
    }

    @Test
    void aVariableThatNamesTheOnlyPolicy() {
        YamlApplication application = new YamlApplication(directory, "server.port: 0")
                .withVariable("RATELIMIT_POLICIES_PER_USER_RATE", "600/s");

        assertThat(application.failure(output))
                .isEqualTo(outside("environment variable", "RATELIMIT_POLICIES_PER_USER_RATE", "None is named there."));
    }

    @ParameterizedTest
    @ValueSource(strings = {"ratelimit.policies.login.rate", "ratelimit.policies.api.raet"})
    void aSystemPropertyThatSetsNoPropertyOfANamedPolicy(String property) {
        YamlApplication application =
                new YamlApplication(directory, "ratelimit.policies.api.rate: 5/s").withSystemProperty(property, "6/s");

        assertThat(application.failure(output)).isEqualTo(outside("system property", property, "Named there: api."));
    }

    private String failure(String yaml) {
        return new YamlApplication(directory, yaml).failure(output);
    }

    private String policy(String line) {
        return failure(POLICY + line);
    }

    /** What only a web application needs is read only there. */
    private String webFailure(String yaml) {
        return new YamlApplication(directory, yaml).withWeb().failure(output);
    }

    private String webPolicy(String line) {
        return webFailure(POLICY + line);
    }

    // The reports

    private static String invalid(String property, String value, String position, String reason) {
        return """
                Description:

                Invalid value '%s' for configuration property '%s' (originating from '%s'). \
                Validation failed for the following reason:

                %s

                Action:

                Review the value of the property with the provided reason.""".formatted(value, property, FILE + position, reason);
    }

    private static String unreadable(String line, int column, String type, String conversion, String reason) {
        int colon = line.indexOf(": ");
        return unreadable(
                "ratelimit.policies.api." + line.substring(0, colon),
                line.substring(colon + 2),
                "5:" + column,
                type,
                conversion,
                reason);
    }

    private static String unreadable(
            String property, String value, String position, String type, String conversion, String reason) {
        return """
                Description:

                Failed to bind properties under '%s' to %s:

                    Property: %s
                    Value: "%s"
                    Origin: %s
                    Reason: failed to convert %s (caused by %s)

                Action:

                Update your application's configuration""".formatted(property, type, property, value, FILE + position, conversion, reason);
    }

    private static String validValues(String values) {
        return ". The following values are valid:\n\n    " + values.replace(" ", "\n    ");
    }

    private static String unknown(String property, String more) {
        return """
                Description:

                There is no such property of rate limiting:

                    %s

                Action:

                Correct or remove what is misspelt. %s""".formatted(property, PROPERTIES + more);
    }

    private static String badName(String name, String property, String position) {
        return """
                Description:

                '%s' can't be the name of a throttle policy: a name has lower-case letters, digits and dashes, 64 at \
                most, and begins with a letter or a digit.

                    %s: %s

                Action:

                Rename the policy, for example to 'ratelimit.policies.per-user'.""".formatted(name, property, FILE + position);
    }

    private static String twins(String one, String other) {
        return """
                Description:

                The throttle policies 'per-user' and 'peruser' have the same name but for dashes. An environment \
                variable can't spell a dash: it changes one policy and adds another.

                    %s
                    %s

                Action:

                Remove or rename one of them. To set a value from the environment, use a placeholder in the \
                application's configuration: 'rate: ${MY_RATE:600/1m}'.""".formatted(one, other);
    }

    private static String outside(String kind, String property, String named) {
        return """
                Description:

                The %s '%s' sets no property of a throttle policy that the application's configuration names. Most \
                often that is a misspelling: it would change nothing, or add a policy that limits the whole site.

                Action:

                Correct or remove the %s, or name the policy in the application's configuration. %s To set a value \
                from the environment, use a placeholder there: 'rate: ${MY_RATE:600/1m}'.""".formatted(kind, property, kind, named);
    }

    @Configuration(proxyBeanMethods = false)
    @Import(YamlApplication.WebMvc.class)
    static class Resolvers {

        @Bean
        KeyResolver tenantKey() {
            return request -> request.header("X-Tenant");
        }

        @Bean
        KeyResolver userKey() {
            return RequestFacts::user;
        }
    }
}
