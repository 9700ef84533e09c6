package io.ratelimit.change;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.ChangeBoard;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.change.LimitChanges.Changed;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.RoutingBucketStore;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Changes for all instances, with replies at the moments that the test chooses. */
@Tag("slow")
@Tag("timed")
class LimitChangesTests {

    private static final BucketSpec CONFIGURED = BucketSpec.of("3/1d");
    private static final BucketSpec CHANGED = CONFIGURED.withCapacity(7);
    private static final Duration READING = Duration.ofMillis(900);
    private static final Instant START = Instant.parse("2026-11-22T14:00:00Z");
    private static final String CHANGE = "rate=3/1d capacity=7 since=2026-11-22T14:00:00Z";

    private final ManualTimeSource time = new ManualTimeSource();
    private final FailoverBucketStore remote = new FailoverBucketStore(
            "Redis",
            BucketStore.local(time),
            BucketStore.local(time),
            1,
            policy -> FailureRule.LOCAL,
            new Deadline(time, Duration.ofSeconds(1)));
    private final Throttlers throttlers = new Throttlers(
            List.of(ThrottlePolicy.of("api", CONFIGURED)),
            new RoutingBucketStore(
                    BucketStore.local(time), remote, policy -> !policy.name().equals("memory")),
            time,
            ThrottleListener.NONE);
    private final DelayedReplies shared = new DelayedReplies();
    private final LimitChanges changes = new LimitChanges(throttlers, time, shared);

    /** Executes each operation at once. Replies at once too, unless the test delays the replies. */
    private static final class DelayedReplies implements ChangeBoard {

        private final Map<String, String> values = new HashMap<>();
        private final List<Runnable> replies = new CopyOnWriteArrayList<>();
        private Instant now = START;
        private boolean delayed;
        private boolean unavailable;
        private boolean signed;
        private int reads;
        private Runnable duringRead = () -> {};

        private <T> CompletableFuture<T> reply(T result) {
            if (unavailable) {
                return CompletableFuture.failedFuture(new BackendException("gone"));
            }
            CompletableFuture<T> reply = new CompletableFuture<>();
            replies.add(() -> reply.complete(result));
            if (!delayed) {
                deliver();
            }
            return reply;
        }

        void deliver() {
            List.copyOf(replies).forEach(Runnable::run);
            replies.clear();
        }

        @Override
        public String place() {
            return "Redis";
        }

        @Override
        public String secretProperty() {
            return "ratelimit.redis.key-secret";
        }

        @Override
        public boolean areSigned() {
            return signed;
        }

        @Override
        public String sign(String limit, String change) {
            return signed ? limit + ":" + change : change;
        }

        @Override
        public String verify(String limit, String text) {
            if (signed && !text.startsWith(limit + ":")) {
                throw new IllegalArgumentException("not signed");
            }
            return signed ? text.substring(limit.length() + 1) : text;
        }

        @Override
        public CompletableFuture<Posted> read(Collection<String> limits) {
            reads++;
            duringRead.run();
            Map<String, String> read = new HashMap<>(values);
            read.keySet().retainAll(limits);
            return reply(new Posted(now, read));
        }

        @Override
        public CompletableFuture<?> put(String limit, String change) {
            values.put(limit, change);
            return reply(true);
        }

        @Override
        public CompletableFuture<Boolean> remove(String limit) {
            return reply(!unavailable && values.remove(limit) != null);
        }
    }

    private BucketSpec spec() {
        return throttlers.get("api").policy().spec();
    }

    private void changeForAll(String capacity, String until) {
        changes.changeForAll("api", null, null, capacity, null, until);
    }

    @Test
    void aRestartDuringAReadingLeavesOneReadingAPeriod() {
        changes.start();
        shared.duringRead = () -> {
            shared.duringRead = () -> {};
            changes.stop();
            changes.start();
        };
        time.advance(READING);
        shared.reads = 0;

        time.advance(READING);
        time.advance(READING);

        assertThat(shared.reads).isEqualTo(2);
    }

