package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitExempt;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp.Connection;
import io.ratelimit.web.servlet.RawHttp.Response;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** Requests that wait for their tokens in the queue, on a real Tomcat. */
@Timeout(60)
class WaitingTests {

    private static final String YAML = """
            ratelimit:
              policies:
                line: { rate: 1/s, paths: /line/**, max-wait: 5s, queue-limit: 4, retry-jitter: 7ms-7ms }
                slow: { rate: 1/10s, paths: /slow/**, max-wait: 5s, retry-jitter: 7ms-7ms }
                mine: { key: ip, rate: 1/s, paths: /mine/**, max-wait: 5s, overrides: [{ keys: [127.0.0.9], mode: off }] }
                gate: { rate: 1/s, paths: /two/**, max-wait: 1s, phase: before-authentication }
                room: { rate: 1/3s, paths: /two/**, max-wait: 2s }
                strict: { key: ip, rate: 2/1h, paths: /mixed/** }
                patient: { key: user, rate: 1/s, paths: /mixed/**, max-wait: 5s }
                watched: { rate: 1/1h, paths: /watched/**, max-wait: 5h, mode: shadow }
                returned: { rate: 1/s, paths: /returned/**, max-wait: 9s, refund-on: 404 }
                counted: { rate: 10/s, capacity: 5, paths: /counted/**, max-wait: 9s, queue-limit: 100 }
                own: { rate: 1/s, applies-to: annotated }
                dear: { rate: 5/s, paths: /dear/**, max-wait: 5s, cost: "number(query('n'))" }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, BasicSecurity.class, Api.class, Limited.class);

    private final RawHttp http = server.http();
    private final ManualTimeSource time = server.bean(ManualTimeSource.class);
    private final Queue<String> served = server.bean(Api.class).served;

    @BeforeEach
    void noRequestHasBeenServed() {
        served.clear();
    }

    @Test
    void requestsShortOfTokensAreServedInOrderOfArrivalWhenTokensAreDue() {
        assertThat(get("/line/0").status()).isEqualTo(200);
        List<Connection> waiting = wait(List.of("/line/1", "/line/2", "/line/3", "/line/4"));
        assertThat(served).containsExactly("0");
        assertThat(server.bean(Throttlers.class).waiting("line")).isEqualTo(4);

        List<String> expected = new ArrayList<>(List.of("0"));
        for (int i = 1; i <= 4; i++) {
            server.advance(Duration.ofMillis(999));
            assertThat(time.waiting()).isEqualTo(5 - i);
            server.advance(Duration.ofMillis(1));
            expected.add(Integer.toString(i));
            awaitServed(expected);
            assertThat(waiting.get(i - 1).readToEnd().status()).isEqualTo(200);
        }
        assertThat(server.bean(Throttlers.class).waiting("line")).isZero();
    }

    @Test
    void theNextRequestIsRejectedAtOnceWhenTheQueueIsFull() {
        get("/line/0");
        List<Connection> waiting = wait(List.of("/line/1", "/line/2", "/line/3", "/line/4"));

        Response refusal = get("/line/5");

        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.header("Retry-After")).isEqualTo("6");
        assertThat(refusal.header("X-RetryAfterMs")).isEqualTo("5007");
        assertThat(refusal.header("RateLimit")).isEqualTo("\"line\";r=0;t=5");
        assertThat(refusal.body())
                .contains(
                        "\"detail\":\"Too many requests already wait for 'line' policy, please retry after 5007 ms.\"")
                .contains("\"violated-policies\":[\"line\"],\"retryAfterMs\":5007}");
        finish(waiting);
        assertThat(served).doesNotContain("5");
        server.advance(Duration.ofSeconds(1));
        assertThat(get("/line/5").status()).as("after that time").isEqualTo(200);
    }

    @Test
    void aRequestThatWouldWaitTooLongIsRejectedAtOnce() {
        get("/slow/0");

        Response refusal = get("/slow/1");

        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.header("Retry-After")).isEqualTo("11");
        assertThat(refusal.header("X-RetryAfterMs")).isEqualTo("10007");
        assertThat(refusal.body())
                .contains("\"detail\":\"The request would have to wait too long for 'slow' policy, please retry after"
                        + " 10007 ms.\"");
        assertThat(time.waiting()).isZero();
    }

    /** A request of five tokens may wait as long as its position in the queue requires. */
    @Test
    void aCostThatNeverFitsIsAThirdAnswer() {
        get("/dear/0?n=5");
        List<Connection> waiting = wait(List.of("/dear/1?n=5"));
        assertThat(get("/dear/2?n=6").body())
                .contains("The request can never be allowed by 'dear' policy, it costs more than the limit.");
        server.advance(Duration.ofMillis(999));
        assertThat(time.waiting()).isEqualTo(1);
        finish(waiting);
    }

    @Test
    void theHeadersCountFromTheAnswer() {
        assertThat(get("/mine/0").header("RateLimit")).isEqualTo("\"mine\";r=0;t=1");
        List<Connection> waiting = wait(List.of("/mine/1", "/mine/2", "/mine/3"));
        for (Response response : finish(waiting)) {
            assertThat(response.status()).isEqualTo(200);
            assertThat(response.header("RateLimit-Policy")).isEqualTo("\"mine\";q=1;w=1");
            assertThat(response.header("RateLimit")).isEqualTo("\"mine\";r=0;t=1");
            assertThat(response.header("Retry-After")).isNull();
        }
    }

    @Test
    void theWaitsOfTheTwoPhasesAddUp() {
        get("/two/0");
        List<Connection> waiting = wait(List.of("/two/1"));
        assertThat(server.bean(Throttlers.class).waiting("gate")).isEqualTo(1);

        server.advance(Duration.ofSeconds(1));
        Awaitility.await().until(() -> server.bean(Throttlers.class).waiting("room") == 1 && time.waiting() == 1);
        server.advance(Duration.ofMillis(1_999));
        assertThat(time.waiting()).isEqualTo(1);
        assertThat(served).containsExactly("0");
        server.advance(Duration.ofMillis(1));

        assertThat(waiting.get(0).readToEnd().status()).isEqualTo(200);
    }

    /** A request without credentials never enters the queue, though the policy needs no credentials. */
    @Test
    void strangersDontWaitWhereThePhaseIsNotWritten() {
        get("/line/0");
        assertThat(http.get("/line/1").status()).isEqualTo(401);
        assertThat(http.get("/line/2", basic("alice", "guess")).status()).isEqualTo(401);
        assertThat(time.waiting()).isZero();
    }

    @Test
    void aRequestDoesNotWaitIfOneOfItsPoliciesAllowsNoWait() {
        get("/mixed/0");
        List<Connection> waiting = wait(List.of("/mixed/1"));
        assertThat(server.available("strict", "127.0.0.1")).isZero();

        Response refusal = get("/mixed/2");

        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.body())
                .contains("The request is throttled by 'strict' policy, please retry after 1800000 ms.");
        finish(waiting);
    }

    @Test
    void shadowPoliciesLetNoRequestWait() {
        for (int i = 0; i < 5; i++) {
            assertThat(get("/watched/" + i).status()).isEqualTo(200);
        }
        assertThat(time.waiting()).isZero();
    }

    @Test
    void aRequestWithinAllLimitsDoesNotWait() {
        get("/mine/0");
        List<Connection> waiting = wait(List.of("/mine/1"));
        assertThat(get("/mine/exempt").status()).isEqualTo(200);
        assertThat(http.from("127.0.0.9").get("/mine/2", basic("alice")).status())
                .isEqualTo(200);
        assertThat(http.from("127.0.0.9").get("/mine/3", basic("alice")).status())
                .isEqualTo(200);
        finish(waiting);
    }

    @Test
    void tokensThatAWaitingRequestGivesBackServeTheNextRequest() {
        get("/returned/0");
        List<Connection> waiting = wait(List.of("/returned/missing"));
        assertThat(finish(waiting)).extracting(Response::status).containsExactly(404);

        Awaitility.await()
                .untilAsserted(() -> assertThat(server.available("returned")).isEqualTo(1));
        assertThat(get("/returned/2").status()).isEqualTo(200);
        assertThat(time.waiting()).isZero();
    }

    /** The times promised to later waiting requests assume that these tokens are taken. */
    @Test
    void tokensThatARequestGivesBackDoNotCountTwiceForWaitingRequests() {
        get("/returned/0");
        List<Connection> waiting = wait(List.of("/returned/missing", "/returned/2"));
        server.advance(Duration.ofSeconds(1));
        assertThat(waiting.get(0).readToEnd().status()).isEqualTo(404);
        assertThat(served).containsExactly("0");
        waiting.addAll(wait(List.of("/returned/3")));

        server.advance(Duration.ofSeconds(1));
        awaitServed(List.of("0", "2"));
        server.advance(Duration.ofMillis(999));
        assertThat(time.waiting()).isEqualTo(1);
        finish(waiting.subList(1, 3));
        assertThat(served).containsExactly("0", "2", "3");
    }

    @Test
    void aClientThatLeavesHasItsTurnAndNothingIsLost() {
        get("/line/0");
        List<Connection> waiting = wait(List.of("/line/1", "/line/2"));
        waiting.get(0).close();

        server.advance(Duration.ofSeconds(1));
        awaitServed(List.of("0", "1"));
        server.advance(Duration.ofSeconds(1));
        awaitServed(List.of("0", "1", "2"));

        assertThat(waiting.get(1).readToEnd().status()).isEqualTo(200);
        assertThat(server.bean(Throttlers.class).waiting("line")).isZero();
        server.advance(Duration.ofSeconds(1));
        assertThat(server.available("line")).isEqualTo(1);
    }

    /** G1: 5 at once, then 10 per second, each counted when it is due, for any number of callers. */
    @Test
    void noMoreAreServedInAnyTimeThanTheBucketGrants() {
        List<Connection> all = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            all.add(send("/counted/" + i));
        }
        Awaitility.await().until(() -> served.size() == 5 && time.waiting() == 55);
        long start = time.nanoTime();
        for (int step = 1; step <= 110; step++) {
            server.advance(Duration.ofMillis(50));
            int due = 5 + step / 2;
            Awaitility.await().pollInterval(Duration.ofMillis(2)).until(() -> served.size() >= Math.min(due, 60));
            assertThat(served)
                    .as("after %s ms", (time.nanoTime() - start) / 1_000_000)
                    .hasSize(due);
        }
        assertThat(all).allSatisfy(one -> assertThat(one.readToEnd().status()).isEqualTo(200));
    }

    @Test
    void anAnnotationMayLetTheCallsWithinARequestWait() {
        get("/annotated/0");
        List<Connection> waiting = wait(List.of("/annotated/1", "/annotated/2"));
        Response refusal = get("/annotated/3");
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.body())
                .contains("The request would have to wait too long for 'own' policy, please retry after 3000 ms.");
        assertThat(finish(waiting)).extracting(Response::status).containsExactly(200, 200);
        assertThat(served).containsExactly("0", "1", "2");
    }

    private Response get(String path) {
        return http.get(path, basic("alice"));
    }

    private Connection send(String path) {
        return http.open().write(RawHttp.text("GET", path, basic("alice"), "Connection: close"));
    }

    /** Sends each request when the one before waits. */
    private List<Connection> wait(List<String> paths) {
        List<Connection> waiting = new ArrayList<>();
        int before = time.waiting();
        for (String path : paths) {
            waiting.add(send(path));
            Awaitility.await()
                    .pollInterval(Duration.ofMillis(2))
                    .until(() -> time.waiting() == before + waiting.size());
        }
        return waiting;
    }

    /** Lets the waiting requests proceed one after another. */
    private List<Response> finish(List<Connection> waiting) {
        List<Response> responses = new ArrayList<>();
        for (Connection one : waiting) {
            server.advance(Duration.ofSeconds(1));
            responses.add(one.readToEnd());
        }
        return responses;
    }

    private void awaitServed(List<String> expected) {
        Awaitility.await().untilAsserted(() -> assertThat(served).containsExactlyElementsOf(expected));
    }

    @RestController
    static class Api {

        final Queue<String> served = new ConcurrentLinkedQueue<>();

        @GetMapping({"/line/{n}", "/slow/{n}", "/mine/{n}", "/two/{n}", "/mixed/{n}", "/watched/{n}", "/returned/{n}"})
        public String serve(@PathVariable String n) {
            served.add(n);
            return n;
        }

        @GetMapping({"/counted/{n}", "/dear/{n}"})
        public String count(@PathVariable String n) {
            return serve(n);
        }

        @GetMapping("/returned/missing")
        public ResponseEntity<String> missing() {
            return ResponseEntity.notFound().build();
        }

        @RateLimitExempt
        @GetMapping("/mine/exempt")
        public String exempt() {
            return "exempt";
        }
    }

    @RestController
    static class Limited {

        private final Api api;

        Limited(Api api) {
            this.api = api;
        }

        @RateLimited(policy = "own", maxWait = "2s")
        @GetMapping("/annotated/{n}")
        public String annotated(@PathVariable String n) {
            return api.serve(n);
        }
    }
}
