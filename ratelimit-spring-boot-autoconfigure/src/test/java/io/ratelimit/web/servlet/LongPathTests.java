package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A long path neither bypasses a limit nor makes a rejection expensive. */
class LongPathTests {

    private static final String YAML = """
            ratelimit:
              policies:
                api:
                  rate: 2/1h
                  paths: /api/**
                login:
                  rate: 2/1h
                  paths: /login
                pictures:
                  rate: 2/1h
                  paths: /**/*.png
                by-endpoint:
                  key: endpoint
                  rate: 2/1h
                by-tenant:
                  key: path-variable:tenant
                  rate: 2/1h
                  on-missing-key: skip
                conditional:
                  rate: 2/1h
                  condition: "endpoint == 'GET /login'"
                elsewhere:
                  rate: 2/1h
                  exclude-paths: [/api/**, /login, "/tenants/**", /other/**]
            """;

    private static final String DEEP = "/a".repeat(400);
    private static final String SLASHES = "/".repeat(3_000);
    private static final String PARAMETERS = ";a=b".repeat(1_000);

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    static List<String> api() {
        return List.of(
                "/api" + DEEP,
                "/api" + "/%61;a".repeat(500),
                "/api" + SLASHES,
                "/api" + PARAMETERS + "/x",
                "/api/" + "x".repeat(5_000),
                "/api;" + "x".repeat(5_000) + "/x");
    }

    @ParameterizedTest
    @MethodSource("api")
    void aLongPathIsChargedLikeAShortOne(String target) {
        assertThat(server.http().get("/api/x").body()).isEqualTo("api");
        assertThat(server.http().get(target).body()).isEqualTo("api");
        assertThat(server.available("by-endpoint", "GET /api/**")).isZero();
        assertThat(server.available("elsewhere")).isEqualTo(2);
        Response rejection = server.http().get(target);
        assertThat(rejection.status()).isEqualTo(429);
        assertThat(rejection.body()).contains("[\"by-endpoint\",\"api\"]");
    }

    @Test
    void aLongSpellingOfALiteralPathIsChargedForIt() {
        assertThat(server.http().get("/login" + PARAMETERS).body()).isEqualTo("login");
        assertThat(server.http().get("/%6cogin;" + "x".repeat(5_000)).body()).isEqualTo("login");
        assertThat(server.available("by-endpoint", "GET /login")).isZero();
        assertThat(server.available("conditional")).isZero();
        assertThat(server.http().get("/login").status()).isEqualTo(429);
    }

    @Test
    void aVariableAtTheBeginningOfALongPathIsAKey() {
        assertThat(server.http().get("/tenants/7" + DEEP).body()).isEqualTo("tenant");
        assertThat(server.http().get("/tenants/%37" + PARAMETERS + DEEP).body()).isEqualTo("tenant");
        assertThat(server.available("by-tenant", "7")).isZero();
        assertThat(server.http().get("/tenants/7/x").status()).isEqualTo(429);
    }

    @Test
    void aPatternForTheEndOfALongPathHolds() {
        assertThat(server.http().get("/api" + DEEP + "/x.png").body()).isEqualTo("api");
        assertThat(server.available("pictures")).isEqualTo(1);
    }

    @Test
    void aPathWithoutAHandlerIsNotChargedByThePolicyOfAHandler() {
        assertThat(server.http().get("/other" + DEEP).status()).isEqualTo(404);
        assertThat(server.available("api")).isEqualTo(2);
        assertThat(server.available("elsewhere")).isEqualTo(2);
        assertThat(server.available("by-endpoint", "none")).isEqualTo(1);
    }

    @RestController
    static class Api {

        @GetMapping("/api/**")
        String api() {
            return "api";
        }

        @GetMapping("/login")
        String login() {
            return "login";
        }

        @GetMapping("/tenants/{tenant}/**")
        String tenant() {
            return "tenant";
        }
    }
}
