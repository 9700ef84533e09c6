package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.key.KeyResolver;
import io.ratelimit.web.servlet.RawHttp.Response;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** The cost of requests, and the requests that are charged at all. */
@ExtendWith(OutputCaptureExtension.class)
class CostTests {

    private static final String YAML = """
            ratelimit:
              policies:
                rows: { key: ip, rate: 100/1h, cost: query('rows'), paths: /rows }
                cut: { key: ip, rate: 100/1h, cost: query('rows'), max-cost: 30, paths: /cut }
                cut-number: { key: ip, rate: 100/1h, cost: 500, max-cost: 40, paths: /cut }
                size: { key: ip, rate: 100/1h, cost: "contentLength / 1024.0", max-cost: 50, paths: /size }
                bits: { key: ip, rate: 100/1h, cost: contentLength * 8, max-cost: 60, paths: /size }
                writes: { key: ip, rate: 100/1h, condition: "!{'GET', 'HEAD'}.contains(method)" }
                fails: { key: ip, rate: 100/1h, condition: "header('X-A').length() > 1", paths: /fails }
                no-boolean: { key: ip, rate: 100/1h, condition: "header('X-A')", paths: /no-boolean }
            """;

    private static final String BEANS = """
            ratelimit:
              policies:
                trials: { key: ip, rate: 100/1h, condition: "bean('plan') == 'trial'", paths: /plans }
                weighted: { key: ip, rate: 100/1h, cost: "number(bean('weight')) * 10", max-cost: 50, paths: /plans }
                named: { key: "expression:bean('plan') + ip", rate: 100/1h, paths: /named }
            """;

