package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.redis.TestRedis;
import io.ratelimit.web.servlet.RawHttp.Response;
import java.math.BigDecimal;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import redis.embedded.RedisServer;

/** A request is charged for the number that the controller gets, in every spelling of the number. */
class NumberSpellingTests {

    private static final String YAML = """
            ratelimit:
              backend: %s
              redis.timeout: 5s
              policies:
                rows: { key: ip, rate: 1000/365d, cost: query('rows'), paths: /rows/** }
                tenths: { key: ip, rate: 1000/365d, cost: "number(query('rows')) / 10", max-cost: 900, paths: /rows/** }
                large: { key: ip, rate: 1000/365d, condition: "number(query('rows')) >= 100", paths: /rows/** }
                item: { key: ["expression:number(pathVariable('id'))"], rate: 5/365d, paths: "/items/{id}" }
                text: { key: ["path-variable:id"], rate: 5/365d, paths: "/items/{id}" }
                call: { rate: 5/365d, applies-to: annotated }
                bound: { rate: 1000/365d, applies-to: annotated }
                priced: { rate: 10000/365d, applies-to: annotated }
                parameter: { key: ip, rate: 1000/365d, cost: query('limit'), paths: [/bound, /parameter] }
                form: { key: ip, rate: 1000/365d, cost: "query('limit') ?: 20", max-cost: 100, paths: /form }
            spring.data.redis: { host: 127.0.0.1, port: %d }
            """;

    private static final String ZEROS = "0".repeat(41);
    private static final int PORT = TestRedis.freePort();
    private static final RedisServer redis = TestRedis.serverAt(PORT);
    private static TestServer local;
    private static TestServer remote;

    @BeforeAll
    static void start() {
        local = TestServer.open(YAML.formatted("local", PORT), Api.class).start();
        remote = TestServer.open(YAML.formatted("redis", PORT), Api.class).start();
    }

    @AfterAll
    static void stop() throws Exception {
        local.close();
        remote.close();
        redis.stop();
    }

    @ParameterizedTest
    @ValueSource(strings = {"local", "redis"})
    void aRequestIsChargedForTheRowsThatTheControllerGets(String backend) {
        TestServer server = backend.equals("local") ? local : remote;
        for (String rows : List.of(
                "100",
                "+100",
                "0x64",
                "#64",
                " 100",
                "1 00",
                ZEROS + "100",
                "+" + ZEROS + "100",
                "0x" + ZEROS + "64",
                "#" + ZEROS + "64",
                "\u0660".repeat(41) + "100",
                "\uff11\u0660\u0660",
                "\t+" + ZEROS + "100")) {
            assertThat(taken(server, "/rows/long", rows)).as(rows).isEqualTo("100 rows: 100, 10, 1");
        }
        for (String rows : List.of(
                "1e2",
                "100d",
                "100." + ZEROS,
                "0." + ZEROS + "1e44",
                "1e" + ZEROS + "2",
                "0x64p0",
                "\u0001100",
                "0x" + ZEROS + "64p0f")) {
            assertThat(taken(server, "/rows/double", rows)).as(rows).isEqualTo("100.0 rows: 100, 10, 1");
        }
        for (String rows : List.of("1e2", "+" + ZEROS + "100", "1." + ZEROS + "e2")) {
            assertThat(taken(server, "/rows/decimal", rows)).as(rows).isEqualTo("100 rows: 100, 10, 1");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"local", "redis"})
    void anUnlimitedCostIsRejected(String backend) {
        TestServer server = backend.equals("local") ? local : remote;
        for (String rows : List.of(
                "9".repeat(41), "+" + ZEROS + "9".repeat(99), "0x" + "f".repeat(99), "Infinity", "1e99999999999")) {
            assertThat(get(server, "/rows/double", "rows", rows).status())
                    .as(rows)
                    .isEqualTo(429);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"local", "redis"})
    void oneItemIsOneKeyOfNumbersAndManyOfText(String backend) {
        TestServer server = backend.equals("local") ? local : remote;
        List<String> spellings =
                List.of("5", "05", "+5", "0x5", "%205", "5%20", "%235", "%EF%BC%95", "%D9%A5", ZEROS + "5");
        int items = 0;
        int calls = 0;
        for (String id : spellings) {
            Response response = server.http().get("/items/" + id);
            items += response.status() == 200 ? 1 : 0;
            assertThat(response.body()).contains(items <= 5 && response.status() == 200 ? "item 5" : "429");
        }
        for (String id : spellings) {
            Response response = server.http().get("/called/" + id);
            calls += response.status() == 200 ? 1 : 0;
        }
        assertThat(items).isEqualTo(5);
        assertThat(calls).isEqualTo(5);
        assertThat(server.available("item", "5")).isZero();
        assertThat(server.available("text", "05")).isEqualTo(4);
        assertThat(server.http().get("/items/9007199254740992").status()).isEqualTo(200);
        assertThat(server.available("item", "9007199254740993"))
                .as("a number that a double can't hold")
                .isEqualTo(5);
        assertThat(server.available("item", "9007199254740992")).isEqualTo(4);
    }

