package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.jdbc.JdbcStorage.Settings;
import io.ratelimit.remote.PatientAwaits;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A PostgreSQL that is stopped or killed, and starts again. */
@Tag("slow")
class PostgresRestartTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(5);
    private static final Charge ALL = Charge.of(ThrottlePolicy.of("api", BucketSpec.of("5/1d"), "user"), "alice", 5);

    @TempDir
    private Path directory;

    /** After a crash an unlogged table is empty, so buckets are full once more. After a regular stop nothing is lost. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theLimitIsEnforcedAgainOnceTheServerIsThere(boolean killed) {
        Settings settings = new Settings("buckets", url -> true, 4, TIMEOUT, "shop", "");
        try (RestartablePostgres server = new RestartablePostgres(directory);
                JdbcStorage storage = new JdbcStorage(server.source(), settings, TestDatabase.deadline(TIMEOUT))) {
            PatientAwaits.awaitSelfTest(storage);
            assertThat(storage.store().take(List.of(ALL)).allowed()).isTrue();
            if (killed) {
                server.kill();
            } else {
                server.stop();
            }
            for (int i = 0; i < 10; i++) {
                assertThat(catchThrowable(() -> storage.store().take(List.of(ALL))))
                        .isInstanceOf(BackendException.class);
            }
            server.start();
            Awaitility.await()
                    .ignoreExceptionsInstanceOf(BackendException.class)
                    .until(() -> {
                        storage.store().snapshot(ALL);
                        return true;
                    });
            assertThat(storage.store().take(List.of(ALL)).allowed()).isEqualTo(killed);
            assertThat(storage.store().take(List.of(ALL)).allowed()).isFalse();
        }
    }
}
