package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.remote.lease.JavaProcess;
import io.ratelimit.remote.lease.RecordedTakes;
import java.nio.file.Path;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Instances as in production: processes that share nothing but the database. */
@Tag("slow")
class JdbcProcessesTests {

    private static final double CAPACITY = RecordedTakes.POLICY.spec().capacity();

    private final String table = TestDatabase.newTable();
    private final List<JavaProcess> processes = new ArrayList<>();
    private final List<RecordedTakes> takes = new ArrayList<>();

    @TempDir
    private Path directory;

    @AfterEach
    void close() throws Exception {
        JavaProcess.kill(processes);
    }

    /** The three processes together request more than twice the capacity. */
    @Test
    void threeProcessesTakeExactlyTheCapacity() throws Exception {
        String url = TestDatabase.url(TestDatabase.postgres());
        for (int i = 0; i < 3; i++) {
            processes.add(JavaProcess.start(TakesFromDatabase.class, url, table)); // all want to create the table
        }
        JavaProcess.begin(processes);
        long taken = 0;
        for (JavaProcess process : processes) {
            taken += process.readNumber();
        }
        assertThat(taken).isEqualTo(TakesFromDatabase.CAPACITY);
    }

    private void startWithLeases(DataSource source) throws Exception {
        for (int i = 0; i < 3; i++) {
            Path file = directory.resolve("takes" + i);
            takes.add(RecordedTakes.in(file));
            processes.add(
                    JavaProcess.start(LeasesFromDatabase.class, TestDatabase.url(source), table, file.toString()));
        }
        JavaProcess.begin(processes);
        awaitMore(takes, 3_000);
    }

    private static void awaitMore(List<RecordedTakes> takes, long number) {
        long before = RecordedTakes.count(takes);
        Awaitility.await().atMost(Duration.ofSeconds(60)).until(() -> RecordedTakes.count(takes) > before + number);
    }

    private double excess() throws Exception {
        close();
        return RecordedTakes.excess(takes);
    }

    /** One process is killed, another one stopped for a while, and somebody locks the row for a second. */
    @Test
    void processesWithLeasesNeverGrantMoreThanOneBucketMay() throws Exception {
        startWithLeases(TestDatabase.postgres());
        processes.get(0).kill();
        awaitMore(takes, 2_000);
        processes.get(1).signal("-STOP");
        awaitMore(takes.subList(2, 3), 1_500);
        processes.get(1).signal("-CONT");
        awaitMore(takes.subList(1, 2), 500);
        try (Connection other = TestDatabase.postgres().getConnection()) {
            other.setAutoCommit(false);
            other.createStatement().execute("SELECT * FROM " + table + " FOR UPDATE");
            other.createStatement().execute("SELECT pg_sleep(1)");
            other.rollback();
        }
        awaitMore(takes, 4_000);
        assertThat(excess()).isLessThanOrEqualTo(CAPACITY + 1);
    }

    /** A crash empties an unlogged table: there is one more bucket then. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aDatabaseThatStartsAgainGrantsNoMoreThanABucketForEachCrash(boolean killed) throws Exception {
        try (RestartablePostgres server = new RestartablePostgres(directory)) {
            startWithLeases(server.source());
            if (killed) {
                server.kill();
            } else {
                server.stop();
            }
            server.start();
            awaitMore(takes, 6_000);
            assertThat(excess()).isLessThanOrEqualTo((killed ? 2 : 1) * CAPACITY + 1);
        }
    }
}
