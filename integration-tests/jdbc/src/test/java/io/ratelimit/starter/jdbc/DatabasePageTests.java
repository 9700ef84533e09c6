package io.ratelimit.starter.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.jdbc.JdbcStorage;
import io.ratelimit.jdbc.TestDatabase;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The examples of {@code docs/database.md}. */
@Tag("slow")
class DatabasePageTests {

    private static final Path PAGE = Path.of("../../docs/database.md");

    private static List<String> blocks(String language) throws IOException {
        return Pattern.compile("(?ms)^```" + language + "$\\R(.*?)^```$")
                .matcher(Files.readString(PAGE))
                .results()
                .map(block -> block.group(1))
                .toList();
    }

    @Test
    void theConfigurationLimits() throws IOException {
        List<String> examples = blocks("yml");
        assertThat(examples).hasSize(2);
        try (JdbcApplication application =
                JdbcApplication.start(TestDatabase.url(TestDatabase.postgres()), examples.get(0))) {
            assertThat(application.get("/a").headers().firstValue("RateLimit"))
                    .hasValueSatisfying(value -> assertThat(value).startsWith("\"per-ip\";r=799"));
        }
        try (JdbcApplication leasing =
                JdbcApplication.start(TestDatabase.url(TestDatabase.postgres()), examples.get(1))) {
            assertThat(leasing.get("/a").statusCode()).isEqualTo(200);
        }
    }

    @Test
    void flywayRunsTheMigrationBeforeTheStartLooksForTheTable(@TempDir Path migrations) throws IOException {
        Files.writeString(migrations.resolve("V1__limits.sql"), blocks("sql").get(0));
        String schema = TestDatabase.newTable();
        String yaml = blocks("yml").get(0).replace("always", "never") + """
                spring.flyway: { enabled: true, schemas: %s, locations: "filesystem:%s" }
                """.formatted(schema, migrations);
        String url = TestDatabase.url(TestDatabase.postgres()) + "&currentSchema=" + schema;
        for (int start = 1; start <= 2; start++) {
            try (JdbcApplication application = JdbcApplication.start(url, yaml)) {
                assertThat(application
                                .get("/a")
                                .headers()
                                .firstValue("RateLimit")
                                .orElseThrow())
                        .startsWith("\"per-ip\";r=799");
            }
        }
    }

    @Test
    void theMigrationIsTheScript() throws IOException {
        try (InputStream script = JdbcStorage.class.getResourceAsStream("schema-postgresql.sql")) {
            String statement = new String(script.readAllBytes(), StandardCharsets.UTF_8).replaceAll("(?m)^--.*\\R", "");
            assertThat(blocks("sql")).containsExactly(statement);
        }
    }
}
