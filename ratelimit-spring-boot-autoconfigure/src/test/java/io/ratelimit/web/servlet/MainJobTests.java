package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import io.ratelimit.web.servlet.RawHttp.Connection;
import io.ratelimit.web.servlet.RawHttp.Response;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.core.io.ClassPathResource;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** The three-tier limits of the README, with Spring Security. */
@Tag("slow")
class MainJobTests {

    private static final Pattern BODY = Pattern.compile(
            "\\{\"type\":\"https://iana\\.org/assignments/http-problem-types#quota-exceeded\",\"title\":\"Too Many Requests\","
                    + "\"status\":429,\"detail\":\"The request is throttled by 'per-user-per-endpoint' policy, please"
                    + " retry after (\\d+) ms\\.\",\"violated-policies\":\\[\"per-user-per-endpoint\"],"
                    + "\"retryAfterMs\":(\\d+)}");

    @RegisterExtension
    static final TestServer server = TestServer.secured(mainJob(), BasicSecurity.class, Api.class);

    private static String mainJob() {
        try {
            return new ClassPathResource("main-job.yml", MainJobTests.class).getContentAsString(StandardCharsets.UTF_8);
        } catch (IOException ex) {
            throw new AssertionError(ex);
        }
    }

    @Test
    void the801stQuickRequestOfAUserToAnEndpointIsRejected() {
        drainAlice("/orders");

        Response refusal = server.http().get("/orders", basic("alice"));

        assertThat(refusal.status()).isEqualTo(429);
        long millis = Long.parseLong(refusal.header("X-RetryAfterMs"));
        assertThat(millis).as("100 ms to the next token, and 1 to 5 of jitter").isBetween(101L, 105L);
        assertThat(refusal.body())
                .matches(BODY)
                .contains("after " + millis + " ms")
                .endsWith(":" + millis + "}");
        assertThat(refusal.headers())
                .contains(
                        entry("Retry-After", "1"),
                        entry("RateLimit-Policy", "\"per-user-per-endpoint\";q=800;w=80"),
                        entry("RateLimit", "\"per-user-per-endpoint\";r=0;t=1"),
                        entry("Cache-Control", "no-store"),
                        entry("Content-Type", "application/problem+json"),
                        entry("Content-Length", Integer.toString(refusal.body().length())));
        assertThat(refusal.names())
                .as("ours, those of Spring Security, those of Tomcat")
                .containsExactlyInAnyOrder(
                        "Retry-After",
                        "X-RetryAfterMs",
                        "RateLimit-Policy",
                        "RateLimit",
                        "Cache-Control",
                        "Content-Type",
                        "Content-Length",
                        "X-Content-Type-Options",
                        "X-XSS-Protection",
                        "X-Frame-Options",
                        "Date");
    }

    @Test
    void otherUsersAndOtherEndpointsProceed() {
        drainAlice("/orders");
        assertThat(server.http().get("/orders", basic("alice")).status()).isEqualTo(429);

        assertThat(server.http().get("/orders", basic("bob")).status()).isEqualTo(200);
        assertThat(server.http().get("/items/1", basic("alice")).status()).isEqualTo(200);
    }

    @Test
    void rejectedRequestsTakeNothingFromSharedBuckets() {
        drainAlice("/orders");
        assertThat(server.available("per-endpoint", "GET /orders")).isEqualTo(4000 - 800);
        assertThat(server.available("global")).isEqualTo(7000 - 800);

        try (Connection connection = server.http().open()) {
            for (int i = 0; i < 100; i++) {
                assertThat(connection.get("/orders", basic("alice")).status()).isEqualTo(429);
            }
        }
        assertThat(server.available("per-endpoint", "GET /orders")).isEqualTo(4000 - 800);
        assertThat(server.available("global")).isEqualTo(7000 - 800);
        assertThat(server.available("per-ip", "127.0.0.1"))
                .as("the early phase is written, so it keeps what it took")
                .isEqualTo(1200 - 900);
    }

    @Test
    void aConfiguredEarlyPolicyBoundsWrongPasswords() {
        RawHttp attacker = server.http().from("127.0.0.66");
        try (Connection connection = attacker.open()) {
            for (int i = 0; i < 1200; i++) {
                assertThat(connection
                                .get("/orders", basic("alice", "guess" + i))
                                .status())
                        .isEqualTo(401);
            }
        }
        Response refusal = attacker.get("/orders", basic("alice", "alice"));
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.body()).contains("\"violated-policies\":[\"per-ip\"]");
        assertThat(refusal.header("RateLimit-Policy")).isEqualTo("\"per-ip\";q=1200;w=60");

