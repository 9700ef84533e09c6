package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.PatientAwaits;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

/** A write whose reply is lost: PostgreSQL has committed it, and the call can't know that. */
@Tag("slow")
class LostReplyTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(2);
    private static final Charge ALICE =
            Charge.of(ThrottlePolicy.of("api", BucketSpec.of("1/1d").withCapacity(100), "user"), "alice", 1);

    /** A line to PostgreSQL that loses one reply. */
    private static final class Line implements AutoCloseable {

        private final ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        private final PGSimpleDataSource target;

        /** The number of replies until one is lost. */
        private final AtomicInteger left = new AtomicInteger();

        Line(PGSimpleDataSource target) throws IOException {
            this.target = target;
            start(this::accept);
        }

        PGSimpleDataSource source() {
            PGSimpleDataSource source = new PGSimpleDataSource();
            source.setUrl(TestDatabase.url(target));
            source.setServerNames(new String[] {"127.0.0.1"});
            source.setPortNumbers(new int[] {listening.getLocalPort()});
            return source;
        }

        /** Loses the first or a later one of the next replies. */
        void lose(int reply) {
            left.set(reply);
        }

        boolean hasLost() {
            return left.get() <= 0;
        }

        private interface Work {
            void run() throws IOException;
        }

        private static void start(Work work) {
            Thread thread = new Thread(() -> {
                try {
                    work.run();
                } catch (IOException closed) {
                    // the end of the line
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        private void accept() throws IOException {
            while (true) {
                Socket client = listening.accept();
                Socket server = new Socket(target.getServerNames()[0], target.getPortNumbers()[0]);
                start(() -> {
                    try (client;
                            server) {
                        client.getInputStream().transferTo(server.getOutputStream());
                    }
                });
                start(() -> reply(server.getInputStream(), client.getOutputStream()));
            }
        }

        private void reply(InputStream in, OutputStream out) throws IOException {
            byte[] buffer = new byte[65_536];
            for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                if (left.getAndDecrement() != 1) {
                    out.write(buffer, 0, read);
                }
            }
        }

        @Override
        public void close() throws IOException {
            listening.close();
        }
    }

    private static JdbcStorage storage(PGSimpleDataSource source, String table) {
        return new JdbcStorage(
                source,
                new JdbcStorage.Settings(table, url -> true, 1, TIMEOUT, "shop", ""),
                TestDatabase.deadline(TIMEOUT));
    }

    private static long available(JdbcStorage observer) {
        return Awaitility.await()
                .ignoreExceptionsInstanceOf(BackendException.class)
                .until(() -> observer.store().snapshot(ALICE).available(), available -> true);
    }

    @Test
    void aLateTakeCostsItsTokensOnceAndIsNotRepeated() throws IOException {
        String table = TestDatabase.newTable();
        PGSimpleDataSource direct = (PGSimpleDataSource) TestDatabase.postgres();
        try (Line line = new Line(direct);
                JdbcStorage storage = storage(line.source(), table);
                JdbcStorage observer = storage(direct, table)) {
            PatientAwaits.awaitSelfTest(observer);
            for (int taken = 1; taken <= 3; taken++) {
                PatientAwaits.awaitSelfTest(storage); // opens a connection
                line.lose(2); // the first one is that of the read
                assertThatThrownBy(() -> storage.store().take(List.of(ALICE))).isInstanceOf(BackendException.class);
                Awaitility.await().until(line::hasLost);
                assertThat(available(observer)).isEqualTo(100 - taken);
            }
            PatientAwaits.awaitSelfTest(storage);
            for (int i = 0; i < 6; i++) {
                assertThat(storage.store().take(List.of(ALICE)).allowed()).isTrue();
            }
            line.lose(1); // that of a write, if the call reads nothing
            assertThatThrownBy(() -> storage.store().take(List.of(ALICE))).isInstanceOf(BackendException.class);
            Awaitility.await().until(line::hasLost);
            assertThat(available(observer)).isBetween(90L, 91L);
        }
    }
}
