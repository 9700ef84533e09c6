package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Tag("slow")
@Timeout(value = 10, unit = TimeUnit.MINUTES)
class WaitingConcurrencyTests {

    private static final int THREADS = 8;
    private static final Duration DAY = Duration.ofDays(1);

    private final ManualTimeSource time = new ManualTimeSource();
    private final TokenBucket bucket = TokenBucket.of(BucketSpec.of("1/1s").withCapacity(10), time);

    /** Due moments follow one another without a gap: each begins where another ends. */
    @Test
    void tokensThatThreadsTakeAheadFormOneQueue() {
        record Place(long due, long cost) {}
        Queue<Place> places = new ConcurrentLinkedQueue<>();
        assertThat(bucket.tryAcquire(10)).isTrue();
        Threads.run(THREADS, thread -> {
            long last = 0;
            for (int i = 0; i < 2_000; i++) {
                long cost = 1 + (thread + i) % 10;
                long due = bucket.reserve(cost).delay().toSeconds();
                assertThat(due).isGreaterThan(last);
                last = due;
                places.add(new Place(due, cost));
            }
        });
        List<Place> line = new ArrayList<>(places);
        line.sort(Comparator.comparingLong(Place::due));
        long before = 0;
        for (Place place : line) {
            assertThat(place.due - place.cost).isEqualTo(before);
            before = place.due;
        }
    }

    /** Calls of one cost, so exactly the tokens of the calls that weren't cancelled stay taken. */
    @Test
    void concurrentCancellingLosesAndAddsNoToken() {
        assertThat(bucket.tryAcquire(10)).isTrue();
        Threads.run(THREADS, thread -> {
            for (int i = 0; i < 5_000; i++) {
                Reservation reservation = bucket.reserve(3);
                assertThat(reservation.cancel()).isTrue();
                assertThat(reservation.cancel()).isFalse();
            }
        });
        long left = bucket.snapshot().resetAfter().toSeconds() - 10;
        assertThat(left).isGreaterThanOrEqualTo(0);
        assertThat(left % 3).isZero();
        time.advance(Duration.ofSeconds(left + 10));
        assertThat(bucket.tryAcquire(10)).isTrue();
        Reservation last = bucket.reserve(5);
        assertThat(last.delay()).isEqualTo(Duration.ofSeconds(5));
        last.cancel();
        assertThat(bucket.snapshot().resetAfter()).isEqualTo(Duration.ofSeconds(10));
    }

    /** Calls that stay are granted: at their moments no more tokens are granted than had come by then. */
    @Test
    void underConcurrentCancellingAndChangingNoMomentIsServedMoreThanItsTokens() {
        record Grant(long due, long cost) {}
        Queue<Grant> grants = new ConcurrentLinkedQueue<>();
        assertThat(bucket.tryAcquire(10)).isTrue();
        Threads.run(THREADS, thread -> {
            var random = new SplittableRandom(thread);
            for (int i = 0; i < 3_000; i++) {
                if (thread == 0 && i % 100 == 0) {
                    bucket.reconfigure(
                            BucketSpec.of(i % 200 == 0 ? "1/2s" : "1/1s").withCapacity(10));
                }
                long cost = 1 + random.nextInt(10);
                Reservation reservation = bucket.reserve(cost, DAY);
                if (reservation.decision().allowed() && random.nextInt(3) > 0) {
                    reservation.cancel();
                } else if (reservation.decision().allowed()) {
                    grants.add(new Grant(reservation.dueNanos(), cost));
                }
            }
        });
        List<Grant> line = new ArrayList<>(grants);
        line.sort(Comparator.comparingLong(Grant::due));
        long granted = 0;
        for (Grant grant : line) {
            granted += grant.cost;
            assertThat(granted).isLessThanOrEqualTo(Duration.ofNanos(grant.due).toSeconds());
        }
    }

    /** S3.5: time stands still, so the available and the granted tokens add up to the initial ones at any rate. */
    @Test
    void noTokenIsAddedOrLostWhenTheSpecChangesUnderLoad() {
        long capacity = 200_000;
        TokenBucket large = TokenBucket.of(BucketSpec.of("1/1s").withCapacity(capacity), time);
        LongAdder granted = new LongAdder();
        AtomicInteger running = new AtomicInteger(THREADS);
        Threads.run(THREADS + 1, thread -> {
            for (int i = 0; thread == THREADS && running.get() > 0; i++) {
                large.reconfigure(BucketSpec.of((1 + i % 3) + "/1s").withCapacity(capacity));
            }
            for (int i = 0; thread < THREADS && i < 5_000; i++) {
                granted.add(large.tryAcquire(2) ? 2 : 0);
                Reservation reservation = large.reserve(1);
                granted.add(i % 2 == 0 && reservation.cancel() ? 0 : 1);
                large.decide(1);
                large.giveBack(1);
            }
            running.decrementAndGet();
        });
        assertThat(granted.sum()).isEqualTo(THREADS * 12_500L);
        assertThat(large.snapshot().available()).isEqualTo(capacity - granted.sum());
    }

    @Test
    void threadsThatWaitAreServedInTheOrderOfTheirMoments() {
        int waiters = 1_000;
        assertThat(bucket.tryAcquire(10)).isTrue();
        Queue<Long> served = new ConcurrentLinkedQueue<>();
        List<CompletableFuture<Void>> calls = new ArrayList<>();
        for (int i = 0; i < waiters; i++) {
            calls.add(CompletableFuture.runAsync(() -> waitFor(1, served), work -> new Thread(work).start()));
            int arrived = i + 1;
            Threads.await(() -> time.waiting() == arrived);
        }
        for (int due = 50; due <= waiters; due += 50) {
            time.advance(Duration.ofSeconds(50));
            int now = due;
            Threads.await(() -> served.size() == now);
            assertThat(calls.subList(0, due)).allMatch(call -> call.join() == null);
            assertThat(calls.subList(due, waiters)).noneMatch(CompletableFuture::isDone);
        }
        assertThat(new ArrayList<>(served)).doesNotHaveDuplicates().hasSize(waiters);
        assertThat(time.waiting()).isZero();
    }

    private void waitFor(long cost, Queue<Long> served) {
        try {
            Reservation reservation = bucket.reserve(cost);
            reservation.await();
            served.add(reservation.dueNanos());
        } catch (InterruptedException interrupted) {
            throw new AssertionError(interrupted);
        }
    }

    @Test
    void asyncCallsThatAreCancelledInAStormLeaveNothingInTheTimer() {
        assertThat(bucket.tryAcquire(10)).isTrue();
        LongAdder served = new LongAdder();
        Threads.run(THREADS, thread -> {
            for (int i = 0; i < 500; i++) {
                CompletableFuture<Decision> call = bucket.acquireAsync(1, DAY);
                if (i % 2 == 0) {
                    call.cancel(false);
                } else {
                    call.thenRun(served::increment);
                }
            }
        });
        assertThat(time.waiting()).isEqualTo(THREADS * 250);
        time.advance(DAY);
        assertThat(served.sum()).isEqualTo(THREADS * 250);
        assertThat(time.waiting()).isZero();
    }
}
