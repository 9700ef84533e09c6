package io.ratelimit.starter.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend.Condition;
import io.ratelimit.jdbc.TestDatabase;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** A pooler between the application and PostgreSQL, which may give a session of the server to several of them in turn. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class PoolerTests {

    private static final String YAML = """
            ratelimit:
              backend: jdbc
              on-backend-failure: deny
              jdbc: { initialize-schema: always, timeout: 5s, table: %s }
              policies:
                per-ip: { key: ip, rate: 1/1d, paths: /a }
            """;

    /** A setting would stay in the session of the server. The options of the user are kept. */
    @ParameterizedTest
    @CsvSource({
        "'', ''",
        "'', -c work_mem=5MB",
        "-c work_mem=4MB, ''",
        "-c work_mem=4MB, -c work_mem=5MB",
    })
    void theLimitsSetNothingInASession(String inProperties, String inUrl) throws Exception {
        String yaml = YAML.formatted(TestDatabase.newTable())
                + (inProperties.isEmpty()
                        ? ""
                        : "spring.datasource.hikari.data-source-properties.options: " + inProperties + "\n");
        try (TestPooler pooler = new TestPooler(false)) {
            String options = inUrl.isEmpty() ? "" : "&options=" + inUrl.replace(" ", "%20");
            try (JdbcApplication application = JdbcApplication.start(pooler.url() + options, yaml)) {
                assertThat(application.status("/a")).isEqualTo(200);
                assertThat(application.status("/a")).isEqualTo(429);
            }
            String ofUser = inUrl.isEmpty() ? inProperties : inUrl;
            assertThat(pooler.withOptions())
                    .filteredOn(connection -> connection.options().contains("statement_timeout"))
                    .isNotEmpty()
                    .allSatisfy(connection -> {
                        assertThat(connection.options())
                                .startsWith((ofUser + " -c synchronous_commit=off -c statement_timeout=").strip());
                        assertThat(connection.sent().toString())
                                .doesNotContain("statement_timeout", "synchronous_commit", "SESSION CHARACTERISTICS");
                    });
        }
    }

    @Test
    void aPoolerThatRefusesOptionsIsAMistakeThatTheLogNames(CapturedOutput output) throws Exception {
        try (TestPooler pooler = new TestPooler(true);
                JdbcApplication application =
                        JdbcApplication.start(pooler.url(), YAML.formatted(TestDatabase.newTable()))) {
            assertThat(application.status("/a")).isEqualTo(503);
            assertThat(application.condition()).isEqualTo(Condition.MISCONFIGURED);
            assertThat(output)
                    .contains(
                            "the database is misconfigured (a pooler in front of PostgreSQL refuses the options of the"
                                    + " limits' sessions (FATAL: unsupported startup parameter: options): let"
                                    + " 'ratelimit.jdbc.data-source' lead past it, or add 'options' to PgBouncer's"
                                    + " 'ignore_startup_parameters'");
        }
    }
}
