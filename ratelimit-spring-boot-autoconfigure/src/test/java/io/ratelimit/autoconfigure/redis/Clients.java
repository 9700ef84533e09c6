package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntUnaryOperator;

/**
 * Clients that send requests until they are closed, and keep the answers. Each waits for a moment before its next request:
 * otherwise the clients would need all processors for themselves during an outage, when answers take no time.
 */
final class Clients implements AutoCloseable {

    private static final long PAUSE = Duration.ofMillis(10).toNanos();

    /** The default deadline and its 20 ms, plus a margin for a busy machine. */
    private static final Duration HALF = Duration.ofMillis(100 + 20 + 400);

    /** A pause of the machine delays the requests of all clients; without a deadline, Lettuce waits a minute. */
    private static final Duration NEARLY_ALL = Duration.ofSeconds(5);

    private final ConcurrentLinkedQueue<Answer> answers = new ConcurrentLinkedQueue<>();
    private final List<Future<?>> running = new ArrayList<>();
    private final ExecutorService threads;
    private volatile boolean over;

    record Answer(int client, int status, long nanos) {}

    /**
     * @param ask the status that a client of that number gets
     */
    Clients(int count, IntUnaryOperator ask) {
        threads = Executors.newFixedThreadPool(count);
        for (int i = 0; i < count; i++) {
            int client = i;
            running.add(threads.submit(() -> {
                while (!over) {
                    long began = System.nanoTime();
                    int status = ask.applyAsInt(client);
                    answers.add(new Answer(client, status, System.nanoTime() - began));
                    LockSupport.parkNanos(PAUSE);
                }
            }));
        }
    }

    /** Returns the answers so far. */
    List<Answer> answers() {
        return List.copyOf(answers);
    }

    long count(int status) {
        return answers.stream().filter(answer -> answer.status == status).count();
    }

    /** Waits for the given number of further answers. */
    void awaitAnswers(int more) {
        int before = answers.size();
        await().until(() -> answers.size() >= before + more);
    }

    /** Asserts that half of the answers, and nearly all of them, came in time. */
    void assertInTime() {
        assertThat(percentile(0.5)).as(this::times).isLessThan(HALF);
        assertThat(percentile(0.99)).as(this::times).isLessThan(NEARLY_ALL);
    }

    private Duration percentile(double part) {
        long[] sorted = answers.stream().mapToLong(Answer::nanos).sorted().toArray();
        return Duration.ofNanos(sorted[(int) (part * (sorted.length - 1))]);
    }

    /** Returns the distribution of the answer times, for messages. */
    private String times() {
        return "of %d: half %s, 90%% %s, 99%% %s, all %s"
                .formatted(answers.size(), percentile(0.5), percentile(0.9), percentile(0.99), percentile(1));
    }

    /** Throws the exception of a client, if there was one. */
    @Override
    public void close() {
        stop();
    }

    /** Ends the clients; all answers have come then. */
    void stop() {
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
}
