package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import io.ratelimit.Backend.Condition;
import io.ratelimit.BackendException;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/** The state of a backend, its log lines and its listeners. */
class BackendHealthTests extends FailoverScenario {

    @Test
    void aListenerIsNotifiedOfEachCall() {
        List<String> reported = new ArrayList<>();
        store.backend()
                .addListener((nanos, failed) -> reported.add(nanos / 1_000_000 + " ms" + (failed ? ", failed" : "")));
        take(LOCAL, 1);
        redis.slowDown(Duration.ofMillis(7));
        take(LOCAL, 1);
        redis.slowDown(Duration.ofMillis(101));
        take(LOCAL, 1);
        redis.mend();
        redis.breakDown();
        take(LOCAL, 1);

        assertThat(reported).containsExactly("0 ms", "7 ms", "101 ms, failed", "0 ms, failed");
        drain(LOCAL);
        redis.calls();
        reported.clear();
        take(LOCAL, 1);
        assertThat(redis.calls()).as("while the breaker is open").isZero();
        assertThat(reported).isEmpty();
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
        assertThat(lines()).containsExactly(UNAVAILABLE, AVAILABLE);
    }

    private static final String UNAVAILABLE =
            "WARN Redis is unavailable (gone): until it is available again, 'on-backend-failure' decides for each policy";
    private static final String AVAILABLE = "INFO Redis is available again";

    private void recover() {
        redis.mend();
        time.advance(CircuitBreaker.PAUSE);
        take(LOCAL, 1);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
    }

    @Test
    void oneOutageInTenSecondsHasALineWhileTheBackendFlaps() {
        for (int flap = 0; flap < 19; flap++) {
            breakUntilOpen();
            recover();
        }
        assertThat(lines()).containsExactly(UNAVAILABLE, AVAILABLE);

        time.advance(CircuitBreaker.PAUSE);
        breakUntilOpen();
        assertThat(lines())
                .containsExactly(
                        UNAVAILABLE, AVAILABLE, UNAVAILABLE + ". There were 18 more outages since the last line");
        recover();
        assertThat(lines()).hasSize(4).last().isEqualTo(AVAILABLE);
    }

    @Test
    void anOutageThatLastsIsLoggedInAnyCase() {
        breakUntilOpen();
        recover();
        breakUntilOpen();
        for (int i = 0; i < 18; i++) {
            time.advance(CircuitBreaker.PAUSE);
            take(LOCAL, 1);
        }
        assertThat(lines()).containsExactly(UNAVAILABLE, AVAILABLE);

        time.advance(CircuitBreaker.PAUSE);
        take(LOCAL, 1);
        assertThat(lines()).containsExactly(UNAVAILABLE, AVAILABLE, UNAVAILABLE);
        recover();
        assertThat(lines()).containsExactly(UNAVAILABLE, AVAILABLE, UNAVAILABLE, AVAILABLE);
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

    /** As after a failover, when the old primary has become a replica. */
    @Test
    void anOutageThatEndsAsAMisconfigurationHasALineForItsEnd() {
        breakUntilOpen();
        redis.fail(new BackendException("READONLY", null, true));
        time.advance(CircuitBreaker.PAUSE);
        assertThat(store.backend().probe()).isFalse();
        redis.mend();
        assertThat(store.backend().probe()).isTrue();
        time.advance(Duration.ofSeconds(10));
        assertThat(store.backend().probe()).isTrue();

        assertThat(lines())
                .containsExactly(
                        UNAVAILABLE,
                        AVAILABLE,
                        "ERROR Redis is misconfigured (READONLY): until this is corrected, 'on-backend-failure'"
                                + " decides for each call that fails",
                        "INFO Redis is no longer misconfigured");
    }

    @Test
    void aMisconfigurationThatIsReportedDuringAnOutageDoesNotEndIt() {
        redis.fail(new BackendException("WRONGTYPE", null, true) {
            private boolean reported;

            @Override
            public boolean isMisconfiguration() {
                if (!reported) {
                    reported = true;
                    breakUntilOpen();
                }
                return true;
            }
        });
        take(LOCAL, 1);

        assertThat(store.backend().state().condition()).isEqualTo(Condition.DOWN);
        assertThat(lines()).contains(UNAVAILABLE).doesNotContain(AVAILABLE);
    }

    /** A policy of the request for the health itself may be the one whose key is broken. */
    @Test
    void aFailedCallOfTheRequestIsNoFailedProbe() {
        deadline.open(new Deadline.Request());
        try {
            redis.fail(new BackendException("WRONGTYPE", null, true));
            take(LOCAL, 1);
            redis.mend();
            assertThat(store.backend().probe()).isTrue();
        } finally {
            deadline.close();
        }
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
