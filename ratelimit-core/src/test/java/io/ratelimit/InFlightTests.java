package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy.Mode;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class InFlightTests {

    private static final ThrottlePolicy EXPORTS = ThrottlePolicy.of("exports", BucketSpec.inFlight(2), "user");
    private static final ThrottlePolicy CHAT =
            ThrottlePolicy.of("chat", BucketSpec.of("3/1m").withInFlight(2), "user");
    private static final ThrottlePolicy GLOBAL = ThrottlePolicy.of("global", BucketSpec.of("5/1m"));
    private static final ThrottlePolicy PATIENT = ThrottlePolicy.of("patient", BucketSpec.inFlight(1), "user")
            .withMaxWait(Duration.ofSeconds(10))
            .withQueueLimit(3);
    private static final ThrottlePolicy SHADOW =
            ThrottlePolicy.of("shadow", BucketSpec.inFlight(1)).withMode(Mode.SHADOW);

    private final ManualTimeSource time = new ManualTimeSource();
    private final List<Decision> reported = new ArrayList<>();
    private final Throttlers throttlers =
            new Throttlers(List.of(EXPORTS, CHAT, GLOBAL, PATIENT, SHADOW), BucketStore.local(time), time, decision -> {
                synchronized (reported) {
                    reported.add(decision);
                }
            });

    private Charge charge(ThrottlePolicy policy, String key) {
        return Charge.of(throttlers.get(policy.name()).policy(), key, 1);
    }

    private Decision decide(Charge... charges) {
        return throttlers.decide(List.of(charges));
    }

    private long tokens(ThrottlePolicy policy, String key) {
        return throttlers.snapshot(charge(policy, key)).available();
    }

    private CompletableFuture<Decision> acquire(Charge... charges) {
        return acquire(throttlers, List.of(charges));
    }

    private static CompletableFuture<Decision> acquire(Throttlers throttlers, List<Charge> charges) {
        return CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return throttlers.acquire(charges);
                    } catch (InterruptedException interrupted) {
                        throw new AssertionError(interrupted);
                    }
                },
                work -> new Thread(work).start());
    }

    private void awaitWaiting(int count) {
        Threads.await(() -> throttlers.waiting("patient") == count && time.waiting() == count);
    }

    @Test
    void anErrorOfTheJvmInAListenerLeavesNoSlotBehind() {
        Throttlers broken = new Throttlers(List.of(EXPORTS), BucketStore.local(time), time, decision -> {
            throw new OutOfMemoryError();
        });
        assertThatExceptionOfType(OutOfMemoryError.class)
                .isThrownBy(() -> broken.get("exports").forKey("alice").decide(1));
        assertThat(broken.inFlight("exports")).isZero();
    }

    @Test
    void asManyCallsOfAKeyRunAsThereAreSlots() {
        Decision first = decide(charge(EXPORTS, "alice"));
        Decision second = decide(charge(EXPORTS, "alice"));
        Decision third = decide(charge(EXPORTS, "alice"));

        assertThat(List.of(first, second)).allMatch(Decision::allowed).allMatch(Decision::isInFlight);
        assertThat(first.remaining()).isEqualTo(1);
        assertThat(third.outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(third.isInFlight()).isFalse();
        assertThat(decide(charge(EXPORTS, "bob")).allowed()).isTrue();
        first.release();
        assertThat(decide(charge(EXPORTS, "alice")).allowed()).isTrue();
        assertThat(throttlers.inFlight("exports")).isEqualTo(3);
    }

    @Test
    void aDecisionIsReleasedOnce() {
        Decision first = decide(charge(EXPORTS, "alice"));
        decide(charge(EXPORTS, "alice"));

        first.release();
        first.release();

        assertThat(throttlers.inFlight(charge(EXPORTS, "alice"))).isEqualTo(1);
    }

    @Test
    void onlyTheLastOfTheKeysWithNothingInFlightHasAnEntry() {
        for (int i = 0; i < 1000; i++) {
            decide(charge(EXPORTS, "user" + i)).release();
        }

        assertThat(throttlers.get("exports").slots().held()).isZero();
        assertThat(throttlers.get("exports").slots().size()).isOne();
        assertThat(throttlers.size("exports")).as("buckets").isZero();
    }

    @Test
    void aDenialForSlotsTakesNoTokens() {
        decide(charge(CHAT, "alice"));
        decide(charge(CHAT, "alice"));

        Decision denied = decide(charge(CHAT, "alice"), charge(GLOBAL, ""));

        assertThat(denied.outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(denied.denials())
                .extracting(answer -> answer.policy().name())
                .containsExactly("chat");
        assertThat(tokens(CHAT, "alice")).isEqualTo(1);
        assertThat(tokens(GLOBAL, "")).isEqualTo(5);
    }

    @Test
    void aDenialForTokensGivesTheSlotsBack() {
        for (int i = 0; i < 3; i++) {
            decide(charge(CHAT, "alice")).release();
        }

        Decision denied = decide(charge(CHAT, "alice"), charge(EXPORTS, "alice"));

        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.answers()).extracting(Answer::allowed).containsExactly(false, true);
        assertThat(throttlers.inFlight("chat") + throttlers.inFlight("exports")).isZero();
    }

    @Test
    void theAnswersAreInTheOrderOfTheCharges() {
        Decision allowed = decide(charge(EXPORTS, "alice"), charge(GLOBAL, ""), charge(CHAT, "alice"));

        assertThat(allowed.answers())
                .extracting(answer -> answer.policy().name())
                .containsExactly("exports", "global", "chat");
        assertThat(allowed.answers()).extracting(Answer::remaining).containsExactly(1L, 4L, 2L);
        allowed.release();
        assertThat(throttlers.inFlight("chat") + throttlers.inFlight("exports")).isZero();
    }

    @Test
    void aStoreThatFailsLeavesNoSlotHeld() {
        BucketStore failing = (BucketStore) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {BucketStore.class}, (store, method, arguments) -> {
                    if (method.getName().equals("backend") || method.getName().equals("slots")) {
                        return null;
                    }
                    throw new BackendException("down");
                });
        Throttlers broken = new Throttlers(List.of(CHAT), failing, time, ThrottleListener.NONE);
        Throttler chat = broken.get("chat").forKey("alice");

        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> chat.decide(1));
        assertThat(broken.inFlight("chat")).isZero();
    }

    @Test
    void theRetryTimeIsTheMeanTimeThatSlotsAreHeldDividedByTheirNumber() {
        Decision first = decide(charge(EXPORTS, "alice"));
        time.advance(Duration.ofSeconds(30));
        first.release();
        decide(charge(EXPORTS, "alice"));
        decide(charge(EXPORTS, "alice"));

        assertThat(decide(charge(EXPORTS, "alice")).retryAfter()).isEqualTo(Duration.ofSeconds(15));
    }

    /** It is one time for all keys. */
    @Test
    void longCallsOfOneKeyDoNotMakeOthersStayAway() {
        for (int i = 0; i < 100; i++) {
            Decision running = decide(charge(EXPORTS, "mallory"));
            time.advance(Duration.ofHours(8));
            running.release();
        }
        decide(charge(EXPORTS, "alice"));
        decide(charge(EXPORTS, "alice"));

        assertThat(decide(charge(EXPORTS, "alice")).retryAfter()).isEqualTo(Duration.ofSeconds(30));
    }

    @Test
    void theRetryTimeIsAtLeastASecond() {
        decide(charge(EXPORTS, "alice")).release();
        decide(charge(EXPORTS, "alice"));
        decide(charge(EXPORTS, "alice"));

        Decision denied = decide(charge(EXPORTS, "alice"));

        assertThat(denied.retryAfter()).isEqualTo(Duration.ofSeconds(1));
        assertThat(denied.describe("request"))
                .isEqualTo("Too many requests are in flight for 'exports' policy, please retry after 1000 ms.");
    }

    @Test
    void theClockIsReadForFewOfTheShortCallsAndForEachLongOne() {
        AtomicLong nanos = new AtomicLong(1);
        AtomicInteger readings = new AtomicInteger();
        Throttler exports = exports(() -> {
            readings.incrementAndGet();
            return nanos.get();
        });
        for (int call = 0; call < 10_000; call++) {
            Decision running = exports.decide(1);
            nanos.addAndGet(1_000);
            running.release();
        }
        assertThat(readings.getAndSet(0)).isBetween(1_000, 5_000);

        for (int call = 0; call < 1_000; call++) {
            Decision running = exports.decide(1);
            nanos.addAndGet(30_000_000_000L);
            running.release();
        }
        assertThat(readings.get()).isGreaterThan(1_500);
        exports.decide(1);
        exports.decide(1);
        assertThat(exports.decide(1).retryAfter()).isBetween(Duration.ofSeconds(14), Duration.ofSeconds(15));
    }

    @Test
    void aListenerGetsTheTimeOfEveryCall() {
        List<Long> held = new ArrayList<>();
        PolicyListener listener = new PolicyListener() {
            @Override
            public void decided(Decision decision, Answer answer) {}

            @Override
            public void released(long nanos) {
                held.add(nanos);
            }
        };
        Throttler exports = exports(time, new ThrottleListener() {
            @Override
            public void decided(Decision decision) {}

            @Override
            public PolicyListener added(PolicyThrottler throttler) {
                return listener;
            }
        });
        for (int call = 0; call < 100; call++) {
            Decision running = exports.decide(1);
            time.advance(Duration.ofNanos(100 + call));
            running.release();
        }

        assertThat(held).isEqualTo(LongStream.range(100, 200).boxed().toList());
    }

    private static Throttler exports(TimeSource time) {
        return exports(time, decision -> {});
    }

    private static Throttler exports(TimeSource time, ThrottleListener listener) {
        Throttlers throttlers = new Throttlers(List.of(EXPORTS), BucketStore.local(time), time, listener);
        return throttlers.get("exports").forKey("alice");
    }

    @Test
    void aPolicyInShadowModeCountsAndDeniesNothing() {
        Decision first = decide(charge(SHADOW, ""));
        Decision second = decide(charge(SHADOW, ""));

        assertThat(List.of(first, second)).allMatch(Decision::allowed);
        assertThat(throttlers.inFlight("shadow")).isEqualTo(1);
        assertThat(reported).extracting(Decision::outcome).contains(Outcome.TOO_MANY_IN_FLIGHT);
        first.release();
        second.release();
        assertThat(throttlers.inFlight("shadow")).isZero();
    }

    @Test
    void waitingCallsGetSlotsInTheirOrder() throws Exception {
        Decision running = decide(charge(PATIENT, "alice"));
        CompletableFuture<Decision> second = acquire(charge(PATIENT, "alice"));
        awaitWaiting(1);
        CompletableFuture<Decision> third = acquire(charge(PATIENT, "alice"));
        awaitWaiting(2);

        running.release();
        assertThat(second.get().allowed()).isTrue();
        assertThat(decide(charge(PATIENT, "alice")).allowed()).as("a newcomer").isFalse();
        assertThat(third).isNotDone();
        second.get().release();
        assertThat(third.get().allowed()).isTrue();
        third.get().release();
        assertThat(throttlers.get("patient").slots().held()).isZero();
        assertThat(time.waiting()).isZero();
    }

    @Test
    void aCallThatWaitsForTwoSlotsReportsEachWaitToItsPolicy() throws Exception {
        Map<String, Duration> waits = new ConcurrentHashMap<>();
        ThrottlePolicy later =
                ThrottlePolicy.of("later", BucketSpec.inFlight(1)).withMaxWait(Duration.ofSeconds(10));
        Throttlers both =
                new Throttlers(List.of(PATIENT, later), BucketStore.local(time), time, new ThrottleListener() {
                    @Override
                    public void decided(Decision decision) {}

                    @Override
                    public PolicyListener added(PolicyThrottler throttler) {
                        return new PolicyListener() {
                            @Override
                            public void decided(Decision decision, Answer answer) {}

                            @Override
                            public void waited(long nanos) {
                                waits.put(throttler.policy().name(), Duration.ofNanos(nanos));
                            }
                        };
                    }
                });
        List<Charge> charges = List.of(
                Charge.of(both.get("patient").policy(), "alice", 1),
                Charge.of(both.get("later").policy(), "", 1));
        Decision first = both.decide(charges.subList(0, 1));
        Decision second = both.decide(charges.subList(1, 2));
        CompletableFuture<Decision> waiting = acquire(both, charges);
        Threads.await(() -> both.waiting("patient") == 1 && time.waiting() == 1);
        time.advance(Duration.ofSeconds(3));
        first.release();
        Threads.await(() -> both.waiting("later") == 1 && time.waiting() == 1);
        time.advance(Duration.ofSeconds(2));
        second.release();

        assertThat(waiting.get().allowed()).isTrue();
        assertThat(waits).isEqualTo(Map.of("patient", Duration.ofSeconds(3), "later", Duration.ofSeconds(2)));
    }

    @Test
    void aWaitEndsAfterTheMaxWait() throws Exception {
        Decision running = decide(charge(PATIENT, "alice"));
        CompletableFuture<Decision> waiting = acquire(charge(PATIENT, "alice"));
        awaitWaiting(1);

        time.advance(Duration.ofSeconds(10));

        assertThat(waiting.get().outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        running.release();
        assertThat(throttlers.inFlight("patient")).isZero();
        assertThat(decide(charge(PATIENT, "alice")).allowed()).isTrue();
    }

    @Test
    void aFullQueueDeniesAtOnce() throws Exception {
        Decision running = decide(charge(PATIENT, "alice"));
        List<CompletableFuture<Decision>> waiting = new ArrayList<>();
        for (int i = 1; i <= 3; i++) {
            waiting.add(acquire(charge(PATIENT, "alice")));
            awaitWaiting(i);
        }

        assertThat(acquire(charge(PATIENT, "alice")).get().outcome()).isEqualTo(Outcome.QUEUE_FULL);
        running.release();
        for (CompletableFuture<Decision> one : waiting) {
            one.get().release();
        }
        assertThat(throttlers.inFlight("patient")).isZero();
    }

    @Test
    void anInterruptedWaitTakesNothing() throws Exception {
        Decision running = decide(charge(PATIENT, "alice"));
        CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                throttlers.acquire(List.of(charge(PATIENT, "alice")));
                interrupted.complete(false);
            } catch (InterruptedException expected) {
                interrupted.complete(true);
            }
        });
        thread.start();
        awaitWaiting(1);

        thread.interrupt();

        assertThat(interrupted.get()).isTrue();
        running.release();
        assertThat(throttlers.get("patient").slots().held()).isZero();
        assertThat(throttlers.waiting("patient")).isZero();
    }

    /** Occupies the threads that make the scheduled calls of the machine's clock. */
    @Test
    void aWaitEndsInTimeThoughNoThreadMakesScheduledCalls() throws Exception {
        int threads = ForkJoinPool.getCommonPoolParallelism();
        CountDownLatch begun = new CountDownLatch(threads);
        CountDownLatch end = new CountDownLatch(1);
        for (int i = 0; i < threads; i++) {
            ForkJoinPool.commonPool().submit(() -> {
                begun.countDown();
                end.await();
                return null;
            });
        }
        begun.await();
        Throttler patient = Throttlers.local(List.of(PATIENT)).get("patient").forKey("alice");
        patient.decide(1);
        try {
            Decision late =
                    assertTimeoutPreemptively(Duration.ofSeconds(20), () -> patient.acquire(1, Duration.ofMillis(10)));
            assertThat(late.outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        } finally {
            end.countDown();
        }
    }

    @Test
    void aClockThatSchedulesNothingLeavesNoCallInTheQueue() {
        TimeSource broken = new TimeSource() {
            @Override
            public long nanoTime() {
                return 0;
            }

            @Override
            public Future<?> callAt(long nanos, Runnable call) {
                throw new RejectedExecutionException("closed");
            }
        };
        Throttlers closed = Throttlers.local(List.of(PATIENT), broken);
        Throttler patient = closed.get("patient").forKey("alice");
        Decision running = patient.decide(1);

        assertThatExceptionOfType(RejectedExecutionException.class)
                .isThrownBy(() -> patient.acquire(1, Duration.ofSeconds(1)));
        running.release();
        assertThat(closed.inFlight("patient")).isZero();
        assertThat(closed.waiting("patient")).isZero();
    }

    @Test
    void fewerSlotsRevokeNothingAndNoCallStartsUntilTheNumberIsBelow() throws Exception {
        throttlers.get("patient").reconfigure(BucketSpec.inFlight(3));
        List<Decision> running = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            running.add(decide(charge(PATIENT, "alice")));
        }
        CompletableFuture<Decision> waiting = acquire(charge(PATIENT, "alice"));
        awaitWaiting(1);

        throttlers.get("patient").reconfigure(BucketSpec.inFlight(1));
        running.get(0).release();
        running.get(1).release();
        assertThat(throttlers.inFlight("patient")).isEqualTo(1);
        assertThat(waiting).isNotDone();
        running.get(2).release();

        assertThat(waiting.get().allowed()).isTrue();
    }

    @Test
    void moreSlotsLetWaitingCallsStart() throws Exception {
        decide(charge(PATIENT, "alice"));
        CompletableFuture<Decision> waiting = acquire(charge(PATIENT, "alice"));
        awaitWaiting(1);

        throttlers.get("patient").reconfigure(BucketSpec.inFlight(2));

        assertThat(waiting.get().allowed()).isTrue();
        assertThat(throttlers.inFlight("patient")).isEqualTo(2);
    }

    @Test
    void aTierHasItsOwnSlots() {
        ThrottlePolicy tiered = ThrottlePolicy.of("tiered", BucketSpec.inFlight(1), "user")
                .withTiers(Map.of("pro", BucketSpec.inFlight(2)));
        throttlers.add(tiered);
        Throttler pro = throttlers.get("tiered").forKey("alice").inTier("pro");

        assertThat(pro.decide(1).allowed()).isTrue();
        assertThat(pro.decide(1).allowed()).isTrue();
        assertThat(pro.decide(1).allowed()).isFalse();
    }

    @Test
    void aBooleanAnswerIsRefusedSinceItCanNotBeReleased() {
        Throttler exports = throttlers.get("exports").forKey("alice");

        assertThatIllegalStateException()
                .isThrownBy(() -> exports.tryAcquire(1))
                .withMessageContaining("'exports' limits the calls in flight");
        assertThat(throttlers.inFlight("exports")).isZero();
    }

    @Test
    void aRefusedBooleanAnswerTakesNoTokensInShadowModeEither() {
        throttlers.add(ThrottlePolicy.of("tried", CHAT.spec(), "user").withMode(Mode.SHADOW));

        for (String policy : List.of("chat", "tried")) {
            Throttler throttler = throttlers.get(policy).forKey("alice");
            assertThatIllegalStateException()
                    .isThrownBy(() -> throttler.tryAcquire(1))
                    .withMessageContaining("'" + policy + "' limits the calls in flight");
            assertThat(throttlers.inFlight(policy)).isZero();
            assertThat(throttler.snapshot().available()).isEqualTo(3);
        }
    }

    @Test
    void anAnswerWithoutATokenChangesNoBucketOfALaterRate() {
        Decision running = decide(charge(EXPORTS, "alice"));
        throttlers.get("exports").reconfigure(BucketSpec.of("5/1h").withInFlight(2));
        decide(charge(EXPORTS, "alice"));

        throttlers.giveBack(running.taken());
        throttlers.settle(running.taken().get(0), 3);

        assertThat(tokens(EXPORTS, "alice")).isEqualTo(4);
    }

    @Test
    void theNumberOfSlotsHasARange() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> BucketSpec.inFlight(0))
                .withMessage("in-flight must be between 1 and 1,000,000, but was 0");
        assertThat(BucketSpec.inFlight(4)).hasToString("4 in flight");
        assertThat(BucketSpec.of("600/1m").withInFlight(4)).hasToString("600/1m, capacity 600, 4 in flight");
    }

    @Test
    void aSpecTakesWhatItLacksFromAnother() {
        BucketSpec both = BucketSpec.of("600/1m").withInFlight(4);

        assertThat(BucketSpec.inFlight(8).orElse(both)).isEqualTo(both.withInFlight(8));
        assertThat(BucketSpec.of("10/s").orElse(both))
                .isEqualTo(BucketSpec.of("10/s").withInFlight(4));
        assertThat(BucketSpec.of("10/s").orElse(BucketSpec.of("1/s"))).isEqualTo(BucketSpec.of("10/s"));
    }

    /** Threads take, wait and release; the calls that run are counted where they run. */
    @Test
    @Tag("slow")
    @Timeout(value = 10, unit = TimeUnit.MINUTES)
    void neverMoreRunThanThereAreSlotsFromManyThreads() {
        Throttlers real = Throttlers.local(
                List.of(PATIENT.withSpec(BucketSpec.inFlight(3)).withQueueLimit(100)));
        Map<String, AtomicInteger> running = new ConcurrentHashMap<>();
        AtomicInteger most = new AtomicInteger();
        LongAdder granted = new LongAdder();
        Threads.run(8, thread -> {
            var random = new SplittableRandom(thread);
            for (int i = 0; i < 5_000; i++) {
                String key = Integer.toString(random.nextInt(3));
                Throttler throttler = real.get("patient").forKey(key);
                Decision decision;
                try {
                    decision = random.nextInt(4) == 0
                            ? throttler.decide(1)
                            : throttler.acquire(
                                    1, random.nextInt(8) == 0 ? Duration.ofNanos(1) : Duration.ofSeconds(20));
                } catch (InterruptedException interrupted) {
                    throw new AssertionError(interrupted);
                }
                if (decision.allowed()) {
                    AtomicInteger ofKey = running.computeIfAbsent(key, name -> new AtomicInteger());
                    most.accumulateAndGet(ofKey.incrementAndGet(), Math::max);
                    granted.increment();
                    Thread.yield();
                    ofKey.decrementAndGet();
                    decision.release();
                }
            }
        });

        assertThat(most.get()).isEqualTo(3);
        assertThat(granted.sum()).isGreaterThan(20_000);
        assertThat(real.inFlight("patient")).isZero();
        assertThat(real.get("patient").slots().held()).isZero();
        assertThat(real.waiting("patient")).isZero();
    }
}
