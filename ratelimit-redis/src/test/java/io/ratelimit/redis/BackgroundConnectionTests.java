package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.ratelimit.BackendException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("slow")
class BackgroundConnectionTests {

    private final AtomicInteger attempts = new AtomicInteger();
    private final List<Long> opened = new CopyOnWriteArrayList<>();
    private final Map<Integer, Long> closed = new ConcurrentHashMap<>();
    private int stuck;
    private int failing;
    private final BackgroundConnection<Integer> connection =
            new BackgroundConnection<>(this::connect, old -> closed.put(old, System.nanoTime()));

    private int connect() {
        int attempt = attempts.incrementAndGet();
        if (attempt == stuck) {
            new CompletableFuture<>().join();
        }
        if (attempt == failing) {
            new CompletableFuture<>().orTimeout(750, TimeUnit.MILLISECONDS).join();
        }
        opened.add(System.nanoTime());
        return attempt;
    }

    @Test
    void itIsMadeInTheBackgroundOnce() {
        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> {
            while (true) {
                new BackgroundConnection<>(() -> new CompletableFuture<>().join(), made -> {}).get();
            }
        });
        long began = System.nanoTime();
        await().ignoreExceptions().until(() -> connection.get() >= 1);
        connection.get();
        assertThat(attempts.get())
                .as("one, or one a second")
                .isLessThanOrEqualTo(
                        1 + (int) Duration.ofNanos(System.nanoTime() - began).toSeconds());
    }

    @Test
    void theOldOneIsUsedUntilThereIsAnotherAndClosedThen() {
        long began = System.nanoTime();
        assertThat(connection.begin().join()).isEqualTo(1);
        connection.renew();
        await().until(() -> {
            connection.renew();
            return connection.get() >= 2;
        });
        assertThat(Duration.ofNanos(opened.get(1) - began))
                .as("not before half a second has passed")
                .isGreaterThanOrEqualTo(Duration.ofMillis(500));
        await().until(() -> closed.containsKey(1));
        assertThat(Duration.ofNanos(closed.get(1) - opened.get(1)))
                .as("calls may still be on their way")
                .isGreaterThanOrEqualTo(Duration.ofSeconds(1));
        assertThat(closed).doesNotContainKey(connection.get());
    }

    /** The server may have accepted the connection and never answer. */
    @Test
    void anAttemptThatIsStuckIsNotWaitedFor() {
        stuck = 1;
        assertThat(connection.begin()).isNotDone();
        await().ignoreExceptions().until(() -> connection.get() >= 2);
    }

    /** Otherwise a connection that opens late would be neither used nor closed. */
    @Test
    void anAttemptWhoseCallerGaveUpEndsLikeOthers() {
        CompletableFuture<Integer> server = new CompletableFuture<>();
        BackgroundConnection<Integer> late =
                new BackgroundConnection<>(server::join, old -> closed.put(old, System.nanoTime()));
        late.begin().cancel(true);
        late.close();
        server.complete(7);
        await().until(() -> closed.containsKey(7));
    }

    /** The network may work again since the attempt began. */
    @Test
    void aRenewalDuringAnAttemptThatFailsIsMadeAfterIt() {
        failing = 2;
        connection.begin().join();
        await().until(() -> {
            connection.renew();
            return attempts.get() >= 2;
        });
        connection.renew();
        await().until(() -> connection.get() >= 3);
    }
}
