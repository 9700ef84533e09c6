package io.ratelimit.starter.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.jdbc.TestDatabase;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Which data source and which table the limits use, and the reports if there is none. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class JdbcConfigurationTests {

    private static final String YAML = """
            ratelimit:
              backend: jdbc
              jdbc.timeout: 5s
              policies:
                per-ip: { key: ip, rate: 1/1d, paths: /a }
            """;

    private static void limits(JdbcApplication application) {
        assertThat(application.status("/a")).isEqualTo(200);
        assertThat(application.status("/a")).isEqualTo(429);
    }

    private static String start(String yaml, CapturedOutput output, Class<?>... sources) {
        String url = TestDatabase.url(TestDatabase.h2());
        assertThatThrownBy(() -> JdbcApplication.start(url, yaml, sources).close())
                .isNotNull();
        return output.getOut();
    }

    @Test
    void severalDataSourcesNeedAName(CapturedOutput output) {
        assertThat(start(YAML, output, Several.class))
                .contains("there is not exactly one DataSource that leads to the database (there are: limits, orders).")
                .contains("or name the bean to use by 'ratelimit.jdbc.data-source'");
        String named = YAML + "ratelimit.jdbc.data-source: limits\n";
        try (JdbcApplication application = JdbcApplication.start("unused", named, Several.class)) {
            limits(application);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"unknown", "environment"})
    void aNameOfNoDataSourceStopsTheStart(String name, CapturedOutput output) {
        assertThat(start(YAML + "ratelimit.jdbc.data-source: " + name + "\n", output, Several.class))
                .contains("'ratelimit.jdbc.data-source' is '" + name + "', but no DataSource has this name.")
                .contains("Set it to one of: limits, orders.");
    }

    @ParameterizedTest
    @CsvSource({"bucket; DROP TABLE orders", "'\"bucket\"'", "a.b.c", "1bucket", "bücket"})
    void aTableThatIsNoPlainNameStopsTheStart(String table, CapturedOutput output) {
        assertThat(start(YAML + "ratelimit.jdbc.table: '" + table + "'\n", output))
                .contains(
                        "table must be a name of letters, digits and underscores, with a schema before a dot if it has one");
    }

    /** A pool behind a proxy: its own connections are used, and the log reports what this costs. */
    @Test
    void aDataSourceThatShowsNoUrlIsUsedItself(CapturedOutput output) {
        try (JdbcApplication application = JdbcApplication.start("unused", YAML, Opaque.class)) {
            limits(application);
        }
        assertThat(output)
                .contains("since it doesn't show a URL to open others with: its pool needs 'ratelimit.jdbc.pool-size'"
                        + " + 1 more");
    }

    @Test
    void adviceAndErrorsNameTheDatabaseAndItsProperties(CapturedOutput output) {
        String yaml = """
                ratelimit:
                  backend: jdbc
                  jdbc: { local-share: 0.05, changes: false, timeout: 5s }
                  policies:
                    rare: { key: ip, rate: 1/1h, paths: /a }
                    hot: { rate: 100/1m, lease: 10s, paths: /b }
                """;
        try (JdbcApplication application = JdbcApplication.start(TestDatabase.url(TestDatabase.h2()), yaml)) {
            assertThat(output)
                    .contains("'ratelimit.jdbc.local-share' is 0.05")
                    .contains("Throttle policy 'hot' has a 'lease' of 10s: while leases are out")
                    .contains("Set a lease of at most 3s, or a larger capacity")
                    .doesNotContain("Redis", "ratelimit.redis");
            assertThat(application
                            .post("/actuator/ratelimits/rare", "{\"rate\": \"2/1h\", \"for\": \"all\"}")
                            .body())
                    .contains("to redis or jdbc, and don't set 'changes: false' below 'ratelimit.redis' or"
                            + " 'ratelimit.jdbc'");
        }
    }

    /** Scripts and migrations come first, also if each of their beans is created only when another needs it. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aScriptOfTheApplicationCreatesTheTableBeforeTheStartLooksForIt(boolean lazy) {
        String yaml = YAML + """
                ratelimit.jdbc.initialize-schema: never
                spring.sql.init: { mode: always, schema-locations: "classpath:io/ratelimit/jdbc/schema-h2.sql" }
                """;
        Class<?>[] sources = lazy ? new Class<?>[] {Lazy.class} : new Class<?>[0];
        try (JdbcApplication application = JdbcApplication.start(TestDatabase.url(TestDatabase.h2()), yaml, sources)) {
            limits(application);
        }
    }

    /** As {@code spring.main.lazy-initialization: true} does. */
    @Configuration(proxyBeanMethods = false)
    static class Lazy {

        @Bean
        static LazyInitializationBeanFactoryPostProcessor everyBeanIsLazy() {
            return new LazyInitializationBeanFactoryPostProcessor();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Several {

        @Bean
        DataSource orders() {
            return TestDatabase.h2();
        }

        @Bean
        DataSource limits() {
            return TestDatabase.h2();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Opaque {

        private final DataSource pool = TestDatabase.h2();

        @Bean
        DataSource pool() {
            return (DataSource) Proxy.newProxyInstance(
                    getClass().getClassLoader(), new Class<?>[] {DataSource.class}, (proxy, method, arguments) -> {
                        try {
                            return method.getName().equals("isWrapperFor") ? false : method.invoke(pool, arguments);
                        } catch (InvocationTargetException failed) {
                            throw failed.getCause();
                        }
                    });
        }
    }
}
