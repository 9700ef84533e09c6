package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.RawHttp.Connection;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** The responses to rejected requests. */
class RejectionTests {

    private static final String YAML = """
            ratelimit:
              policies:
                one: { rate: 1/1m, paths: /one/** }
                quick: { rate: 100/s, capacity: 1, paths: /quick }
                jitter: { rate: 1/1s, retry-jitter: 1ms-2ms, paths: /jitter }
                seven-b: { key: [ip, endpoint], rate: 2/20s, retry-jitter: 7s-9s, paths: /several }
                seven-a: { key: [endpoint, ip], rate: 2/5s, paths: /several }
                endpoint: { key: endpoint, rate: 2/1m, retry-jitter: 1s-2s, paths: /several }
                global: { rate: 2/10s, retry-jitter: 5s-6s, paths: /several }
                wide: { key: ip, rate: 100/1m, paths: /several }
                costly: { key: ip, rate: 10/1m, cost: 3, paths: /costly }
                closed: { key: ip, rate: 1/1h, status: 503, paths: [/closed, /both] }
                narrow: { key: [ip, endpoint], rate: 1/1h, status: 420, paths: /both }
                few: { key: header:X-Key, rate: 1/1h, max-keys: 1, paths: /few }
                batch: { rate: 2/10s, refill: interval, paths: /batch }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    @Test
    void allThatAreShortAreNamedNarrowestFirstThenByName() {
        server.http().get("/several");
        server.http().get("/several");

        Response refusal = refused("/several");

        assertThat(refusal.body())
                .contains("\"violated-policies\":[\"seven-a\",\"seven-b\",\"endpoint\",\"global\"]")
                .contains("throttled by 'seven-a' policy");
        assertThat(refusal.header("RateLimit-Policy"))
                .isEqualTo("\"seven-a\";q=2;w=5, \"seven-b\";q=2;w=20, \"endpoint\";q=2;w=60, \"global\";q=2;w=10");
        assertThat(refusal.header("RateLimit"))
                .isEqualTo("\"seven-a\";r=0;t=3, \"seven-b\";r=0;t=10, \"endpoint\";r=0;t=30, \"global\";r=0;t=5");
        assertThat(server.available("wide", "127.0.0.1"))
                .as("what had tokens keeps them")
                .isEqualTo(98);
    }

    @Test
    void theRetryTimeIsTheLongestWaitAndItsOwnJitter() {
        server.http().get("/several");
        server.http().get("/several");
        for (int i = 0; i < 20; i++) {
            Response refusal = refused("/several");
            long millis = retryMillis(refusal);
            assertThat(millis).isBetween(31_000L, 32_000L);
            assertThat(refusal.header("Retry-After")).isEqualTo(Long.toString((millis + 999) / 1000));
            assertThat(refusal.body())
                    .contains("retry after " + millis + " ms.")
                    .contains("\"retryAfterMs\":" + millis + "}");
        }
    }

    @Test
    void eachProblemHasItsOwnTimes() {
        server.http().get("/one");
        for (int seconds : new int[] {60, 59, 9}) {
            assertThat(refused("/one").body())
                    .isEqualTo("{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\","
                            + "\"title\":\"Too Many Requests\",\"status\":429,"
                            + "\"detail\":\"The request is throttled by 'one' policy, please retry after "
                            + seconds + "000 ms.\",\"violated-policies\":[\"one\"],\"retryAfterMs\":" + seconds
                            + "000}");
            server.advance(Duration.ofSeconds(seconds == 60 ? 1 : 50));
        }
    }

    @Test
    void jitterHasBothItsBounds() {
        server.http().get("/jitter");
        Set<Long> seen = new TreeSet<>();
        for (int i = 0; i < 80; i++) {
            seen.add(retryMillis(refused("/jitter")));
        }
        assertThat(seen).containsExactly(1001L, 1002L);
    }

    @Test
    void theRetryTimeIsNeitherTooShortNorTooLong() {
        server.http().get("/quick");
        Response refusal = refused("/quick");
        assertThat(retryMillis(refusal)).isEqualTo(10);
        assertThat(refusal.header("Retry-After")).as("at least a second").isEqualTo("1");

        server.advance(Duration.ofMillis(9));
        assertThat(retryMillis(refused("/quick"))).isEqualTo(1);
        server.advance(Duration.ofMillis(1));
        assertThat(server.http().get("/quick").status()).isEqualTo(200);
    }

    @Test
    void deniedCallsDontPostponeTheNextToken() {
        server.http().get("/one");
        for (int i = 0; i < 60; i++) {
            refused("/one");
            server.advance(Duration.ofSeconds(1));
        }
        assertThat(server.http().get("/one").status()).isEqualTo(200);
    }

    @Test
    void aRequestMayCostSeveralTokens() {
        for (int i = 0; i < 3; i++) {
            assertThat(server.http().get("/costly").status()).isEqualTo(200);
        }
        Response refusal = refused("/costly");
        assertThat(retryMillis(refusal))
                .as("two more tokens, one in six seconds")
                .isEqualTo(12_000);
        assertThat(refusal.header("RateLimit")).isEqualTo("\"costly\";r=1;t=12");
        assertThat(server.available("costly", "127.0.0.1")).isEqualTo(1);
    }

    @Test
    void theStatusIsThatOfTheFirstPolicyThatIsShort() {
        server.http().get("/closed");
        Response closed = server.http().get("/closed");
        assertThat(closed.status()).isEqualTo(503);
        assertThat(closed.body()).contains("\"title\":\"Service Unavailable\",\"status\":503,");
        assertThat(closed.header("Retry-After")).isEqualTo("3600");

        server.refill();
        server.http().get("/both");
        Response both = server.http().get("/both");
        assertThat(both.status()).isEqualTo(420);
        assertThat(both.body()).contains("\"status\":420,").contains("[\"narrow\",\"closed\"]");
    }

    @Test
    void beyondMaxKeysNewKeysShareBucketsAndNoKeyIsRefilled() {
        assertThat(few("first")).isEqualTo(200);
        for (int i = 0; i < 50; i++) {
            few("other" + i);
            assertThat(few("other" + i)).as("key %d again", i).isEqualTo(429);
        }
        assertThat(few("first")).isEqualTo(429);
    }

    private static int few(String key) {
        return server.http().get("/few", "X-Key: " + key).status();
    }

    @Test
    void intervalRefillBringsTheWholeBatchAtTheTick() {
        server.advance(Duration.ofSeconds(3));
        server.http().get("/batch");
        server.http().get("/batch");
        assertThat(retryMillis(refused("/batch"))).isEqualTo(7000);
        server.advance(Duration.ofSeconds(7));
        assertThat(server.http().get("/batch").status()).isEqualTo(200);
        assertThat(server.http().get("/batch").status()).isEqualTo(200);
        refused("/batch");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "text/plain | text/plain;charset=UTF-8",
                "TEXT/Plain | text/plain;charset=UTF-8",
                "text/* | text/plain;charset=UTF-8",
                "text/plain;q=0.5, application/json;q=0.4 | text/plain;charset=UTF-8",
                "text/plain, application/problem+json;q=0.9, */*;q=0.1 | text/plain;charset=UTF-8",
                "text/plain;charset=utf-8, */*;q=0.8 | text/plain;charset=UTF-8",
                "*/* | application/problem+json",
                "application/json, text/plain | application/problem+json",
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8 | text/html;charset=UTF-8",
                "text/html | text/html;charset=UTF-8",
                "image/png | application/problem+json",
                "text/plain;q=0 | application/problem+json",
                "text/plain;q=0.2, */*;q=0.8 | application/problem+json",
                "text/*;q=0.9, text/plain;q=0.1, application/*;q=0.5 | text/html;charset=UTF-8",
            })
    void aClientGetsTheFormThatItPrefers(String accept, String type) {
        server.http().get("/one");
        Response refusal = server.http().get("/one", "Accept: " + accept);

        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.header("Content-Type")).isEqualTo(type);
        String detail = "The request is throttled by 'one' policy, please retry after 60000 ms.";
        if (type.startsWith("text/plain")) {
            assertThat(refusal.body()).isEqualTo(detail + "\n");
        } else if (type.startsWith("text/html")) {
            assertThat(refusal.body())
                    .startsWith("<!DOCTYPE html>")
                    .contains(
                            "<h1>Too Many Requests</h1>",
                            "Please try again in 60 seconds.",
                            detail.replace("'", "&#39;"));
        } else {
            assertThat(refusal.body()).startsWith("{\"type\":");
        }
        assertThat(refusal.header("Content-Length"))
                .isEqualTo(Integer.toString(refusal.body().getBytes(StandardCharsets.UTF_8).length));
        assertThat(refusal.header("Cache-Control")).isEqualTo("no-store");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                ";",
                ",,,",
                "text/",
                "/",
                "text/plain/x",
                "text/plain;q=abc",
                "text/plain;q=2",
                "text/plain;q=",
                "text/plain;charset=nonsense",
                "text/plain;=",
                "te\u00e4xt/\u00ff",
                "*/plain",
                "text/pl{ain",
                "\"text/plain",
                "text/plain; q=0.5; q=0.6",
            })
    void anAcceptHeaderThatCantBeReadGetsTheProblem(String accept) {
        server.http().get("/one");
        Response refusal = server.http().get("/one", "Accept: " + accept);
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.body()).contains("60000");
    }

    @Test
    void aLongAcceptHeaderIsNoEffort() {
        server.http().get("/one");
        String accept = "text/plain;q=0.1,".repeat(400) + "*/*;q=0.2";
        assertThat(server.http().get("/one", "Accept: " + accept).header("Content-Type"))
                .isEqualTo("application/problem+json");
    }

    /** No genuine client sends such a long header. */
    @Test
    void anAcceptHeaderAboveFiveHundredCharactersIsNotRead() {
        server.http().get("/one");
        String accept = "text/plain" + ", text/html".repeat(44);
        assertThat(server.http().get("/one", "Accept: " + accept).header("Content-Type"))
                .isEqualTo("text/plain;charset=UTF-8");
        assertThat(server.http()
                        .get("/one", "Accept: " + accept + ", text/html")
                        .header("Content-Type"))
                .isEqualTo("application/problem+json");
    }

    @Test
    void headGetsTheHeadersOfGetAndNoBody() {
        server.http().get("/one");
        Response get = refused("/one");
        Response head = server.http().request("HEAD", "/one");
        assertThat(head.status()).isEqualTo(429);
        assertThat(head.body()).isEmpty();
        assertThat(head.names()).isEqualTo(get.names());
        for (String name : get.names()) {
            if (!name.equals("Date")) {
                assertThat(head.header(name)).as(name).isEqualTo(get.header(name));
            }
        }
    }

    @Test
    void theConnectionOfARejectedPostCanBeReused() {
        server.http().get("/one");
        try (Connection connection = server.http().open()) {
            for (String headersAndBody : new String[] {
                "Content-Length: 12\r\n\r\nGET /x HTTP/",
                "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=b",
                "Content-Length: 100000\r\n\r\n" + "x".repeat(100_000),
            }) {
                connection.write("POST /one HTTP/1.1\r\nHost: localhost\r\n" + headersAndBody);
                assertThat(connection.read().status()).isEqualTo(429);
                Response next = connection.get("/free");
                assertThat(next.status()).as(headersAndBody).isEqualTo(200);
                assertThat(next.body()).isEqualTo("free");
            }
        }
    }

    @Test
    void aRejectionDoesNotWaitForTheBody() {
        server.http().get("/one");
        try (Connection connection = server.http().open()) {
            connection.write("POST /one HTTP/1.1\r\nHost: localhost\r\nOrigin: http://other\r\n"
                    + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n");
            assertThat(connection.read().status()).isEqualTo(429);
        }
    }

    @Test
    void pipelinedRequestsAreAnsweredOneByOne() {
        server.http().get("/one");
        String refused = RawHttp.text("GET", "/one");
        String free = RawHttp.text("GET", "/free");
        try (Connection connection = server.http().open()) {
            connection.write(refused + free + RawHttp.text("HEAD", "/one") + refused + free);
            assertThat(connection.read().status()).isEqualTo(429);
            assertThat(connection.read().body()).isEqualTo("free");
            assertThat(connection.readHead().status()).isEqualTo(429);
            assertThat(connection.read().body()).contains("'one' policy");
            assertThat(connection.read().body()).isEqualTo("free");
        }
    }

    @Test
    void aRejectionStartsNoSession() {
        server.http().get("/one");
        assertThat(refused("/one").header("Set-Cookie")).isNull();
    }

    private static Response refused(String path) {
        Response refusal = server.http().get(path);
        assertThat(refusal.status()).isEqualTo(429);
        return refusal;
    }

    private static long retryMillis(Response refusal) {
        return Long.parseLong(refusal.header("X-RetryAfterMs"));
    }

    @RestController
    static class Api {

        @RequestMapping({"/one", "/quick", "/jitter", "/several", "/costly", "/closed", "/both", "/few", "/batch"})
        String limited() {
            return "limited";
        }

        @RequestMapping("/free")
        String free() {
            return "free";
        }

        /** Makes the look-up for CORS read the form. */
        @RequestMapping(path = "/one", params = "a=b")
        String form() {
            return "form";
        }
    }
}
