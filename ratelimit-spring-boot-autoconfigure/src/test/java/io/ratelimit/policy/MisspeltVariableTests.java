package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.autoconfigure.CapturedStart;
import io.ratelimit.autoconfigure.YamlApplication;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Names of environment variables and system properties, which Spring Boot binds without a check. */
class MisspeltVariableTests extends CapturedStart {

    private static final String YAML = "ratelimit.policies.login.rate: 5/s";

    @ParameterizedTest
    @CsvSource({
        "RATELIMIT_BACKND, RATELIMIT_BACKEND",
        "RATELIMIT_MDOE, RATELIMIT_MODE",
        "RATELIMIT_REDIS_LOCALSHRE, RATELIMIT_REDIS_LOCALSHARE",
        "RATELIMIT_CLIENTIP_TRUSTED_PROXIES, RATELIMIT_CLIENTIP_TRUSTEDPROXIES",
        "RATELIMIT_CLIENTIP_TRUSTEDPROXY_0, RATELIMIT_CLIENTIP_TRUSTEDPROXIES",
        "RATELIMIT_ONBACKENDFAILRE, RATELIMIT_ONBACKENDFAILURE",
        "RATELIMIT_ENABLE, RATELIMIT_ENABLED",
        "RATELIMIT_POLICES_LOGIN_RATE, RATELIMIT_POLICIES_…",
        "RATELIMIT_LIMITS_LOGIN_RATE, RATELIMIT_POLICIES_…",
    })
    void aMisspeltVariableIsAWarning(String name, String meant) {
        assertThat(warnings(application().withVariable(name, "off")))
                .containsExactly("WARN The environment variable '" + name
                        + "' sets no property. It was probably meant to be '" + meant + "'. Correct or remove it");
    }

    @ParameterizedTest
    @CsvSource({
        "ratelimit.mdoe, ratelimit.mode",
        "ratelimit.redis.local-shre, ratelimit.redis.local-share",
        "ratelimit.excludepath[0], ratelimit.exclude-paths",
        "ratelimit.polices.login.rate, ratelimit.policies.…",
    })
    void aMisspeltSystemPropertyIsAWarning(String name, String meant) {
        assertThat(warnings(application().withSystemProperty(name, "off")))
                .containsExactly("WARN The system property '" + name
                        + "' sets no property. It was probably meant to be '" + meant + "'. Correct or remove it");
    }

    /** Kubernetes sets variables for a service named ratelimit, ratelimit-redis or ratelimit-jdbc. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "SERVICE_HOST",
                "SERVICE_PORT",
                "SERVICE_PORT_HTTP",
                "SERVICE_PORT_REDIS",
                "PORT",
                "PORT_8080_TCP",
                "PORT_8080_TCP_PROTO",
                "PORT_8080_TCP_PORT",
                "PORT_8080_TCP_ADDR"
            })
    void aVariableThatResemblesNoneIsNoWarning(String name) {
        for (String service : List.of("RATELIMIT_", "RATELIMIT_REDIS_", "RATELIMIT_JDBC_")) {
            assertThat(warnings(application().withVariable(service + name, "10.0.0.1")))
                    .as(service + name)
                    .isEmpty();
        }
    }

    @Test
    void aRightNameIsNoWarning() {
        assertThat(warnings(application()
                        .withVariable("RATELIMIT_MODE", "shadow")
                        .withVariable("RATELIMIT_ON_BACKEND_FAILURE", "deny")
                        .withVariable("RATELIMIT_CLIENTIP_TRUSTEDPROXIES_0", "10.0.0.0/8")
                        .withVariable("RATELIMIT_POLICIES_LOGIN_RATE", "6/s")
                        .withSystemProperty("ratelimit.exclude-paths[0]", "/health")
                        .withSystemProperty("ratelimit.clientIp.ipv6-prefix", "56")))
                .isEmpty();
    }

    private YamlApplication application() {
        return new YamlApplication(directory, YAML);
    }

    private List<String> warnings(YamlApplication application) {
        return application.log(output).stream()
                .filter(line -> line.contains("sets no property"))
                .toList();
    }
}
