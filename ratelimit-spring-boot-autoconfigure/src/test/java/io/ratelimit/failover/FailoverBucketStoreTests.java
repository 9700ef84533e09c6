package io.ratelimit.failover;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.failover.FailoverBucketStore.FailureRule;
import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import io.ratelimit.BackendException;
import io.ratelimit.Backend.Condition;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.slf4j.LoggerFactory;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Decisions while the backend fails. The backend of these tests is a store in memory that can fail. */
@ExtendWith(OutputCaptureExtension.class)
class FailoverBucketStoreTests {

    private static final Duration TIMEOUT = Duration.ofMillis(100);
    private static final BucketSpec SPEC = BucketSpec.of("10/1s").withCapacity(100);
    private static final ThrottlePolicy LOCAL = ThrottlePolicy.of("local", SPEC, "user");
    private static final ThrottlePolicy ALLOW = ThrottlePolicy.of("allow", SPEC, "user");
    private static final ThrottlePolicy DENY = ThrottlePolicy.of("deny", SPEC, "user");

    private final ManualTimeSource time = new ManualTimeSource();
    private final FragileStore redis = new FragileStore(time);
    private final Deadline deadline = new Deadline(time, TIMEOUT);
    private final FailoverBucketStore store = store(0.5);
    private CapturedOutput output;

    private FailoverBucketStore store(double share) {
        return new FailoverBucketStore(
                "Redis",
                redis,
                BucketStore.local(time),
                share,
                policy -> FailureRule.valueOf(policy.name().toUpperCase(Locale.ROOT)),
                deadline);
    }

    @BeforeEach
    void capture(CapturedOutput output) {
        this.output = output;
    }

    private static Charge charge(ThrottlePolicy policy, long cost) {
        return Charge.of(policy, "alice", cost);
    }

    private Decision take(ThrottlePolicy policy, long cost) {
        return store.take(List.of(charge(policy, cost)));
    }

    /** Takes tokens one by one until the bucket is empty. */
    private int drain(ThrottlePolicy policy) {
        int granted = 0;
        while (take(policy, 1).allowed()) {
            granted++;
        }
        return granted;
    }

    private List<String> lines() {
        return output.getOut()
                .lines()
                .filter(line -> line.contains("FailoverBucketStore"))
                .map(line -> line.replaceFirst("^\\S+\\s+(\\S+) .*? : ", "$1 "))
                .toList();
    }

    @Test
    void aListenerIsNotifiedOfEachCall() {
        List<String> heard = new ArrayList<>();
        store.backend()
                .addListener((nanos, failed) -> heard.add(nanos / 1_000_000 + " ms" + (failed ? ", failed" : "")));
        take(LOCAL, 1);
        redis.slowDown(Duration.ofMillis(7));
        take(LOCAL, 1);
        redis.slowDown(Duration.ofMillis(101));
        take(LOCAL, 1);
        redis.mend();
        redis.breakDown();
        take(LOCAL, 1);

        assertThat(heard).containsExactly("0 ms", "7 ms", "101 ms, failed", "0 ms, failed");
        drain(LOCAL);
        redis.calls();
        heard.clear();
        take(LOCAL, 1);
        assertThat(redis.calls()).as("while it is kept from calls").isZero();
        assertThat(heard).isEmpty();
    }

    @Test
    void anAvailableBackendDecides() {
        Decision decision = take(LOCAL, 30);

        assertThat(decision.allowed()).isTrue();
        assertThat(decision.remaining()).isEqualTo(70);
        assertThat(decision.answers()).noneMatch(Answer::fallback);
        assertThat(store.snapshot(charge(LOCAL, 1)).available()).isEqualTo(70);
        store.giveBack(decision.answers());
        assertThat(redis.available(charge(LOCAL, 1))).isEqualTo(100);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
        assertThat(lines()).isEmpty();
    }

