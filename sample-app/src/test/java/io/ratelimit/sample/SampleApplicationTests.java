package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.ManualTimeSource;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Import;
import org.springframework.test.annotation.DirtiesContext;

/**
 * The limits of {@code application.yml} over HTTP, in a time that stands still until it is moved. Without the dashboard,
 * which waits for the next second too. Tests that change limits or the calendar leave their application to no other test.
 */
@SpringBootTest(
        webEnvironment = WebEnvironment.RANDOM_PORT,
        properties = "management.endpoint.ratelimitdashboard.access=none")
@Import(StandingTime.class)
@Tag("slow")
class SampleApplicationTests {

    private final HttpClient client = HttpClient.newHttpClient();
    private final int port;
    private final ManualTimeSource time;

    SampleApplicationTests(@LocalServerPort int port, @Autowired ManualTimeSource time) {
        this.port = port;
        this.time = time;
    }

    @BeforeEach
    void fillTheBuckets() {
        time.advance(Duration.ofDays(2));
    }

    @Test
    void theSeventhQuickReportIsRejectedAndTheNextComesAfterTenSeconds() throws Exception {
        for (int i = 0; i < 6; i++) {
            assertThat(get("/api/report", "alice").statusCode()).isEqualTo(200);
        }
        HttpResponse<String> rejected = get("/api/report", "alice");
        assertThat(rejected.statusCode()).isEqualTo(429);
        assertThat(rejected.headers().firstValue("Retry-After")).hasValue("10");
        assertThat(rejected.body()).contains("throttled by 'report' policy, please retry after 10000 ms.");
        time.advance(Duration.ofSeconds(10));

        assertThat(get("/api/report", "alice").statusCode()).isEqualTo(200);
    }

    @Test
    void whoIsOnTheProPlanGetsSixtyQuickReports() throws Exception {
        for (int i = 0; i < 60; i++) {
            assertThat(get("/api/report", "bob").statusCode()).isEqualTo(200);
        }
        assertThat(get("/api/report", "bob").body())
                .contains("throttled by 'report' policy, please retry after 1000 ms.");
        assertThat(get("/api/report", "alice").statusCode()).isEqualTo(200);
    }

    @DirtiesContext
    @Test
    void eachCustomerHasAsManyTranslationsAsItsPlanAndAChangeHoldsAtOnce() throws Exception {
        assertThat(translations("alice")).isEqualTo(20);
        assertThat(translations("bob")).isEqualTo(100);
        assertThat(translations("carol")).isEqualTo(5);
        HttpResponse<String> rejected = get("/api/translation", "alice");
        assertThat(rejected.headers().firstValue("RateLimit-Policy")).hasValue("\"translations\";q=20;w=60");
        assertThat(rejected.headers().firstValue("Retry-After")).hasValue("3");

        assertThat(plan("alice", "600/1m", "alice").statusCode()).isEqualTo(403);
        assertThat(plan("alice", "600", "admin").statusCode()).isEqualTo(400);
        assertThat(plan("alice", "600/1m", "admin").statusCode()).isEqualTo(204);

        assertThat(get("/api/translation", "alice").headers().firstValue("X-RetryAfterMs"))
                .hasValue("100");
        time.advance(Duration.ofSeconds(1));
        assertThat(translations("alice")).isEqualTo(10);
    }

    @DirtiesContext
    @Test
    void aQuotaOfTheMonthComesBackOnTheFirst() throws Exception {
        time.setWallClock(Instant.parse("2026-02-27T23:00:00Z"));
        for (int i = 0; i < 10; i++) {
            assertThat(get("/api/export", "alice").statusCode()).isEqualTo(200);
        }
        assertThat(get("/api/export", "alice").headers().firstValue("Retry-After"))
                .hasValue("86400");
        time.advance(Duration.ofDays(1));
        assertThat(get("/api/export", "alice").statusCode()).isEqualTo(200);
    }

    private int translations(String user) throws Exception {
        int allowed = 0;
        while (get("/api/translation", user).statusCode() == 200) {
            allowed++;
        }
        return allowed;
    }

