package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.ratelimit.BackendException;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class BackgroundConnectionTests {

    private final AtomicInteger attempts = new AtomicInteger();
    private final Queue<Integer> closed = new ConcurrentLinkedQueue<>();
    private int stuck;
    private int failing;
    private final BackgroundConnection<Integer> connection = new BackgroundConnection<>(this::connect, closed::add);

    private int connect() {
        int attempt = attempts.incrementAndGet();
        if (attempt == stuck) {
            new CompletableFuture<>().join();
        }
        if (attempt == failing) {
            new CompletableFuture<>().orTimeout(750, TimeUnit.MILLISECONDS).join();
        }
        return attempt;
    }

    @Test
    void itIsMadeInTheBackgroundOnce() {
        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> {
            while (true) {
                new BackgroundConnection<>(() -> new CompletableFuture<>().join(), made -> {}).get();
            }
        });
        await().ignoreExceptions().until(() -> connection.get() == 1);
        assertThat(connection.get()).isEqualTo(1);
        assertThat(attempts).hasValue(1);
    }

    @Test
    void theOldOneIsUsedUntilThereIsAnotherAndClosedThen() {
        assertThat(connection.begin().join()).isEqualTo(1);
        connection.renew();
        assertThat(attempts).as("not before half a second has passed").hasValue(1);

        await().until(() -> {
            connection.renew();
            return connection.get() == 2;
        });
        assertThat(closed).as("calls may still be on their way").isEmpty();
        await().until(() -> closed.contains(1));
        assertThat(closed).doesNotContain(connection.get());
    }

    /** The server may have accepted the connection and never answer. */
    @Test
    void anAttemptThatIsStuckIsNotWaitedFor() {
        stuck = 1;
        assertThat(connection.begin()).isNotDone();
        await().ignoreExceptions().until(() -> connection.get() == 2);
    }

    /** The network may work again since the attempt began. */
    @Test
    void aRenewalDuringAnAttemptThatFailsIsMadeAfterIt() {
        failing = 2;
        connection.begin().join();
        await().until(() -> {
            connection.renew();
            return attempts.get() == 2;
        });
        connection.renew();
        await().until(() -> connection.get() == 3);
    }
}
