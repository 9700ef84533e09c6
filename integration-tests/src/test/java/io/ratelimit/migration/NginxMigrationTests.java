package io.ratelimit.migration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The examples of {@code docs/migrating/nginx.md}. */
@Tag("slow")
class NginxMigrationTests {

    private static final MigrationPage PAGE = MigrationPage.of("nginx");
    private static final String PATH = "/api/greeting";

    @BeforeAll
    static void needsNginx() {
        assumeTrue(Nginx.binary().isPresent(), "nginx is not installed, and RATELIMIT_TEST_NGINX names none");
    }

    @Test
    void aBurstIsTheCapacityLessOne() throws IOException {
        List<Integer> expected = List.of(200, 200, 200, 200, 200, 429, 429);

        try (Nginx before = Nginx.start(PAGE.before("Burst without delay"))) {
            assertThat(before.client().statuses(7, PATH)).isEqualTo(expected);
            HttpResponse<String> rejection = before.client().get(PATH);
            assertThat(rejection.headers().map()).doesNotContainKey("Retry-After");
            assertThat(rejection.headers().firstValue("Content-Type")).hasValue("text/html");
        }
        try (RunningApplication after =
                RunningApplication.start(GreetingApplication.class, PAGE.after("Burst without delay"))) {
            assertThat(after.client().statuses(7, PATH)).isEqualTo(expected);
            HttpResponse<String> rejection = after.client().get(PATH);
            assertThat(rejection.headers().firstValue("Retry-After")).hasValue("60");
            assertThat(rejection.body()).contains("'clients' policy");
            assertThat(after.client().statuses(2, "/greeting")).containsOnly(200);

            after.time().advance(Duration.ofMinutes(1));
            assertThat(after.client().statuses(2, PATH)).containsExactly(200, 429);
        }
    }

    @Test
    void aDelayedBurstIsAMaxWait() throws IOException {
        try (Nginx before = Nginx.start(PAGE.before("Burst with delay"))) {
            Client client = before.client();
            long began = System.nanoTime();
            List<CompletableFuture<HttpResponse<String>>> answers =
                    Stream.of(1, 2, 3).map(request -> client.send(PATH)).toList();

            assertThat(answers.stream().map(answer -> answer.join().statusCode()))
                    .containsExactlyInAnyOrder(200, 200, 503);
            assertThat(Duration.ofNanos(System.nanoTime() - began)).isGreaterThan(Duration.ofMillis(2900));
        }
        try (RunningApplication after =
                RunningApplication.start(GreetingApplication.class, PAGE.after("Burst with delay"))) {
            Client client = after.client();
            assertThat(client.get(PATH).statusCode()).isEqualTo(200);
            CompletableFuture<HttpResponse<String>> second = client.send(PATH);
            Awaitility.await().until(() -> after.time().waiting() == 1);
            assertThat(client.get(PATH).statusCode()).isEqualTo(503);

            after.time().advance(Duration.ofMillis(2999));
            assertThat(second).isNotDone();
            after.time().advance(Duration.ofMillis(1));
            assertThat(second.join().statusCode()).isEqualTo(200);
        }
    }

    @Test
    void someAddressesHaveNoLimit() throws IOException {
        allPass(PAGE.before("Addresses without a limit"), PAGE.after("Addresses without a limit"));
    }

    @Test
    void aDryRunRejectsNothing() throws IOException {
        allPass(PAGE.before("Dry run"), PAGE.after("Dry run"));
    }

    private static void allPass(String nginx, String ours) throws IOException {
        try (Nginx before = Nginx.start(nginx)) {
            assertThat(before.client().statuses(3, PATH)).containsOnly(200);
        }
        try (RunningApplication after = RunningApplication.start(GreetingApplication.class, ours)) {
            assertThat(after.client().statuses(3, PATH)).containsOnly(200);
        }
    }
}
