package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.RedisCommandExecutionException;
import io.ratelimit.BackendException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ConnectionCheckTests {

    private final AtomicInteger pings = new AtomicInteger();
    private final AtomicInteger renewals = new AtomicInteger();
    private volatile CompletableFuture<?> pong = new CompletableFuture<>();
    private volatile Supplier<CompletableFuture<?>> ping = () -> pong;
    private final RedisConnections.ConnectionCheck check = new RedisConnections.ConnectionCheck(
            () -> {
                pings.incrementAndGet();
                return ping.get();
            },
            renewals::incrementAndGet);

    private void timesOut() {
        check.failed(new BackendException("late", new TimeoutException()));
    }

    @Test
    void aServerThatAnswersThePingIsOnlySlow() {
        pong = CompletableFuture.completedFuture("PONG");
        timesOut();
        timesOut();

        assertThat(pings).hasValue(2);
        assertThat(renewals).hasValue(0);
    }

    @Test
    void anErrorIsAnAnswerToThePingToo() {
        pong = CompletableFuture.failedFuture(new RedisCommandExecutionException("NOPERM"));
        timesOut();

        assertThat(renewals).hasValue(0);
    }

    @Test
    void aPingThatCouldNotBeSentIsNotTheLast() {
        ping = () -> {
            throw new BackendException("there is no connection yet");
        };
        timesOut();
        assertThat(renewals).hasValue(0);

        ping = () -> {
            throw new LinkageError();
        };
        timesOut();
        timesOut();
        assertThat(pings).hasValue(3);
    }

    @Test
    void aPingWhoseReplyCouldNotBeAwaitedIsNotTheLast() {
        pong = new CompletableFuture<>() {
            @Override
            public <U> CompletableFuture<U> thenApply(Function<? super Object, ? extends U> next) {
                throw new OutOfMemoryError();
            }
        };
        assertThatThrownBy(this::timesOut).isInstanceOf(OutOfMemoryError.class);
        assertThatThrownBy(this::timesOut).isInstanceOf(OutOfMemoryError.class);
        assertThat(pings).hasValue(2);
    }

    @Test
    void withoutAnAnswerToThePingTheConnectionIsRenewed() {
        long began = System.nanoTime();
        timesOut();
        timesOut();
        assertThat(pings.get()).as("one at a time").isBetween(1, 1 + pingTimeoutsSince(began));
        assertThat(renewals.get()).isLessThanOrEqualTo(pingTimeoutsSince(began));

        await().until(() -> renewals.get() > 0);
        await().until(() -> {
            timesOut();
            return pings.get() > 1;
        });
    }

    /** Returns how many pings, each after the one before, may have had no answer for half a second since a moment. */
    private static int pingTimeoutsSince(long moment) {
        return (int) ((System.nanoTime() - moment) / 500_000_000);
    }

    /** Redis 6 has the word at the end of a script's error. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "READONLY You can't write against a read only replica.",
                "ERR Error running script (call to f_0): @user_script:74: -READONLY You can't write against a replica."
            })
    void aReplicaIsLeftAtOnce(String error) {
        check.failed(new BackendException("failed", new RedisCommandExecutionException(error), true));

        assertThat(renewals).hasValue(1);
        assertThat(pings).hasValue(0);
    }

    @Test
    void otherFailuresProveNothingAboutTheConnection() {
        check.failed(new BackendException("none yet"));
        check.failed(new BackendException("full", new RedisCommandExecutionException("OOM"), true));

        assertThat(renewals).hasValue(0);
        assertThat(pings).hasValue(0);
    }
}
