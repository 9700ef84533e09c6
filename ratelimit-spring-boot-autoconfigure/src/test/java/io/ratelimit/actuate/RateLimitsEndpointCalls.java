package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** The base of tests of the actuator endpoint with all access, but with hidden keys. */
abstract class RateLimitsEndpointCalls {

    private static final String YAML = """
            server.max-http-request-header-size: 64KB
            management:
              endpoints.web.exposure.include: ratelimits
              endpoint.ratelimits.access: unrestricted
            ratelimit:
              client-ip.trusted-proxies: 127.0.0.1
              exclude-paths: /health
              policies:
                all: { rate: 6/1m, capacity: 9, paths: /all }
                plans: { rate: 5/1d, tiers: { pro: { rate: 7/1d } }, tier: "query:plan", paths: /plans }
                named:
                  key: query:name
                  rate: 2/1d
                  paths: /named
                  methods: GET
                  tiers: { pro: { rate: 4/1d } }
                  tier: query:plan
                  overrides:
                    - { keys: [boss], rate: 20/1d }
                    - { keys: [free], mode: off }
                    - { keys: [watched], mode: shadow }
                exact: { key: query:name, ignore-case: false, rate: 2/1d, paths: /exact }
                pairs: { key: [query:name, endpoint], rate: 2/1d, paths: "/pairs/**" }
                addresses:
                  key: [ip, method]
                  rate: 3/1d
                  paths: /addresses
                  overrides:
                    - { keys: [[10.0.0.0/8, GET]], rate: 7/1d }
                candidate: { key: query:name, rate: 1/1d, mode: shadow, paths: /candidate }
                counted: { key: query:name, rate: 2/1d, paths: /counted }
                waits: { rate: 1/1h, max-wait: 2h, paths: /waits }
                nothing: { rate: 1/1d, mode: off }
                work: { rate: 2/1d, applies-to: annotated }
                texts: { key: ip, rate: 2/1d, applies-to: annotated, overrides: [{ keys: [10.0.0.0/8], rate: 7/1d }] }
                priced: { rate: 50/1d, cost: 10, tiers: { low: { rate: 20/1d } }, tier: "query:plan", paths: /priced }
            """;

    static final String ENDPOINT = "/actuator/ratelimits";

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    final RawHttp http = server.http();
    private ThrottlePolicy changed;

    @AfterEach
    void changeBack() {
        if (changed != null) {
            Throttlers throttlers = server.bean(Throttlers.class);
            throttlers.get(changed.name()).reconfigure(changed.spec());
            changed.tiers()
                    .forEach((tier, spec) -> throttlers.get(changed.name()).reconfigure(tier, spec));
        }
    }

    Response read(String path) {
        Response answer = http.get(ENDPOINT + path);
        assertThat(answer.status()).as(answer.body()).isEqualTo(200);
        assertThat(answer.header("Content-Type")).isEqualTo("application/vnd.spring-boot.actuator.v3+json");
        return answer;
    }

    <T> T read(String path, String found) {
        return JsonPath.read(read(path).body(), found);
    }

    Response post(String path, String json) {
        return http.send(
                "POST " + ENDPOINT + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        + "Content-Length: " + json.getBytes(StandardCharsets.ISO_8859_1).length + "\r\n\r\n" + json);
    }

    Response change(String path, String json) {
        changed = server.bean(Throttlers.class).get(path.substring(1)).policy();
        return post(path, json);
    }

    Response reset(String path) {
        return http.request("DELETE", ENDPOINT + path);
    }

    int allowed(String path, String... headers) {
        int allowed = 0;
        for (int i = 0; i < 30; i++) {
            allowed += http.get(path, headers).status() == 200 ? 1 : 0;
        }
        return allowed;
    }

    static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    static void assertRejected(Response answer, int status, String detail) {
        assertThat(answer.status()).as(answer.body()).isEqualTo(status);
        assertThat(answer.header("Content-Type")).isEqualTo("application/problem+json");
        assertThat(JsonPath.<Integer>read(answer.body(), "$.status")).isEqualTo(status);
        assertThat(JsonPath.<String>read(answer.body(), "$.detail")).contains(detail);
    }

    @RestController
    static class Api {

        @GetMapping({
            "/all",
            "/named",
            "/exact",
            "/plans",
            "/addresses",
            "/candidate",
            "/counted",
            "/waits",
            "/priced",
            "/pairs/{id}"
        })
        String get() {
            return "";
        }

        @GetMapping("/work/{tenant}")
        @RateLimited(policy = "work", key = "#tenant")
        public String work(@PathVariable String tenant) {
            return tenant;
        }

        @GetMapping("/texts/{tenant}")
        @RateLimited(policy = "texts", key = "#tenant")
        public String texts(@PathVariable String tenant) {
            return tenant;
        }

        @GetMapping("/own/{a}/{b}")
        @RateLimited(name = "own", rate = "3/1d", key = "{#a, #b}")
        public String own(@PathVariable String a, @PathVariable String b) {
            return a + b;
        }
    }
}