    /** A closed clock makes all pending calls at once. If the start of the context fails, nothing stops the readings. */
    @Test
    void onAClosedClockTheBoardIsNotReadWithoutAPause() {
        TimeSource closed = new TimeSource() {
            @Override
            public long nanoTime() {
                return time.nanoTime();
            }

            @Override
            public Future<?> callAt(long nanos, Runnable call) {
                if (shared.reads < 100) {
                    call.run();
                }
                return CompletableFuture.completedFuture(null);
            }
        };
        new LimitChanges(throttlers, closed, shared).start();
        assertThat(shared.reads).isOne();
    }

    @Test
    void aReplyThatWasReadBeforeAChangeDoesNotUndoTheChange() {
        changes.start();
        shared.delayed = true;
        time.advance(READING);
        assertThat(shared.replies).as("a reading under way").hasSize(1);
        Runnable old = shared.replies.remove(0);
        shared.delayed = false;

        changeForAll("7", null);
        old.run();

        assertThat(spec()).isEqualTo(CHANGED);
    }

    @Test
    void oneReadingIsUnderWayAtATime() {
        changes.start();
        shared.delayed = true;
        time.advance(READING.multipliedBy(5));
        assertThat(shared.replies).hasSize(1);
        shared.values.put("api", CHANGE);
        shared.deliver();
        time.advance(READING);
        shared.deliver();
        assertThat(spec()).isEqualTo(CHANGED);
    }

    @Test
    void aChangeEndsByTheTimeOfTheSharedPlaceAlsoWhileThatIsUnavailable() {
        changeForAll("7", "10s");
        changes.start();
        shared.now = START.plusSeconds(4);
        time.advance(READING); // the clock of the shared place is ahead of this instance's by 3.1 seconds
        shared.unavailable = true;
        time.advance(Duration.ofMillis(5_900));
        assertThat(spec()).isEqualTo(CHANGED);
        time.advance(READING);
        assertThat(spec()).isEqualTo(CONFIGURED);
    }

    /** As after a failover to a replica with a wrong clock, and after its correction. */
    @Test
    void aChangeHoldsAgainIfTheClockOfTheSharedPlaceWasAhead() {
        changeForAll("7", "1h");
        changes.start();
        assertThat(specAt(Duration.ofHours(3))).isEqualTo(CONFIGURED);
        assertThat(specAt(Duration.ofMinutes(1))).isEqualTo(CHANGED);
        assertThat(specAt(Duration.ofHours(1))).isEqualTo(CONFIGURED);
    }

    @Test
    void anInstanceThatStartsWhileTheClockIsAheadFollowsTheChangeLater() {
        shared.values.put("api", CHANGE + " until=2026-11-22T15:00:00Z");
        shared.now = START.plus(Duration.ofHours(3));
        changes.start();
        assertThat(spec()).isEqualTo(CONFIGURED);
        assertThat(specAt(Duration.ZERO)).isEqualTo(CHANGED);
    }

    @Test
    void aClockThatIsSetBackLeavesALaterChangeOfThisInstance() {
        changeForAll("7", "1h");
        changes.start();
        assertThat(specAt(Duration.ofHours(3))).isEqualTo(CONFIGURED);
        changes.changeHere("api", null, null, "1", null);
        assertThat(specAt(Duration.ZERO)).isEqualTo(CONFIGURED.withCapacity(1));
        changes.revert("api", null);
        assertThat(specAt(Duration.ZERO)).isEqualTo(CONFIGURED);
    }

    @Test
    void aChangeThatIsRefusedWhenItHoldsAgainIsTriedAgain() {
        BucketSpec[] refused = {null};
        throttlers.get("api").checkChanges(policy -> {
            if (policy.spec().equals(refused[0])) {
                throw new IllegalArgumentException("refused");
            }
        });
        changeForAll("7", "1h");
        changes.start();
        specAt(Duration.ofHours(3));
        refused[0] = CHANGED;
        assertThat(specAt(Duration.ZERO)).isEqualTo(CONFIGURED);
        refused[0] = null;
        assertThat(specAt(Duration.ZERO)).isEqualTo(CHANGED);
    }