        assertThat(server.available("per-endpoint", "GET /orders"))
                .as("what accounts share is asked after authentication")
                .isEqualTo(4000);
        assertThat(server.available("global")).isEqualTo(7000);
        assertThat(server.available("per-user-per-endpoint", "alice", "GET /orders"))
                .as("nobody has shown to be alice")
                .isEqualTo(800);
        assertThat(server.http().get("/orders", basic("alice")).status())
                .as("from elsewhere alice is not locked out")
                .isEqualTo(200);
    }

    @Test
    void anAllowedResponseShowsTheClientsTokensAndNeverTheLoad() {
        Response first = server.http().get("/orders", basic("alice"));
        assertThat(first.status()).isEqualTo(200);
        assertThat(first.header("RateLimit-Policy")).isEqualTo("\"per-user-per-endpoint\";q=800;w=80");
        assertThat(first.header("RateLimit")).isEqualTo("\"per-user-per-endpoint\";r=799;t=1");
        assertThat(first.header("Retry-After")).isNull();
        assertThat(first.header("X-RetryAfterMs")).isNull();

        for (int user = 0; user < 3; user++) {
            drain("/orders", "user" + user, "127.0.1." + user);
        }
        Response busy = server.http().get("/orders", basic("alice"));
        assertThat(server.available("per-endpoint", "GET /orders")).isEqualTo(1598);
        assertThat(busy.header("RateLimit"))
                .as("1598 of 4000 are a smaller share, but the others' doing")
                .isEqualTo("\"per-user-per-endpoint\";r=798;t=1");
    }

    @Test
    void pathVariablesShareTheBucketOfTheirEndpoint() {
        assertThat(server.http().get("/items/1", basic("alice")).status()).isEqualTo(200);
        assertThat(server.http().get("/items/2", basic("alice")).status()).isEqualTo(200);
        assertThat(server.available("per-user-per-endpoint", "alice", "GET /items/{id}"))
                .isEqualTo(798);
    }

    @Test
    void usersCompareIgnoringCase() {
        server.http().get("/orders", basic("alice"));
        server.http().get("/orders", basic("ALICE"));
        assertThat(server.available("per-user-per-endpoint", "Alice", "GET /orders"))
                .isEqualTo(798);
    }

    @Test
    void sixteenThreadsGetExactlyTheCapacity() throws Exception {
        int threads = 16;
        CountDownLatch ready = new CountDownLatch(threads);
        List<Integer> statuses = Collections.synchronizedList(new ArrayList<>());
        ExecutorService clients = Executors.newFixedThreadPool(threads);
        try {
            List<Future<Void>> done = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                String address = "127.0.2." + thread;
                Callable<Void> client = () -> {
                    try (Connection connection = server.http().from(address).open()) {
                        ready.countDown();
                        ready.await();
                        for (int i = 0; i < 75; i++) {
                            statuses.add(
                                    connection.get("/orders", basic("alice")).status());
                        }
                    }
                    return null;
                };
                done.add(clients.submit(client));
            }
            for (Future<Void> each : done) {
                each.get();
            }
        } finally {
            clients.shutdownNow();
        }
        Set<Integer> distinct = new TreeSet<>(statuses);
        assertThat(distinct).containsExactly(200, 429);
        assertThat(statuses).hasSize(1200);
        assertThat(Collections.frequency(statuses, 200)).isEqualTo(800);
        assertThat(server.available("per-endpoint", "GET /orders"))
                .as("all that was refused came back")
                .isEqualTo(4000 - 800);
        assertThat(server.available("global")).isEqualTo(7000 - 800);
    }

    private static void drainAlice(String path) {
        drain(path, "alice", "127.0.0.1");
    }

    private static void drain(String path, String user, String client) {
        try (Connection connection = server.http().from(client).open()) {
            for (int i = 1; i <= 800; i++) {
                assertThat(connection.get(path, basic(user)).status())
                        .as("request %d", i)
                        .isEqualTo(200);
            }
        }
    }

    @RestController
    static class Api {

        @GetMapping("/orders")
        String orders() {
            return "orders";
        }

        @GetMapping("/items/{id}")
        String item(@PathVariable String id) {
            return id;
        }
    }
}