    private static final String ROLES = """
            ratelimit:
              policies:
                guests: { key: ip, rate: 100/1h, condition: "user == null" }
                users: { key: user, rate: 100/1h, condition: "!roles.contains('ADMIN')" }
                no-admins: { key: ip, rate: 100/1h, condition: "!roles.contains('ROLE_ADMIN')" }
                scopes: { key: ip, rate: 100/1h, condition: "roles.contains('SCOPE_read')" }
                roles: { key: ip, rate: 100/1h, cost: "roles.contains('ADMIN') ? 1 : 10" }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    @ParameterizedTest
    @CsvSource({
        "rows=5, 95",
        "rows=1.5, 98",
        "rows=100, 0",
        "rows=1, 99",
        "rows=0x32, 50",
        "rows=0X32, 50",
        "rows=%2332, 50",
        "rows=%2050, 50",
        "rows=5%200, 50",
        "rows=50%20, 50",
        "rows=000000000000000000000000000000000000000000000000050, 50",
        "rows%5B%5D=50, 50"
    })
    void aRequestTakesTheResultOfTheExpression(String query, long left) {
        assertThat(get("/rows?" + query)).isEqualTo(200);
        assertThat(available("rows")).isEqualTo(left);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "?rows=0",
                "?rows=-1",
                "?rows=-2147483648",
                "?rows=-9223372036854775808",
                "?rows=-1e99",
                "?rows=many",
                "?rows=NaN",
                "?rows=",
                "",
                "?rows=%zz"
            })
    void nothingThatClientsSendIsFree(String query, CapturedOutput output) {
        for (int i = 0; i < 100; i++) {
            assertThat(get("/rows" + query)).isEqualTo(200);
        }
        assertThat(get("/rows" + query)).isEqualTo(429);
        assertThat(LogLines.of(output, "FailureLog"))
                .as("a line for a hundred")
                .singleElement()
                .asString()
                .startsWith("Throttle policy 'rows' could not determine its cost, which counted as 1 (")
                .doesNotContain("many");
    }

    @ParameterizedTest
    @ValueSource(strings = {"101", "2147483648", "9223372036854775807", "9223372036854775808", "1e999999999"})
    void aCostThatNeverFitsIsRejectedAsSuch(String rows) {
        Response refusal = server.http().get("/rows?rows=" + rows);
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.names()).doesNotContain("Retry-After", "X-RetryAfterMs");
        assertThat(available("rows")).isEqualTo(100);
    }

    @Test
    void aLargerCostIsCut() {
        assertThat(get("/cut?rows=1e999999999")).isEqualTo(200);
        assertThat(available("cut")).isEqualTo(70);
        assertThat(available("cut-number")).isEqualTo(60);
        assertThat(get("/cut?rows=29")).isEqualTo(200);
        assertThat(available("cut")).isEqualTo(41);
    }

    @ParameterizedTest
    @CsvSource({
        "1, 99, 92",
        "1024, 99, 40",
        "1025, 98, 40",
        "999999999999, 50, 40",
        "1152921504606846976, 50, 40",
        "9223372036854775807, 50, 40"
    })
    void aLengthThatIsOnlyClaimedDoesNotOverflow(String length, long left, long leftOfBits) {
        try (RawHttp.Connection connection = server.http().open()) {
            connection
                    .write(RawHttp.text("POST", "/size", "Content-Length: " + length))
                    .read();
        }
        assertThat(available("size")).isEqualTo(left);
        assertThat(available("bits")).isEqualTo(leftOfBits);
    }

    @Test
    void aConditionSelectsTheRequestsOfAPolicy() {
        assertThat(get("/rows")).isEqualTo(200);
        assertThat(available("writes")).isEqualTo(100);
        for (String method : List.of("POST", "PUT", "DELETE", "FOO", "get")) {
            server.http().request(method, "/rows");
        }
        assertThat(available("writes")).isEqualTo(95);
    }

    @Test
    void aConditionThatFailsApplies(CapturedOutput output) {
        assertThat(get("/fails", "X-A: a")).isEqualTo(200);
        assertThat(available("fails")).as("false").isEqualTo(100);
        assertThat(get("/fails", "X-A: ab")).isEqualTo(200);
        assertThat(available("fails")).as("true").isEqualTo(99);
        assertThat(LogLines.of(output, "FailureLog")).isEmpty();

        for (int i = 0; i < 3; i++) {
            assertThat(get("/fails")).isEqualTo(200);
            assertThat(get("/no-boolean", "X-A: secret")).isEqualTo(200);
        }
        assertThat(available("fails")).as("failed").isEqualTo(96);
        assertThat(available("no-boolean")).as("no boolean").isEqualTo(97);
        assertThat(LogLines.of(output, "FailureLog"))
                .hasSize(2)
                .allMatch(line -> line.contains(" could not determine its condition, so it applied ("));
        assertThat(output).doesNotContain("secret");
    }

    @Test
    void expressionsSeeTheUserAndItsRoles() {
        try (TestServer secured =
                TestServer.secured(ROLES, Api.class, Users.class).start()) {
            assertThat(secured.http().get("/cut", RawHttp.basic("admin")).status())
                    .isEqualTo(200);
            assertThat(secured.available("users", "admin")).isEqualTo(100);
            assertThat(secured.available("no-admins", "127.0.0.1")).isEqualTo(100);
            assertThat(secured.available("scopes", "127.0.0.1")).isEqualTo(99);
            assertThat(secured.available("roles", "127.0.0.1")).isEqualTo(99);

            assertThat(secured.http().get("/cut", RawHttp.basic("alice")).status())
                    .isEqualTo(200);
            assertThat(secured.available("users", "alice")).isEqualTo(99);
            assertThat(secured.available("no-admins", "127.0.0.1")).isEqualTo(99);
            assertThat(secured.available("scopes", "127.0.0.1")).isEqualTo(99);
            assertThat(secured.available("roles", "127.0.0.1")).isEqualTo(89);

            assertThat(secured.http()
                            .get("/cut", RawHttp.basic("alice", "wrong"))
                            .status())
                    .isEqualTo(401);
            assertThat(secured.available("roles", "127.0.0.1"))
                    .as("not reached")
                    .isEqualTo(89);
            assertThat(secured.available("guests", "127.0.0.1")).isEqualTo(100);
        }
    }

    private static long available(String policy) {
        return server.available(policy, "127.0.0.1");
    }

    private static int get(String target, String... headers) {
        return server.http().get(target, headers).status();
    }

    @RestController
    static class Api {

        @RequestMapping({"/rows", "/cut", "/size", "/fails", "/no-boolean"})
        String any() {
            return "done";
        }
    }

    static class Users extends BasicSecurity {

        @Bean
        @Override
        public UserDetailsService users() {
            return name -> User.withUsername(name)
                    .password("{noop}" + name)
                    .authorities(
                            name.equals("admin")
                                    ? new String[] {"ROLE_ADMIN", "SCOPE_read"}
                                    : new String[] {"ROLE_USER", "ADMINISTRATOR"})
                    .build();
        }
    }

    @Test
    void conditionsCostsAndKeysReadBeans() {
        try (TestServer beans =
                TestServer.open(BEANS, Api.class, PlanBeans.class).start()) {
            RawHttp http = beans.http();
            http.get("/plans", "X-Plan: trial", "X-Weight: 2");
            assertThat(beans.available("trials", "127.0.0.1")).isEqualTo(99);
            assertThat(beans.available("weighted", "127.0.0.1")).isEqualTo(80);
            http.get("/plans", "X-Plan: paid");
            assertThat(beans.available("trials", "127.0.0.1")).isEqualTo(99);
            assertThat(beans.available("weighted", "127.0.0.1"))
                    .as("a bean that fails costs the max-cost")
                    .isEqualTo(30);
            http.get("/named", "X-Plan: trial");
            assertThat(beans.available("named", "trial127.0.0.1")).isEqualTo(99);
        }
    }

    static class PlanBeans {

        @Bean
        KeyResolver plan() {
            return request -> request.header("X-Plan");
        }

        @Bean
        KeyResolver weight() {
            return request -> {
                String weight = request.header("X-Weight");
                if (weight == null) {
                    throw new IllegalStateException("no weight");
                }
                return weight;
            };
        }
    }
}