    private HttpResponse<String> plan(String customer, String rate, String user) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder()
                .PUT(HttpRequest.BodyPublishers.ofString("{\"rate\": \"" + rate + "\"}"))
                .header("Content-Type", "application/json");
        return send(request, "/api/plans/" + customer, user, user);
    }

    @Test
    void aBurstOf800ToOneEndpointPassesAndOtherEndpointsGoOn() throws Exception {
        for (int i = 0; i < 800; i++) {
            assertThat(get("/api/items/" + (i % 3 + 1), "alice").statusCode()).isEqualTo(200);
        }
        assertThat(get("/api/items/1", "alice").body()).contains("'per-user-per-endpoint'");
        assertThat(get("/api/items", "alice").statusCode()).isEqualTo(200);
        assertThat(get("/api/items/1", "bob").statusCode()).isEqualTo(200);
    }

    @Test
    void anItemIsChangedFiveTimesAMinuteByAllTogether() throws Exception {
        for (int i = 0; i < 5; i++) {
            assertThat(put("/api/items/7", i % 2 == 0 ? "alice" : "bob").statusCode())
                    .isEqualTo(200);
        }
        HttpResponse<String> rejected = put("/api/items/7", "alice");
        assertThat(rejected.statusCode()).isEqualTo(429);
        assertThat(rejected.body()).contains("throttled by 'item-changes' policy, please retry after 12000 ms.");
        assertThat(put("/api/items/8", "alice").statusCode()).isEqualTo(200);
    }

    @Test
    void thirtyWrongPasswordsAreEnoughAndRightOnesCostNothing() throws Exception {
        for (int i = 0; i < 100; i++) {
            assertThat(get("/api/items", "alice").statusCode()).isEqualTo(200);
        }
        for (int i = 0; i < 30; i++) {
            assertThat(send("/api/items", "alice", "guess" + i).statusCode()).isEqualTo(401);
        }
        assertThat(send("/api/items", "alice", "guess").body())
                .contains("throttled by 'wrong-passwords' policy, please retry after 6000 ms.");
        assertThat(get("/api/items", "alice").statusCode()).isEqualTo(429);

        time.advance(Duration.ofSeconds(6));

        assertThat(get("/api/items", "alice").statusCode()).isEqualTo(200);
        assertThat(send("/api/items", "alice", "guess").statusCode()).isEqualTo(401);
        assertThat(send("/api/items", "alice", "guess").statusCode()).isEqualTo(429);
        String comma = "Basic," + Base64.getEncoder().encodeToString("alice:guess".getBytes(StandardCharsets.UTF_8));
        assertThat(send(HttpRequest.newBuilder().header("Authorization", comma), "/api/items", null, null)
                        .statusCode())
                .as("a scheme that Spring Security reads too")
                .isEqualTo(429);
    }

    @DirtiesContext
    @Test
    void theAdminChangesALimitAndWhoWasRejectedIsServedSooner() throws Exception {
        while (get("/api/report", "alice").statusCode() == 200) {
            time.advance(Duration.ofMillis(1));
        }
        assertThat(limit("report", "600/1m", "alice").statusCode()).isEqualTo(403);

        assertThat(limit("report", "600/1m", "admin").body())
                .contains(
                        "\"now\":{\"rate\":\"600/1m\",\"capacity\":600,\"refill\":\"greedy\",\"changed\":{\"for\":\"instance\"");

        HttpResponse<String> rejected = get("/api/report", "alice");
        assertThat(rejected.headers().firstValue("Retry-After")).hasValue("1");
        assertThat(rejected.headers().firstValue("RateLimit-Policy")).hasValue("\"report\";q=600;w=60");
        time.advance(Duration.ofSeconds(1));
        assertThat(get("/api/report", "alice").statusCode()).isEqualTo(200);
    }

    @Test
    void aLimitThatCannotBeIsRejected() throws Exception {
        HttpResponse<String> unpayable = limit("report", "9/1m", "admin");
        assertThat(unpayable.statusCode()).isEqualTo(400);
        assertThat(unpayable.body()).contains("must be at least the cost of the policy, 10, but was 9");
        assertThat(limit("report", "nine", "admin").statusCode()).isEqualTo(400);
        assertThat(limit("reports", "9/1m", "admin").statusCode()).isEqualTo(404);
    }

    @Test
    void onlyTheAdminSeesLimitsAndEverybodyTheHealth() throws Exception {
        assertThat(get("/actuator/ratelimits", "admin").body()).contains("\"report\"", "\"item-changes\"");
        assertThat(get("/actuator/ratelimits", "alice").statusCode()).isEqualTo(403);
        assertThat(get("/actuator/ratelimits", null).statusCode()).isEqualTo(401);
        assertThat(get("/actuator/health", null).body())
                .contains("\"status\":\"UP\"")
                .doesNotContain("details");
    }

    @DirtiesContext
    @Test
    void theAdminGetsThroughWhereNobodyElseDoes() throws Exception {
        change("global", "{\"rate\":\"1/1d\",\"capacity\":1}", "admin");
        assertThat(get("/api/items", "alice").statusCode()).isEqualTo(200);
        assertThat(get("/api/items", "alice").body()).contains("throttled by 'global' policy");
        assertThat(get("/actuator/ratelimits/global", "admin").statusCode()).isEqualTo(200);
    }

    @Test
    void checkoutsWaitInLineForTheirTurnAndTheThirteenthIsRejected() throws Exception {
        for (int i = 0; i < 2; i++) {
            assertThat(checkout().join().statusCode()).isEqualTo(200);
        }
        List<CompletableFuture<HttpResponse<String>>> waiting = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            waiting.add(checkout());
            int inLine = i + 1;
            await().until(() -> time.waiting() == inLine);
        }
        HttpResponse<String> rejected = checkout().join();
        assertThat(rejected.statusCode()).isEqualTo(429);
        assertThat(rejected.headers().firstValue("Retry-After")).hasValue("6");

        time.advance(Duration.ofMillis(500));

        assertThat(waiting.get(0).join().body()).isEqualTo("{\"number\":3}");
        assertThat(waiting.get(1)).isNotDone();
        time.advance(Duration.ofSeconds(5));
        assertThat(waiting).allMatch(answer -> answer.join().statusCode() == 200);
    }

    @Test
    void anAnswerTakesTheTokensThatItReallyCost() throws Exception {
        String question = "/api/assistant?question=Which+tea+is+good+on+a+rainy+day+in+November";
        for (int i = 0; i < 5; i++) {
            assertThat(get(question, "alice").body())
                    .isEqualTo("{\"text\":\"Have a cup of tea.\",\"totalTokens\":12000}");
        }
        assertThat(get(question, "alice").statusCode()).isEqualTo(429);
        assertThat(get(question, "bob").statusCode()).isEqualTo(200);
        time.advance(Duration.ofSeconds(11_000 * 86_400L / 50_000));
        assertThat(get(question, "alice").statusCode()).isEqualTo(200);
    }

    @Test
    void theSixthVoucherTriedIsAnsweredTwoSecondsLate() throws Exception {
        for (int i = 0; i < 5; i++) {
            assertThat(get("/api/vouchers/guess" + i, "alice").body()).isEqualTo("{\"good\":false}");
        }
        CompletableFuture<HttpResponse<String>> rejected =
                client.sendAsync(request("/api/vouchers/tea-time"), HttpResponse.BodyHandlers.ofString());
        await().until(() -> time.waiting() == 1);
        assertThat(rejected).isNotDone();

        time.advance(Duration.ofSeconds(2));

        assertThat(rejected.join().statusCode()).isEqualTo(429);
        assertThat(rejected.join().headers().firstValue("Retry-After")).hasValue("10");
    }

    @Test
    void theCatalogueComesAtHalfAMillionBytesASecond() {
        long start = time.nanoTime();
        CompletableFuture<HttpResponse<String>> download =
                client.sendAsync(request("/api/catalogue"), HttpResponse.BodyHandlers.ofString());
        while (!download.isDone()) {
            await().pollDelay(Duration.ZERO)
                    .pollInterval(Duration.ofMillis(1))
                    .until(() -> time.waiting() == 1 || download.isDone());
            time.advance(Duration.ofMillis(10));
        }
        assertThat(download.join().body()).hasSize(2_000_000);
        assertThat(Duration.ofNanos(time.nanoTime() - start)).isGreaterThanOrEqualTo(Duration.ofMillis(3_900));
    }

    @Test
    void aCustomerHasTwoDownloadsAtATime() throws Exception {
        List<CompletableFuture<HttpResponse<String>>> downloads = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            downloads.add(client.sendAsync(request("/api/catalogue"), HttpResponse.BodyHandlers.ofString()));
        }
        await().until(() -> time.waiting() == 2);

        HttpResponse<String> third = get("/api/catalogue", "alice");

        assertThat(third.statusCode()).isEqualTo(429);
        assertThat(third.headers().firstValue("RateLimit-Policy"))
                .hasValue("\"downloads\";q=2;qu=\"concurrent-requests\"");
        await().atMost(Duration.ofMinutes(2))
                .pollDelay(Duration.ZERO)
                .pollInterval(Duration.ofMillis(1))
                .until(() -> {
                    time.advance(Duration.ofMillis(10));
                    return downloads.stream().allMatch(CompletableFuture::isDone);
                });
        assertThat(downloads).allMatch(download -> download.join().statusCode() == 200);
    }

    @Test
    void whoAsksForTheHeadOfTheCatalogueTakesNoBandwidth() throws Exception {
        HttpRequest head = authorized("/api/catalogue")
                .method("HEAD", HttpRequest.BodyPublishers.noBody())
                .timeout(Duration.ofSeconds(20))
                .build();
        HttpResponse<Void> answer = client.send(head, HttpResponse.BodyHandlers.discarding());
        assertThat(answer.statusCode()).isEqualTo(200);
        assertThat(answer.headers().firstValue("Content-Length")).hasValue("2000000");
        assertThat(time.waiting()).as("for bytes that nobody gets").isZero();
    }

    @Test
    void theHomePageAndTheGreetingAreOpen() throws Exception {
        assertThat(get("/", null).body()).contains("A shop with limits");
        assertThat(get("/api/hello", null).body()).isEqualTo("{\"text\":\"hello\"}");
    }

    private CompletableFuture<HttpResponse<String>> checkout() {
        HttpRequest request = authorized("/api/checkout")
                .POST(HttpRequest.BodyPublishers.noBody())
                .build();
        return client.sendAsync(request, HttpResponse.BodyHandlers.ofString());
    }

    private HttpRequest request(String path) {
        return authorized(path).build();
    }

    private HttpRequest.Builder authorized(String path) {
        return authorized(HttpRequest.newBuilder(), path, "alice", "alice");
    }

    private HttpResponse<String> get(String path, @Nullable String user) throws IOException, InterruptedException {
        return send(path, user, user);
    }

    private HttpResponse<String> put(String path, String user) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder()
                .PUT(HttpRequest.BodyPublishers.ofString("{\"name\":\"kettle\"}"))
                .header("Content-Type", "application/json");
        return send(request, path, user, user);
    }

    /** No other test leaves calls of this policy to its application. */
    @Test
    void whoIsLimitedByWhatIsThereForPrometheus() throws Exception {
        assertThat(translations("carol")).isEqualTo(5);

        assertThat(get("/actuator/prometheus", "carol").statusCode()).isEqualTo(403);
        assertThat(get("/actuator/prometheus", "admin").body())
                .contains(
                        "ratelimit_decisions_total{backend=\"local\",outcome=\"allowed\",policy=\"translations\"} 5.0")
                .contains(
                        "ratelimit_decisions_total{backend=\"local\",outcome=\"denied\",policy=\"translations\"} 1.0");
    }

    private HttpResponse<String> limit(String policy, String rate, String user)
            throws IOException, InterruptedException {
        return change(policy, "{\"rate\":\"" + rate + "\"}", user);
    }

    private HttpResponse<String> change(String policy, String json, String user)
            throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder()
                .POST(HttpRequest.BodyPublishers.ofString(json))
                .header("Content-Type", "application/json");
        return send(request, "/actuator/ratelimits/" + policy, user, user);
    }

    private HttpResponse<String> send(String path, @Nullable String user, @Nullable String password)
            throws IOException, InterruptedException {
        return send(HttpRequest.newBuilder(), path, user, password);
    }

    private HttpResponse<String> send(
            HttpRequest.Builder request, String path, @Nullable String user, @Nullable String password)
            throws IOException, InterruptedException {
        return client.send(authorized(request, path, user, password).build(), HttpResponse.BodyHandlers.ofString());
    }

    private HttpRequest.Builder authorized(
            HttpRequest.Builder request, String path, @Nullable String user, @Nullable String password) {
        request.uri(URI.create("http://localhost:" + port + path));
        if (user != null) {
            byte[] credentials = (user + ":" + password).getBytes(StandardCharsets.UTF_8);
            request.header("Authorization", "Basic " + Base64.getEncoder().encodeToString(credentials));
        }
        return request;
    }
}
