package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.BackendException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class DeadlineTests {

    @AfterEach
    void calmDown() {
        Thread.interrupted();
    }

    @Test
    void whatComesInTimeIsReturned() {
        assertThat(Deadline.in(Duration.ofMinutes(1)).await(CompletableFuture.completedFuture("PONG")))
                .isEqualTo("PONG");
    }

    @Test
    void whatComesLateIsCancelled() {
        CompletableFuture<String> never = new CompletableFuture<>();

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> Deadline.in(Duration.ofMillis(1)).await(never))
                .withMessage("Redis didn't answer in time");
        assertThat(never).isCancelled();
    }

    /** Otherwise tasks that are cancelled would pass for a server that fails. */
    @Test
    void whoIsInterruptedGetsTheAnswerAndIsToldAfterwards() {
        CompletableFuture<String> soon =
                new CompletableFuture<String>().completeOnTimeout("PONG", 20, TimeUnit.MILLISECONDS);
        Thread.currentThread().interrupt();

        assertThat(Deadline.in(Duration.ofMinutes(1)).await(soon)).isEqualTo("PONG");
        assertThat(Thread.currentThread().isInterrupted()).isTrue();
    }

    @Test
    void norDoesHeWaitLonger() {
        Thread.currentThread().interrupt();

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> Deadline.in(Duration.ofMillis(20)).await(new CompletableFuture<>()))
                .withMessage("Redis didn't answer in time");
        assertThat(Thread.currentThread().isInterrupted()).isTrue();
    }
}