    @Test
    void aChangeThatWasRemovedAfterItsEndDoesNotHoldAgain() {
        changeForAll("7", "1h");
        changes.start();
        specAt(Duration.ofHours(3));
        shared.values.clear();
        specAt(Duration.ofHours(3));
        assertThat(specAt(Duration.ZERO)).isEqualTo(CONFIGURED);
    }

    /** Returns the limit after a reading at a time of the shared place, from the start of the test. */
    private BucketSpec specAt(Duration sinceStart) {
        shared.now = START.plus(sinceStart);
        time.advance(READING);
        return spec();
    }

    @Test
    void whatHoldsStaysWhileTheSharedPlaceIsUnavailable() {
        changeForAll("7", null);
        changes.start();
        shared.unavailable = true;
        time.advance(Duration.ofDays(1));
        assertThat(spec()).isEqualTo(CHANGED);
        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> changeForAll("9", null));
        assertThat(spec()).isEqualTo(CHANGED);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "rate=1/1d capacity=1",
                "rate=1/1d capacity=1 since=2026-11-01T00:00:00Z lease=1s",
                "rate=1/1d rate=2/1d capacity=1 since=2026-11-01T00:00:00Z",
                "rate=1/1d  capacity=1 since=2026-11-01T00:00:00Z",
                "rate=many capacity=1 since=2026-11-01T00:00:00Z",
                "rate=1/1d capacity=0 since=2026-11-01T00:00:00Z",
                "rate=1/1d capacity=9999999999999 since=2026-11-01T00:00:00Z",
                "rate=1/1d capacity=1 since=now",
                "rate=1/1d capacity=1 since=2026-11-01T00:00:00Z until=later"
            })
    void aValueThatCannotBeUsedLeavesTheChangeBefore(String value) {
        changeForAll("7", "1h");
        changes.start();
        shared.values.put("api", value);
        time.advance(READING);
        assertThat(spec()).isEqualTo(CHANGED);
        time.advance(Duration.ofHours(1));
        shared.now = START.plus(Duration.ofHours(1));
        time.advance(READING);
        assertThat(spec()).as("the end of the change before").isEqualTo(CONFIGURED);
    }

    @Test
    void aChangeOfAPolicyThatIsAddedLaterIsFollowedThen() {
        shared.values.put("later", "rate=3/1d capacity=7 since=2026-11-22T14:00:00Z");
        changes.start();
        throttlers.add(ThrottlePolicy.of("later", CONFIGURED));
        time.advance(READING);
        assertThat(throttlers.get("later").policy().spec()).isEqualTo(CHANGED);
    }

    @Test
    void theEndOfAChangeLeavesALaterChangeByCode() {
        changeForAll("7", null);
        changes.start();
        throttlers.get("api").reconfigure(BucketSpec.of("1/1d"));
        shared.values.clear();
        time.advance(READING);
        assertThat(spec()).isEqualTo(BucketSpec.of("1/1d"));
    }

    /** Another instance changes the limit while the reply to the removal is on its way. */
    @Test
    void takingAChangeBackLeavesALaterChangeForAllInstances() throws Exception {
        changeForAll("7", null);
        takeBackWhile(() -> {
            shared.values.put("api", "rate=3/1d capacity=9 since=2026-11-22T14:00:01Z");
            time.advance(READING);
        });
        assertThat(spec()).isEqualTo(CONFIGURED.withCapacity(9));
        time.advance(READING);
        assertThat(spec()).isEqualTo(CONFIGURED.withCapacity(9));
    }

    @Test
    void takingAChangeBackHoldsAlsoIfAReadingSeesItFirst() throws Exception {
        changeForAll("7", null);
        takeBackWhile(() -> time.advance(READING));
        assertThat(spec()).isEqualTo(CONFIGURED);
    }

    /** Takes the change of the limit back; the reply of the shared place follows what happens meanwhile. */
    private void takeBackWhile(Runnable meanwhile) throws Exception {
        changes.start();
        shared.delayed = true;
        CompletableFuture<Boolean> taking =
                CompletableFuture.supplyAsync(() -> changes.revert("api", null).forAll());
        await().pollDelay(Duration.ZERO).pollInterval(Duration.ofMillis(1)).until(() -> shared.replies.size() == 1);
        Runnable reply = shared.replies.remove(0);
        shared.delayed = false;
        meanwhile.run();
        reply.run();
        assertThat(taking.get(10, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void aChangeOfThisInstanceIsRevertedWhileTheSharedPlaceIsUnavailable() {
        changes.start();
        changes.changeHere("api", null, null, "9", null);
        shared.unavailable = true;

        Changed reverted = changes.revert("api", null);

        assertThat(reverted).isEqualTo(new Changed(CONFIGURED.withCapacity(9), CONFIGURED, false, null));
        assertThat(spec()).isEqualTo(CONFIGURED);
        assertThatExceptionOfType(BackendException.class)
                .as("no change of this instance, and perhaps one for all")
                .isThrownBy(() -> changes.revert("api", null));
    }

    @Test
    void aChangeOfThisInstanceIsRevertedThoughOneForAllHasEndedBefore() {
        changes.start();
        changeForAll("7", "1h");
        shared.now = START.plusSeconds(3600);
        time.advance(READING);
        changes.changeHere("api", null, null, "1", null);
        shared.unavailable = true;

        assertThat(changes.revert("api", null).before().capacity()).isOne();

        assertThat(spec()).isEqualTo(CONFIGURED);
    }

    @Test
    void aChangeForAllInstancesHoldsAgainAfterOneOfThisInstanceWasReverted() {
        changes.start();
        changeForAll("7", null);
        changes.changeHere("api", null, null, "1", null);
        shared.unavailable = true;

        changes.revert("api", null);
        assertThat(spec()).isEqualTo(CONFIGURED);

        shared.unavailable = false;
        time.advance(READING);
        time.advance(READING);
        assertThat(spec()).as("it was never removed").isEqualTo(CHANGED);
    }

    @Test
    void aChangeForAllInstancesStaysWhileTheSharedPlaceIsUnavailable() {
        changes.start();
        changeForAll("7", null);
        shared.unavailable = true;

        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> changes.revert("api", null));

        assertThat(spec()).isEqualTo(CHANGED);
    }

    @Test
    void aPolicyThatNoChangeForAllInstancesCanConcernNeedsNoSharedPlace() {
        throttlers.add(ThrottlePolicy.of("memory", CONFIGURED));
        changes.start();
        shared.unavailable = true;
        changes.changeHere("memory", null, null, "9", null);

        changes.revert("memory", null);

        assertThat(throttlers.get("memory").policy().spec()).isEqualTo(CONFIGURED);
        assertThat(changes.revert("memory", null).forAll()).isFalse();
    }

    /** It was put there when the policy had its buckets in Redis. */
    @Test
    void aChangeForAllInstancesThatIsIgnoredIsRemoved() {
        throttlers.add(ThrottlePolicy.of("memory", CONFIGURED));
        shared.values.put("memory", "unused");
        changes.start();

        assertThat(changes.revert("memory", null).forAll()).isTrue();

        assertThat(shared.values).isEmpty();
    }

    /** Two instances may change a limit in the same millisecond: all follow what was written last. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void ofTwoSignedChangesOfOneTimeTheLastWrittenOneHolds(boolean higherLast) {
        shared.signed = true;
        changes.start();
        for (int capacity : higherLast ? new int[] {7, 9} : new int[] {9, 7}) {
            shared.values.put("api", "api:rate=1/1d capacity=" + capacity + " since=2026-11-01T00:00:00Z");
            time.advance(READING);
            assertThat(spec().capacity()).isEqualTo(capacity);
        }
    }

    /** Whoever may write to Redis but has no secret can only write values that an instance has written before. */
    @Test
    void aSignedChangeIsNotFollowedAgainAfterANewerOne() {
        shared.signed = true;
        changes.start();
        changeForAll("7", null);
        String old = shared.values.get("api");
        time.advance(READING);
        changeForAll("9", null);

        shared.values.put("api", old);
        time.advance(READING);

        assertThat(spec()).isEqualTo(CONFIGURED.withCapacity(9));
    }

    @Test
    void aSignedChangeIsNotFollowedAgainAfterItWasReverted() {
        shared.signed = true;
        changes.start();
        changeForAll("7", null);
        Map<String, String> old = Map.copyOf(shared.values);
        changes.revert("api", null);

        shared.values.putAll(old);
        time.advance(READING);

        assertThat(spec()).isEqualTo(CONFIGURED);
        changeForAll("9", null);
        assertThat(spec()).as("a later change, in the same millisecond").isEqualTo(CONFIGURED.withCapacity(9));
    }

    @Test
    void aSignedChangeIsNotFollowedAgainAfterAnotherInstanceRevertedIt() {
        shared.signed = true;
        changes.start();
        changeForAll("7", null);
        Map<String, String> old = Map.copyOf(shared.values);
        shared.values.clear();
        time.advance(READING);
        assertThat(spec()).isEqualTo(CONFIGURED);

        shared.values.putAll(old);
        time.advance(READING);

        assertThat(spec()).isEqualTo(CONFIGURED);
    }

    @Test
    void aSignedChangeIsFollowedAfterTheClockOfTheSharedPlaceWasSetBack() {
        shared.signed = true;
        changes.start();
        changeForAll("7", null);
        shared.now = START.minusSeconds(60);
        LimitChanges other = new LimitChanges(throttlers, time, shared);

        other.changeForAll("api", null, null, "9", null, null);
        time.advance(READING);

        assertThat(spec()).isEqualTo(CONFIGURED.withCapacity(9));
    }

    @Test
    void anUnsignedValueLeavesTheSignedChange() {
        shared.signed = true;
        changes.start();
        changeForAll("7", null);
        shared.values.put("api", CHANGE.replace("7", "9"));
        time.advance(READING);
        assertThat(spec()).isEqualTo(CHANGED);
    }

    @Test
    void aPolicyInMemoryIsChangedForAllOnlyWithASecret() {
        throttlers.add(ThrottlePolicy.of("memory", CONFIGURED));
        shared.values.put("memory", CHANGE);
        changes.start();
        assertThat(throttlers.get("memory").policy().spec()).isEqualTo(CONFIGURED);
        assertThatExceptionOfType(IllegalArgumentException.class)
                .isThrownBy(() -> changes.changeForAll("memory", null, null, "7", null, null))
                .withMessageContaining("set a key-secret");
    }

    /** The reply to the reading is on its way for ever; so would be that to the change. */
    @Test
    void aChangeWithoutReplyFailsWithinASecond() {
        shared.delayed = true;
        Duration shortest = Duration.ofDays(1);
        for (int attempt = 0; attempt < 10 && shortest.toMillis() >= 1_800; attempt++) { // a busy machine delays some
            long began = System.nanoTime();
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> changeForAll("7", null))
                    .withMessage("Redis is unavailable; no limit was changed");
            shortest = Duration.ofNanos(System.nanoTime() - began);
        }
        assertThat(shortest).isLessThan(Duration.ofMillis(1_800));
    }

    @Test
    void aStoppedInstanceReadsNothing() {
        changes.start();
        changes.stop();
        shared.delayed = true;
        time.advance(Duration.ofMinutes(1));
        assertThat(shared.replies).isEmpty();
        assertThat(changes.isRunning()).isFalse();
    }
}
