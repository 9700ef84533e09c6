package io.ratelimit.starter.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.Backend.Condition;
import io.ratelimit.jdbc.RestartablePostgres;
import io.ratelimit.jdbc.TestDatabase;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Limits in a database that becomes unavailable and available again, over HTTP. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class JdbcOutageTests {

    private static final long PAUSE = Duration.ofMillis(10).toNanos();
    private static final int CLIENTS = 8;

    /** The deadline, plus a margin for a busy machine. */
    private static final Duration HALF = Duration.ofMillis(100 + 400);

    /** A pause of the machine delays the requests of all clients; without a deadline, requests wait half a minute. */
    private static final Duration NEARLY_ALL = Duration.ofSeconds(5);

    private static final Duration ABOUT_A_SECOND = Duration.ofMillis(1_800);

    private static final Duration PATIENTLY = Duration.ofMinutes(2);

    @TempDir
    private Path directory;

    private record Answer(int status, long nanos) {}

    /** Clients that send requests until they are closed, and wait for a moment after each answer. */
    private static final class Clients implements AutoCloseable {

        private final ConcurrentLinkedQueue<Answer> answers = new ConcurrentLinkedQueue<>();
        private final List<Future<?>> running = new ArrayList<>();
        private final ExecutorService threads = Executors.newFixedThreadPool(CLIENTS);
        private volatile boolean over;

        Clients(JdbcApplication application) {
            for (int i = 0; i < CLIENTS; i++) {
                running.add(threads.submit(() -> {
                    while (!over) {
                        long began = System.nanoTime();
                        int status = application.status("/a");
                        answers.add(new Answer(status, System.nanoTime() - began));
                        LockSupport.parkNanos(PAUSE);
                    }
                }));
            }
        }

        void awaitAnswers(int more) {
            int before = answers.size();
            await().atMost(PATIENTLY).until(() -> answers.size() >= before + more);
        }

        @Override
        public void close() {
            over = true;
            threads.shutdown();
            for (Future<?> client : running) {
                try {
                    client.get(30, TimeUnit.SECONDS);
                } catch (Exception failed) {
                    throw new AssertionError("a client failed", failed);
                }
            }
        }

        long count(int status) {
            return answers.stream().filter(answer -> answer.status == status).count();
        }

        void assertInTime() {
            assertThat(percentile(0.5)).isLessThan(HALF);
            assertThat(percentile(0.99)).isLessThan(NEARLY_ALL);
        }

        private Duration percentile(double part) {
            long[] sorted = answers.stream().mapToLong(Answer::nanos).sorted().toArray();
            return Duration.ofNanos(sorted[(int) (part * (sorted.length - 1))]);
        }
    }

    private static String yaml(String rule) {
        return """
                ratelimit:
                  backend: jdbc
                  on-backend-failure: %s
                  jdbc: { initialize-schema: always, local-share: 0.5 }
                  policies:
                    per-ip: { key: ip, rate: 20/1d, capacity: 40, paths: /a }
                """.formatted(rule);
    }

    private static void awaitCondition(JdbcApplication application, Condition condition) {
        await().atMost(PATIENTLY).until(() -> application.condition() == condition);
    }

    /** Each outage lasts until all clients have noticed it; the grants of all outages together are bounded. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aServerThatGoesAndComesUnderLoad(boolean killed, CapturedOutput output) throws Exception {
        try (RestartablePostgres server = new RestartablePostgres(directory);
                JdbcApplication application = JdbcApplication.start(TestDatabase.url(server.source()), yaml("local"))) {
            Clients clients = new Clients(application);
            try (clients) {
                clients.awaitAnswers(200);
                if (killed) {
                    server.kill();
                } else {
                    server.freeze();
                }
                // Denials are repeated from memory for a second, and then the outage is noticed.
                awaitCondition(application, Condition.DOWN);
                clients.awaitAnswers(500);
                if (killed) {
                    server.start();
                } else {
                    server.thaw();
                }
                awaitCondition(application, Condition.UP);
                clients.awaitAnswers(500);
            }
            assertThat(clients.answers).extracting(Answer::status).containsOnly(200, 429);
            assertThat(clients.count(200))
                    .as("40 of the database, 40 again where it crashed and forgot, and 20 of this node")
                    .isLessThanOrEqualTo(killed ? 40 * 2 + 20 : 40 + 20);
            clients.assertInTime();
            assertThat(output).contains("the database is unavailable (", "the database is available again");
        }
    }

    @Test
    void whileTheDatabaseIsGoneRequestsAreDeniedIfThePolicySaysSo() {
        try (RestartablePostgres server = new RestartablePostgres(directory);
                JdbcApplication application = JdbcApplication.start(
                        TestDatabase.url(server.source()), "ratelimit.jdbc.timeout: 5s\n" + yaml("deny"))) {
            assertThat(application.status("/a")).isEqualTo(200);
            server.stop();
            for (int i = 0; i < 20; i++) {
                assertThat(application.status("/a")).isEqualTo(503);
            }
            assertThat(application.get("/actuator/health").statusCode()).isEqualTo(503);
            server.start();
            await().atMost(PATIENTLY).until(() -> application.status("/a") == 200);
        }
    }

    /** A request may wait longer for the database than an operator does. */
    @Tag("timed")
    @Test
    void whileTheDatabaseIsFrozenEachOperationOfTheActuatorAnswersWithinASecond() {
        try (RestartablePostgres server = new RestartablePostgres(directory);
                JdbcApplication application = JdbcApplication.start(
                        TestDatabase.url(server.source()), "ratelimit.jdbc.timeout: 10s\n" + yaml("local"))) {
            String path = "/actuator/ratelimits/per-ip";
            Map<Supplier<HttpResponse<String>>, Integer> operations = Map.of(
                    () -> application.get(path + "?key=127.0.0.1"), 200,
                    () -> application.delete(path + "?key=127.0.0.1"), 503,
                    () -> application.delete(path + "/change"), 503,
                    () -> application.post(path, "{\"capacity\": 8, \"for\": \"all\"}"), 503);
            operations.forEach((operation, status) -> {
                await().atMost(PATIENTLY)
                        .until(() -> application.status("/a") == 200 && application.condition() == Condition.UP);
                server.freeze();
                HttpResponse<String> answer = answerWithinASecond(operation);
                server.thaw();
                assertThat(answer.statusCode()).as(answer.body()).isEqualTo(status);
            });
        }
    }

    /** A busy machine may delay some attempts. */
    private static HttpResponse<String> answerWithinASecond(Supplier<HttpResponse<String>> operation) {
        for (int attempt = 1; true; attempt++) {
            long began = System.nanoTime();
            HttpResponse<String> answer = operation.get();
            Duration time = Duration.ofNanos(System.nanoTime() - began);
            if (time.compareTo(ABOUT_A_SECOND) < 0) {
                return answer;
            }
            assertThat(attempt).as("attempts, the last one in %s", time).isLessThan(5);
        }
    }

    /** Somebody else locks all rows for a second. */
    @Test
    void aLockedRowDelaysNoRequestBeyondTheDeadline() throws Exception {
        try (RestartablePostgres server = new RestartablePostgres(directory);
                JdbcApplication application = JdbcApplication.start(TestDatabase.url(server.source()), yaml("local"))) {
            assertThat(application.status("/a")).isEqualTo(200);
            Clients clients = new Clients(application);
            try (clients;
                    Connection locking = server.source().getConnection()) {
                locking.setAutoCommit(false);
                locking.createStatement().execute("SELECT * FROM ratelimit_bucket FOR UPDATE");
                clients.awaitAnswers(200);
                locking.rollback();
                clients.awaitAnswers(200);
            }
            assertThat(clients.count(200)).isLessThanOrEqualTo(39 + 20);
            clients.assertInTime();
        }
    }
}
