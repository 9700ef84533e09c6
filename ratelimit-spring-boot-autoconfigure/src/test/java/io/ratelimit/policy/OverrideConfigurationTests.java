package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.autoconfigure.CapturedStart;
import io.ratelimit.autoconfigure.YamlApplication;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry.Text;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.ConfigurableApplicationContext;

/** The reading of {@code overrides}. */
class OverrideConfigurationTests extends CapturedStart {

    private static final String OVERRIDE = "RATELIMIT_POLICIES_API_OVERRIDES_0_";

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
                "[alice, [bob]]                     | alice;bob",
                "['${none:carol}', dave]            | carol;dave",
            })
    void keysAreReadAsTheyAreWritten(String keys, String read) {
        assertThat(shown(bound("keys: " + keys + ", rate: 5/s"))).isEqualTo(read);
    }

    @Test
    void aBarIsNotASeparator() {
        assertThat(shown(bound("keys: [auth0|123], rate: 5/s"))).isEqualTo("auth0|123");
    }

    private static String shown(OverrideEntry override) {
        return String.join(
                ";",
                override.keys().stream()
                        .map(key ->
                                String.join("+", key.stream().map(Text::text).toList()))
                        .toList());
    }

    /** Binds the override of a policy whose key has as many parts as the override's keys. */
    private OverrideEntry bound(String override) {
        String key = override.startsWith("keys: [[") ? "[user, endpoint]" : "user";
        String yaml = "ratelimit.policies.api: { rate: 5/s, key: " + key + ", overrides: [ { " + override + " } ] }";
        try (ConfigurableApplicationContext context = new YamlApplication(directory, yaml).start()) {
            return context.getBean(RateLimitProperties.class)
                    .policies()
                    .get("api")
                    .overrides()
                    .get(0);
        }
    }

    @Test
    void keysThatDifferInCaseAreTwoWithoutIgnoreCase() {
        String yaml = yaml("key: user, ignore-case: false", "keys: [alice, ALICE], rate: 5/s");
        assertThat(new YamlApplication(directory, yaml).withWeb().log(output))
                .filteredOn(line -> !line.startsWith("INFO Rate limits: "))
                .containsExactly(
                        "INFO api: 20/1s, capacity 20, a bucket for each user, 2 of them overridden; all requests; after authentication");
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
                .withVariable(OVERRIDE + property, property.equals("RATE") ? "7/s" : "off");
        if (!property.startsWith("KEYS")) {
            application.withVariable(OVERRIDE + "KEYS_0", "alice");
        } else {
            application.withVariable(OVERRIDE + "RATE", "7/s");
        }
        try (ConfigurableApplicationContext context = application.start()) {
            List<OverrideEntry> overrides = context.getBean(RateLimitProperties.class)
                    .policies()
                    .get("api")
                    .overrides();
            assertThat(overrides).hasSize(1);
            assertThat(shown(overrides.get(0))).isEqualTo(property.startsWith("KEYS") ? "off" : "alice");
            assertThat(overrides.get(0).rate()).isEqualTo(property.equals("MODE") ? null : Rate.of("7/s"));
            assertThat(overrides.get(0).mode()).isEqualTo(property.equals("MODE") ? Mode.OFF : null);
        }
    }

    @Test
    void theSourceThatPrecedesHasTheWholeList() {
        String yaml = yaml("key: user", "keys: [alice, bob, carol], rate: 5/s");
        YamlApplication application = new YamlApplication(directory, yaml)
                .withVariable(OVERRIDE + "KEYS_0", "dave")
                .withVariable(OVERRIDE + "RATE", "7/s");
        try (ConfigurableApplicationContext context = application.start()) {
            assertThat(context.getBean(RateLimitProperties.class)
                            .policies()
                            .get("api")
                            .overrides())
                    .extracting(OverrideConfigurationTests::shown)
                    .containsExactly("dave");
        }
    }

    @Test
    void systemPropertiesMaySetThem() {
        YamlApplication application = new YamlApplication(directory, "ratelimit.policies.api: { rate: 5/s, key: user }")
                .withSystemProperty("ratelimit.policies.api.overrides[0].keys[0][0]", "a,b")
                .withSystemProperty("ratelimit.policies.api.overrides[0].mode", "off");
        try (ConfigurableApplicationContext context = application.start()) {
            OverrideEntry override = context.getBean(RateLimitProperties.class)
                    .policies()
                    .get("api")
                    .overrides()
                    .get(0);
            assertThat(shown(override)).isEqualTo("a,b");
        }
    }

    @Test
    void warnsOfAnEndpointThatDoesNotExist() {
        String yaml = yaml("key: [endpoint, user]", "keys: [[GET /exprot, alice], [none, bob]], rate: 5/s");
        assertThat(new YamlApplication(directory, yaml).withWeb().log(output))
                .hasSize(3)
                .endsWith("WARN 'ratelimit.policies.api.overrides[0].keys[0]' names the endpoint 'GET /exprot', which"
                        + " doesn't exist: the override applies to no request. The endpoints are: none");
    }

    private static String yaml(String policy, String override) {
        return "ratelimit.policies.api: { rate: 20/s, " + policy + ", overrides: [ { " + override + " } ] }";
    }
}
