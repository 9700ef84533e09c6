package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.autoconfigure.PolicyOverride.Text;
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
import org.springframework.context.ConfigurableApplicationContext;

/** How {@code overrides} are read, and what is printed where they are wrong. */
@ExtendWith(OutputCaptureExtension.class)
class OverrideConfigurationTests {

    private static final String AT = "ratelimit.policies.api.overrides[0]";

    @TempDir
    private Path directory;

    private CapturedOutput output;

    @BeforeEach
    void capture(CapturedOutput output) {
        this.output = output;
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "['a,b']                            | a,b",
                "[GET /export]                      | GET /export",
                "['\ud83d\ude00', ' x ', y]         | \ud83d\ude00; x ;y",
                "[10.0.0.0/8, 2001:db8::1]          | 10.0.0.0/8;2001:db8::1",
                "[[alice, GET /export]]             | alice+GET /export",
                "[['a,b', 'c,d'], [e, f]]           | a,b+c,d;e+f",
                "alice                              | alice",
                "'alice,bob'                        | alice;bob",
                "['12', 'true']                     | 12;true",
            })
    void keysAreReadAsTheyAreWritten(String keys, String read) {
        assertThat(shown(bound("keys: " + keys + ", rate: 5/s"))).isEqualTo(read);
    }

    @Test
    void aBarIsNoSeparator() {
        assertThat(shown(bound("keys: [auth0|123], rate: 5/s"))).isEqualTo("auth0|123");
    }

    private static String shown(PolicyOverride override) {
        return String.join(
                ";",
                override.keys().stream()
                        .map(key ->
                                String.join("+", key.stream().map(Text::text).toList()))
                        .toList());
    }

    private PolicyOverride bound(String override) {
        String yaml = "ratelimit.policies.api: { rate: 5/s, key: user, overrides: [ { " + override + " } ] }";
        try (ConfigurableApplicationContext context = new YamlApplication(directory, yaml).start()) {
            return context.getBean(RateLimitProperties.class)
                    .policies()
                    .get("api")
                    .overrides()
                    .get(0);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "007, 7, Integer, number",
        "1.10, 1.1, Double, number",
        "yes, true, Boolean, boolean",
        "12345678901, 12345678901, Long, number",
    })
    void whatYamlDoesNotReadAsTextNeedsQuotes(String key, String read, String type, String kind) {
        assertThat(failure("key: user", "keys: [" + key + "], rate: 5/s"))
                .contains("Property: " + AT + ".keys[0]\n", "Value: \"" + read + "\"")
                .contains("YAML has read it as a " + kind + ", perhaps not as it is written: put the key in quotes");
        assertThat(failure("key: [user, method]", "keys: [[alice, " + key + "]], rate: 5/s"))
                .contains("Property: " + AT + ".keys[0][1]\n")
                .contains("put the key in quotes");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "keys: [alice]                          | An override says nothing that differs from the policy.",
                "keys: [alice], mode: enforce           | An override says nothing that differs from the policy.",
                "keys: [alice], capacity: 5             | An override has a capacity but no rate.",
                "keys: [alice], mode: 'off', rate: 5/s  | An override has both a mode and a limit.",
                "keys: [alice], mode: enforce, rate: 5/s | An override has both a mode and a limit.",
                "keys: [alice], mode: shadow, capacity: 5 | An override has both a mode and a limit.",
                "rate: 5/s                              | An override names no keys.",
                "keys: [], mode: 'off'                  | An override names no keys.",
            })
    void anOverrideHasKeysAndEitherARateOrAMode(String override, String reason) {
        assertThat(failure("key: user", override)).startsWith("Description:\n\n" + reason + "\n\n    " + AT);
    }

    @Test
    void theReportSaysWhereItIsAndWhatToType() {
        assertThat(failure("key: user", "keys: [alice]")).isEqualTo("""
                Description:

                An override says nothing that differs from the policy.

                    ratelimit.policies.api.overrides[0].keys[0]: URL [file:application.yml] - 1:72

                Action:

                Say 'ratelimit.policies.api.overrides[0].rate: 100/1m' for another limit, or \
                'ratelimit.policies.api.overrides[0].mode: off' for none.""");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "key: ip             | keys: [1.2.3.4, alice], rate: 5/s | .keys[1] | 'alice' is neither an address nor a network: say",
                "key: ip             | keys: [10.0.0.1/8], rate: 5/s     | .keys[0] | say '10.0.0.0/8', or '10.0.0.1' for the one address",
                "key: ip             | keys: ['::/65'], rate: 5/s        | .keys[0] | '::/65' is smaller than what counts as one client: say '0:0:0:0::/64', or raise 'ratelimit.client-ip.ipv6-prefix'",
                "key: [ip, endpoint] | keys: [10.0.0.0/8], rate: 5/s     | .keys[0] | each of 'keys' must be a list of 2 texts: [ip, endpoint], as the policy's key is, but was one text",
                "key: [ip, endpoint] | keys: [[1.2.3.4, a, b]], rate: 5/s | .keys[0] | must be a list of 2 texts: [ip, endpoint], as the policy's key is, but was a list of 3",
                "key: user           | keys: [[alice, bob]], rate: 5/s   | .keys[0] | each of 'keys' must be one text, the user, as the policy's key is, but was a list of 2",
                "key: user           | keys: [' '], rate: 5/s            | .keys[0] | user must be more than blanks",
                "key: method         | keys: [get], rate: 5/s            | .keys[0] | 'get' is no method that HTTP defines",
                "key: user           | keys: [alice, ALICE], rate: 5/s   | .keys[1] | It is the same key as 'ratelimit.policies.api.overrides[0].keys[0]': name each key once.",
                "key: ip             | keys: [10.0.0.0/8, '::ffff:10.0.0.0/104'], rate: 5/s | .keys[1] | It is the same key as",
                "key: ip             | keys: ['2001:db8::1', '2001:db8::2'], rate: 5/s | .keys[1] | It is the same key as",
                "key: user           | keys: [alice], rate: 5/s, capacity: 0 | .capacity | capacity must be between 1 and 1,000,000,000,000, but was 0",
                "key: user, cost: 6  | keys: [alice], rate: 5/s          | .rate | capacity must be at least the cost of the policy, 6, but was 5: no request of these keys could ever be allowed",
                "key: user, cost: 6  | keys: [alice], rate: 9/s, capacity: 5 | .capacity | capacity must be at least the cost of the policy, 6, but was 5",
            })
    void aKeyOrALimitThatIsWrongIsNamed(String policy, String override, String property, String reason) {
        assertThat(failure(policy, override))
                .contains("for configuration property '" + AT + property + "'")
                .contains(reason);
    }

    @Test
    void anUnreadableRateIsNamed() {
        assertThat(failure("key: user", "keys: [alice], rate: 5/100"))
                .contains("Property: " + AT + ".rate\n")
                .contains("'100' has no unit: say '100ms', '100s'");
    }

    @Test
    void aKeyMayNotBeInTwoOverrides() {
        assertThat(failure("key: user", "keys: [alice], rate: 5/s }, { keys: [bob, Alice], mode: 'off'"))
                .contains("Invalid value 'Alice' for configuration property"
                        + " 'ratelimit.policies.api.overrides[1].keys[1]'")
                .contains("It is the same key as 'ratelimit.policies.api.overrides[0].keys[0]': name each key once.");
    }

    @Test
    void keysThatDifferInCaseAreTwoWhereThePolicySaysSo() {
        String yaml = yaml("key: user, ignore-case: false", "keys: [alice, ALICE], rate: 5/s");
        assertThat(new YamlApplication(directory, yaml).withWeb().log(output))
                .containsExactly(
                        "INFO Throttle policy 'api' is enforced: 20/1s, capacity 20, a bucket for each user, 2 of"
                                + " them overridden, in memory; all methods, all paths, after authentication");
    }

    @Test
    void aGlobalPolicyHasNoKeysToOverride() {
        assertThat(failure("cost: 1", "keys: [alice], rate: 5/s"))
                .startsWith("Description:\n\nThe throttle policy 'api' has overrides but no key: it has one bucket for"
                        + " all.\n\n    ratelimit.policies.api.overrides[0].keys[0]: ")
                .endsWith("Say whose limit differs, as in 'ratelimit.policies.api.key: ip', or remove the overrides.");
    }

    @Test
    void anUnknownProperty() {
        assertThat(failure("key: user", "key: [alice], rate: 5/s"))
                .contains("ratelimit.policies.api.overrides[0].key[0], with the value \"alice\"")
                .endsWith("\nAn override has: keys, rate, capacity, mode.");
    }

    /** The longer prefix is finer than what counts as one client unless more bits do. */
    @Test
    void moreBitsOfIpv6MayCount() {
        String yaml = yaml("key: ip", "keys: ['2001:db8::1', '2001:db8::2', '2001:db8::/65'], rate: 5/s");
        new YamlApplication(directory, yaml + "\nratelimit.client-ip.ipv6-prefix: 128")
                .withWeb()
                .start()
                .close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"KEYS_0", "KEYS_0_0", "RATE", "MODE"})
    void environmentVariablesMaySetThem(String property) {
        YamlApplication application = new YamlApplication(directory, "ratelimit.policies.api: { rate: 5/s, key: user }")
                .withVariable(
                        "RATELIMIT_POLICIES_API_OVERRIDES_0_" + property, property.equals("RATE") ? "7/s" : "off");
        try (ConfigurableApplicationContext context = application.start()) {
            assertThat(context.getBean(RateLimitProperties.class)
                            .policies()
                            .get("api")
                            .overrides())
                    .hasSize(1);
        }
    }

    @Test
    void systemPropertiesMaySetThem() {
        YamlApplication application = new YamlApplication(directory, "ratelimit.policies.api: { rate: 5/s, key: user }")
                .withSystemProperty("ratelimit.policies.api.overrides[0].keys[0][0]", "a,b")
                .withSystemProperty("ratelimit.policies.api.overrides[0].mode", "off");
        try (ConfigurableApplicationContext context = application.start()) {
            PolicyOverride override = context.getBean(RateLimitProperties.class)
                    .policies()
                    .get("api")
                    .overrides()
                    .get(0);
            assertThat(shown(override)).isEqualTo("a,b");
        }
    }

    @Test
    void anEnvironmentVariableThatIsMisspeltStopsTheStart() {
        assertThat(new YamlApplication(directory, "ratelimit.policies.api: { rate: 5/s, key: user }")
                        .withVariable("RATELIMIT_POLICIES_API_OVERRIDES_0_KYES_0", "alice")
                        .failure(output))
                .contains("ratelimit.policies.api.overrides[0].kyes[0], with the value \"alice\": System Environment"
                        + " Property \"RATELIMIT_POLICIES_API_OVERRIDES_0_KYES_0\"")
                .endsWith("\nAn override has: keys, rate, capacity, mode.");
    }

    @Test
    void warnsOfAnEndpointThatIsNotThere() {
        String yaml = yaml("key: [endpoint, user]", "keys: [[GET /exprot, alice], [none, bob]], rate: 5/s");
        assertThat(new YamlApplication(directory, yaml).withWeb().log(output))
                .hasSize(2)
                .endsWith(
                        "WARN 'ratelimit.policies.api.overrides[0].keys[0]' names the endpoint 'GET /exprot', and there"
                                + " is none of that name: the override holds for no request. Endpoints here: none");
    }

    private static String yaml(String policy, String override) {
        return "ratelimit.policies.api: { rate: 20/s, " + policy + ", overrides: [ { " + override + " } ] }";
    }

    private String failure(String policy, String override) {
        return new YamlApplication(directory, yaml(policy, override)).withWeb().failure(output);
    }
}