    /** {@code query(n)} is the value that {@code @RequestParam} reads; an object can be filled from other sources. */
    @Test
    void aCostInsideAnObjectIsChargedByTheAnnotation() {
        for (String[] request : new String[][] {
            {"/bound?limit=10"}, {"/bound?!limit=10"}, {"/bound?%21limit=10"}, {"/bound", "limit: 10"}
        }) {
            local.bean(Throttlers.class).reset("bound");
            Response response =
                    local.http().get(request[0], request.length > 1 ? new String[] {request[1]} : new String[0]);
            assertThat(response.body()).as(request[0]).isEqualTo("10 rows");
            assertThat(local.available("bound")).as(request[0]).isEqualTo(990);
            String parameter = request[0].replace("/bound", "/parameter");
            assertThat(local.http().get(parameter).body())
                    .isEqualTo(parameter.endsWith("?limit=10") ? "10 rows" : "20 rows");
        }
    }

    /** The prefixes of Spring's data binding, which sets a field by them if the parameter itself is missing. */
    @Test
    void theFormsByWhichDataBindingSetsAFieldAreCharged() {
        assertForm("", "20 rows", 20);
        assertForm("?limit=10", "10 rows", 10);
        assertForm("?!limit=50", "50 rows", 50);
        assertForm("?%21limit=50&other", "50 rows", 50);
        assertForm("?limit=10&!limit=50&_limit=1", "10 rows", 10);
        assertForm("?!limit=50&limit%5B%5D=1", "50 rows", 100);
        assertForm("?_limit=1", "null rows", 100);
        assertForm("?%5Flimit=1", "null rows", 100);
        assertForm("?Limit=50", "50 rows", 50);
        assertForm("?%4Cimit=50&other", "50 rows", 50);
        assertForm("?!Limit=50", "50 rows", 50);
        assertForm("?_Limit=1", "null rows", 100);
        assertForm("?limit=10&Limit=50", "10 rows", 10);
        assertForm("?limit=10&!Limit=50", "50 rows", 100);
        assertForm("?limit=10&_Limit=1", "null rows", 100);
    }

    private static void assertForm(String query, String body, long tokens) {
        local.bean(Throttlers.class).reset("form", "127.0.0.1");
        assertThat(local.http().get("/form" + query).body()).as(query).isEqualTo(body);
        assertThat(used(local, "form")).as(query).isEqualTo(tokens);
    }

    @Test
    void aCostInTheArgumentsOfAMethodDoesNotWrapAround() {
        assertThat(local.http().get("/priced?rows=2147484").status()).isEqualTo(429);
        assertThat(local.http().get("/priced?rows=2147483647").status()).isEqualTo(429);
        assertThat(local.http().get("/priced?rows=1").body()).isEqualTo("1 rows");
        assertThat(local.available("priced")).isEqualTo(9_000);
    }

    private static String taken(TestServer server, String path, String rows) {
        for (String policy : List.of("rows", "tenths", "large")) {
            server.bean(Throttlers.class).reset(policy, "127.0.0.1");
        }
        String body = get(server, path, "rows", rows).body();
        return body + ": " + used(server, "rows") + ", " + used(server, "tenths") + ", " + used(server, "large");
    }

    private static long used(TestServer server, String policy) {
        return 1000 - server.available(policy, "127.0.0.1");
    }

    private static Response get(TestServer server, String path, String parameter, String value) {
        return server.http().get(path + "?" + parameter + "=" + URLEncoder.encode(value, StandardCharsets.UTF_8));
    }

    record Search(Integer limit) {}

    /** An object whose field has a default. */
    public static final class Form {

        private Integer limit = 20;

        public Integer getLimit() {
            return limit;
        }

        public void setLimit(Integer limit) {
            this.limit = limit;
        }
    }

    @RestController
    static class Api {

        @GetMapping("/rows/long")
        String rows(@RequestParam long rows) {
            return rows + " rows";
        }

        @GetMapping("/rows/double")
        String rows(@RequestParam double rows) {
            return rows + " rows";
        }

        @GetMapping("/rows/decimal")
        String rows(@RequestParam BigDecimal rows) {
            return rows.stripTrailingZeros().toPlainString() + " rows";
        }

        @GetMapping("/items/{id}")
        String item(@PathVariable Long id) {
            return "item " + id;
        }

        @GetMapping("/called/{id}")
        @RateLimited(policy = "call", key = "#id")
        public String called(@PathVariable Long id) {
            return "item " + id;
        }

        @GetMapping("/bound")
        @RateLimited(policy = "bound", cost = "#search.limit")
        public String bound(Search search) {
            return search.limit() + " rows";
        }

        @GetMapping("/priced")
        @RateLimited(policy = "priced", cost = "T(java.lang.Math).max(1, #rows * 1000)")
        public String priced(@RequestParam int rows) {
            return rows + " rows";
        }

        @GetMapping("/form")
        public String form(Form form) {
            return form.getLimit() + " rows";
        }

        @GetMapping("/parameter")
        public String parameter(@RequestParam(defaultValue = "20") int limit) {
            return limit + " rows";
        }
    }
}