    @Test
    void theFallbackGrantsTheShareOfCapacityAndRate() {
        redis.breakDown();

        assertThat(drain(LOCAL)).isEqualTo(50);
        Decision denied = take(LOCAL, 1);
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.retryNanos()).isEqualTo(Duration.ofMillis(200).toNanos());
        assertThat(denied.answers()).allMatch(Answer::fallback);
        assertThat(denied.answers().get(0).charge())
                .as("the charge that was asked")
                .isEqualTo(charge(LOCAL, 1));
        time.advance(Duration.ofSeconds(2));
        assertThat(drain(LOCAL)).isEqualTo(10);
    }

    @Test
    void underAllowOnlyACostAboveTheCapacityIsDenied() {
        redis.breakDown();

        Decision decision = take(ALLOW, 100);
        assertThat(decision.allowed()).isTrue();
        assertThat(decision.answers()).allMatch(Answer::fallback);
        assertThat(drainSome(ALLOW, 1_000)).isEqualTo(1_000);
        assertThat(take(ALLOW, 101).outcome()).isEqualTo(Outcome.NEVER_FITS);
    }

    private int drainSome(ThrottlePolicy policy, int most) {
        int granted = 0;
        for (int i = 0; i < most && take(policy, 1).allowed(); i++) {
            granted++;
        }
        return granted;
    }

    @Test
    void aDenialByTheRuleIsAFailureAndNoDenial() {
        redis.breakDown();

        Decision decision = take(DENY, 1);
        assertThat(decision.outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(decision.retryAfter()).isEqualTo(Duration.ofSeconds(1));
        assertThat(take(DENY, 101).outcome()).isEqualTo(Outcome.NEVER_FITS);
    }

    @Test
    void aRequestOfSeveralRulesTakesAllOrNothing() {
        redis.breakDown();

        Decision refused = store.take(List.of(charge(LOCAL, 50), charge(DENY, 1), charge(ALLOW, 1)));
        assertThat(refused.outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(refused.denials()).extracting(Answer::policy).containsExactly(DENY);

        Decision allowed = store.take(List.of(charge(ALLOW, 1), charge(LOCAL, 50)));
        assertThat(allowed.allowed()).isTrue();
        assertThat(allowed.answers()).extracting(Answer::policy).containsExactly(ALLOW, LOCAL);
        Decision denied = store.take(List.of(charge(ALLOW, 1), charge(LOCAL, 1)));
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.denials()).extracting(Answer::policy).containsExactly(LOCAL);
    }

    @Test
    void aCostThatOnlyTheShareIsTooSmallForCanStillFitLater() {
        redis.breakDown();

        assertThat(take(LOCAL, 51).outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(take(LOCAL, 51).retryNanos()).isPositive();
        assertThat(take(LOCAL, 101).outcome()).isEqualTo(Outcome.NEVER_FITS);
    }

    @Test
    void tokensOfTheFallbackAreGivenBackToTheFallback() {
        take(LOCAL, 100);
        redis.breakDown();
        Decision decision = take(LOCAL, 50);
        redis.mend();

        store.giveBack(decision.answers());

        assertThat(redis.available(charge(LOCAL, 1))).isZero();
        redis.breakDown();
        assertThat(take(LOCAL, 50).allowed()).isTrue();
    }

    @Test
    void anAnswerWithoutTokensIsNotGivenBack() {
        take(ALLOW, 40);
        redis.breakDown();
        Decision decision = take(ALLOW, 60);
        redis.mend();

        store.giveBack(decision.answers());

        assertThat(redis.available(charge(ALLOW, 1)))
                .as("also the call that failed took")
                .isZero();
    }

    @Test
    void duringAnOutageTokensOfRedisStayTaken() {
        Decision decision = take(LOCAL, 60);
        breakUntilOpen();

        store.giveBack(decision.answers());

        assertThat(redis.calls()).isZero();
        assertThat(redis.available(charge(LOCAL, 1))).isLessThanOrEqualTo(40);
    }

    @Test
    void aCallThatFailedIsNotMadeAgain() {
        redis.breakDown();
        redis.calls();

        take(LOCAL, 1);

        assertThat(redis.calls()).isEqualTo(1);
    }

    private void breakUntilOpen() {
        redis.breakDown();
        for (int i = 0; i < 5; i++) {
            take(LOCAL, 1);
        }
        redis.calls();
    }

    @Test
    void duringAnOutageOnlyProbesAreCalled() {
        breakUntilOpen();
        for (int i = 0; i < 100; i++) {
            take(LOCAL, 1);
        }
        assertThat(redis.calls()).isZero();

        time.advance(CircuitBreaker.PAUSE);
        for (int i = 0; i < 100; i++) {
            take(LOCAL, 1);
        }
        assertThat(redis.calls()).isEqualTo(1);
        redis.mend();
        time.advance(CircuitBreaker.PAUSE);
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
    }

    @Test
    void slowIsFailure() {
        redis.slowDown(TIMEOUT.plusNanos(1));
        for (int i = 0; i < 5; i++) {
            assertThat(take(LOCAL, 1).answers())
                    .as("a late answer is used nevertheless")
                    .noneMatch(Answer::fallback);
        }
        redis.calls();

        assertThat(take(LOCAL, 1).answers()).allMatch(Answer::fallback);
        assertThat(redis.calls()).isZero();
        assertThat(store.backend().state().condition()).isEqualTo(Condition.DOWN);
        assertThat(store.backend().state().cause()).isEqualTo("its answers are late");
    }

    @Test
    void anOutageAndItsEndAreALineEach() {
        breakUntilOpen();
        for (int i = 0; i < 10; i++) {
            time.advance(CircuitBreaker.PAUSE);
            take(LOCAL, 1);
        }
        assertThat(store.backend().state().condition()).isEqualTo(Condition.DOWN);
        assertThat(store.backend().state().cause()).isEqualTo("gone");

        redis.mend();
        time.advance(CircuitBreaker.PAUSE);
        take(LOCAL, 1);

        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
        assertThat(lines())
                .containsExactly(
                        "WARN Redis is unavailable (gone): until it is available again, 'on-backend-failure' decides for each policy",
                        "INFO Redis is available again");
    }

    private static final String AWAY =
            "WARN Redis is unavailable (gone): until it is available again, 'on-backend-failure' decides for each policy";
    private static final String BACK = "INFO Redis is available again";

    private void comesBack() {
        redis.mend();
        time.advance(CircuitBreaker.PAUSE);
        take(LOCAL, 1);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
    }

    @Test
    void ofFlappingOneOutageInTenSecondsIsALine() {
        for (int flap = 0; flap < 19; flap++) {
            breakUntilOpen();
            comesBack();
        }
        assertThat(lines()).containsExactly(AWAY, BACK);

        time.advance(CircuitBreaker.PAUSE);
        breakUntilOpen();
        assertThat(lines()).containsExactly(AWAY, BACK, AWAY + ". There were 18 more outages since the last line");
        comesBack();
        assertThat(lines()).hasSize(4).last().isEqualTo(BACK);
    }

    @Test
    void anOutageThatLastsIsSaidInAnyCase() {
        breakUntilOpen();
        comesBack();
        breakUntilOpen();
        for (int i = 0; i < 18; i++) {
            time.advance(CircuitBreaker.PAUSE);
            take(LOCAL, 1);
        }
        assertThat(lines()).containsExactly(AWAY, BACK);

        time.advance(CircuitBreaker.PAUSE);
        take(LOCAL, 1);
        assertThat(lines()).containsExactly(AWAY, BACK, AWAY);
        comesBack();
        assertThat(lines()).containsExactly(AWAY, BACK, AWAY, BACK);
    }

    @Test
    void aMisconfigurationIsOneErrorInTenSecondsAndDoesNotOpenTheBreaker() {
        redis.fail(new BackendException("READONLY", new IllegalStateException("alice"), true));
        for (int i = 0; i < 100; i++) {
            assertThat(take(DENY, 1).outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        }
        assertThat(redis.calls()).isEqualTo(100);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.MISCONFIGURED);
        assertThat(store.backend().state().cause()).isEqualTo("READONLY");
        String line = "ERROR Redis is misconfigured (READONLY): until this is corrected, 'on-backend-failure' decides"
                + " for each call that fails";
        assertThat(lines()).containsExactly(line);

        time.advance(Duration.ofSeconds(10));
        take(DENY, 1);
        take(DENY, 1);
        assertThat(lines()).containsExactly(line, line);
        assertThat(output).doesNotContain("alice");
    }

    @Test
    void thePlaceOfABugIsLoggedAtDebugLevelWithoutAnythingThatAClientSent() {
        Logger logger = (Logger) LoggerFactory.getLogger(FailoverBucketStore.class);
        logger.setLevel(Level.DEBUG);
        try {
            redis.fail(new IllegalStateException("key of alice", new IllegalArgumentException("alice")));
            take(DENY, 1);
        } finally {
            logger.setLevel(null);
        }

        assertThat(output)
                .contains("java.lang.IllegalStateException")
                .contains("at " + getClass().getName());
        assertThat(output).doesNotContain("alice");
    }

    @Test
    void aProbeUpdatesTheStateWithoutOtherCalls() {
        redis.fail(new BackendException("READONLY", null, true));
        for (int i = 0; i < 3; i++) {
            store.backend().probe();
            assertThat(store.backend().state().condition()).isEqualTo(Condition.MISCONFIGURED);
            time.advance(Duration.ofSeconds(10));
        }
        assertThat(redis.calls()).isEqualTo(3);

        redis.mend();
        store.backend().probe();
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
        assertThat(lines()).last().isEqualTo("INFO Redis is no longer misconfigured");
    }

    @Test
    void aMisconfigurationEndsAfterTenSecondsWithoutAFailure() {
        redis.fail(new BackendException("WRONGTYPE", null, true));
        take(LOCAL, 1);
        redis.mend();
        take(LOCAL, 1);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.MISCONFIGURED);

        time.advance(Duration.ofSeconds(10));
        take(LOCAL, 1);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
        assertThat(lines()).last().isEqualTo("INFO Redis is no longer misconfigured");
    }

    @Test
    void aDelayedReportOfAnOutageThatIsOverDoesNotLeaveTheStateDown() {
        redis.fail(new BackendException("gone") {
            private boolean held;

            @Override
            public String getMessage() {
                if (!held) {
                    held = true;
                    redis.mend();
                    time.advance(CircuitBreaker.PAUSE);
                    assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
                }
                return super.getMessage();
            }
        });
        for (int i = 0; i < 5; i++) {
            take(LOCAL, 1);
        }

        assertThat(lines()).first().asString().startsWith("WARN Redis is unavailable");
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
    }

    @Test
    void aBugIsNoAnswerEither() {
        redis.fail(new IllegalStateException("key of alice"));

        assertThat(take(DENY, 1).outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(store.backend().state().cause()).isEqualTo("java.lang.IllegalStateException");
        assertThat(output).doesNotContain("alice");
    }

    @Test
    void anErrorGoesThroughAndBlocksNoProbe() {
        breakUntilOpen();
        redis.fail(new StackOverflowError());
        time.advance(CircuitBreaker.PAUSE);
        assertThatExceptionOfType(StackOverflowError.class).isThrownBy(() -> take(LOCAL, 1));

        redis.mend();
        time.advance(CircuitBreaker.PAUSE);
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
    }

    @Test
    void duringAnOutageASnapshotShowsTheFallback() {
        redis.breakDown();
        take(LOCAL, 20);

        assertThat(store.snapshot(charge(LOCAL, 1)).available()).isEqualTo(30);
        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> store.snapshot(charge(DENY, 1)));
        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> store.snapshot(charge(ALLOW, 1)));
    }

    @Test
    void aFailedResetThrows() {
        redis.breakDown();
        take(LOCAL, 50);

        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> store.reset(charge(LOCAL, 1)));
        assertThat(take(LOCAL, 50).allowed())
                .as("what stands in is forgotten in any case")
                .isTrue();
        redis.mend();
        store.reset(charge(LOCAL, 1));
        assertThat(redis.available(charge(LOCAL, 1))).isEqualTo(100);
    }

    @Test
    void tokensAreTakenAheadFromTheFallbackToo() {
        redis.breakDown();
        take(LOCAL, 50);

        Decision ahead = store.reserve(List.of(charge(LOCAL, 5).withMaxWait(Duration.ofSeconds(1))));

        assertThat(ahead.allowed()).isTrue();
        assertThat(ahead.waitFor()).isEqualTo(Duration.ofSeconds(1));
        assertThat(take(LOCAL, 1).allowed()).isFalse();
        store.giveBack(ahead.answers());
        time.advance(Duration.ofMillis(200));
        assertThat(take(LOCAL, 1).allowed()).as("given back by its position").isTrue();
        assertThat(store.reserve(List.of(charge(DENY, 1))).outcome()).isEqualTo(Outcome.BACKEND_FAILED);
    }

    /** G4: however often Redis fails, an instance grants at most its share of capacity and rate by itself. */
    @RepeatedTest(20)
    void flappingGivesNoFreshBurst(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        long granted = 0;
        long began = time.nanoTime();
        for (int flap = 0; flap < 200; flap++) {
            if (random.nextBoolean()) {
                redis.mend();
            } else {
                redis.fail(
                        random.nextBoolean() ? new BackendException("gone") : new BackendException("OOM", null, true));
            }
            for (int i = random.nextInt(40); i > 0; i--) {
                Decision decision = take(LOCAL, 1 + random.nextInt(3));
                Answer answer = decision.answers().get(0);
                granted += decision.allowed() && answer.fallback()
                        ? answer.charge().cost()
                        : 0;
            }
            time.advance(Duration.ofMillis(random.nextInt(700)));
        }
        double seconds = (time.nanoTime() - began) / 1e9;
        assertThat(granted)
                .as("seed %d", run.getCurrentRepetition())
                .isPositive()
                .isLessThanOrEqualTo((long) (50 + 5 * seconds + 1));
    }

    @Test
    void theCallsOfOneRequestShareTheTime() {
        redis.slowDown(Duration.ofMillis(60));
        deadline.open();
        assertThat(deadline.leftNanos()).isEqualTo(TIMEOUT.toNanos());
        take(LOCAL, 1);
        assertThat(deadline.leftNanos()).isEqualTo(Duration.ofMillis(40).toNanos());
        take(LOCAL, 1);
        assertThat(deadline.hasFailed()).as("its answer came too late").isTrue();
        redis.calls();
        assertThat(take(LOCAL, 1).answers()).allMatch(Answer::fallback);
        assertThat(redis.calls()).isZero();

        deadline.close();
        redis.slowDown(Duration.ZERO);
        assertThat(deadline.leftNanos()).isEqualTo(TIMEOUT.toNanos());
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
    }

    @Test
    void aRequestWithinARequestIsTheSame() {
        redis.breakDown();
        assertThat(deadline.open()).isTrue();
        take(LOCAL, 1);
        assertThat(deadline.open()).isFalse();
        assertThat(deadline.hasFailed()).isTrue();
        deadline.close();
        assertThat(deadline.hasFailed()).isFalse();
    }

    @Test
    void pastTheDeadlineOfARequestNoCallIsMadeAndAllowIsNoAnswer() {
        redis.slowDown(Duration.ofMillis(5));
        deadline.open();
        for (int i = 0; i < 20; i++) {
            assertThat(take(ALLOW, 1).answers()).noneMatch(Answer::fallback);
        }
        assertThat(deadline.leftNanos()).isZero();
        redis.calls();

        assertThat(take(DENY, 1).outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(drain(ALLOW)).as("the local share").isEqualTo(50);
        assertThat(redis.calls()).isZero();
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
        deadline.close();
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
    }

    @Test
    void aBusyProcessIsNoOutageAndAllowIsNoAnswer() {
        redis.fail(new CongestedException("no connection is free", null));

        assertThat(drain(ALLOW)).as("the local share").isEqualTo(50);
        assertThat(drain(LOCAL)).isEqualTo(50);
        assertThat(take(DENY, 1).outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(take(ALLOW, 101).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
        assertThat(lines())
                .containsExactly(
                        "WARN This process is too busy to call Redis for each decision in time (no connection is"
                                + " free): the local share makes the other decisions, or they are denials where"
                                + " 'on-backend-failure' is 'deny'");
        redis.mend();
        redis.calls();
        take(LOCAL, 1);
        assertThat(redis.calls()).as("the breaker stays closed").isEqualTo(1);
    }

    @Test
    void tokensThatABusyProcessTookFromMemoryUnderAllowAreGivenBackToMemory() {
        redis.fail(new CongestedException("no connection is free", null));
        Decision taken = take(ALLOW, 50);

        store.giveBack(taken.answers());

        assertThat(take(ALLOW, 50).answers()).allMatch(Answer::allowed);
    }

    @Test
    void aProbeOfABusyProcessIsFollowedByAnother() {
        breakUntilOpen();
        redis.fail(new CongestedException("no connection is free", null));
        time.advance(CircuitBreaker.PAUSE);
        take(LOCAL, 1);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.DOWN);

        redis.mend();
        time.advance(CircuitBreaker.PAUSE);
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
    }

    @Test
    void aBackendListenerThatThrowsIsReportedOnceAndLeftOut() {
        AtomicInteger called = new AtomicInteger();
        store.backend().addListener((nanos, failed) -> {
            called.incrementAndGet();
            throw new IllegalStateException("alice");
        });
        assertThat(take(LOCAL, 1).allowed()).isTrue();
        assertThat(take(LOCAL, 1).allowed()).isTrue();

        assertThat(called).hasValue(1);
        assertThat(lines().stream().filter(line -> !line.startsWith("\tat ")))
                .singleElement()
                .asString()
                .startsWith("ERROR The Backend.Listener " + getClass().getName());
        assertThat(output).doesNotContain("alice");
    }
}
