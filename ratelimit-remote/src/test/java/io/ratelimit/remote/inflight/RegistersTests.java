package io.ratelimit.remote.inflight;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ScarceThreads;
import io.ratelimit.SharedSlots;
import io.ratelimit.SharedSlots.Slot;
import io.ratelimit.StackDepths;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.inflight.RegisterStore.CarriedClaim;
import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

@Timeout(60)
class RegistersTests {

    private static final Duration TIME_TO_LIVE = Duration.ofSeconds(9);
    private static final Duration TICK = Duration.ofMillis(100);
    private static final BucketName ALICE = new BucketName("exports", "alice");

    private final ManualTimeSource time = new ManualTimeSource();
    private final RegisterModel model = new RegisterModel();
    private final List<Claim> claims = new ArrayList<>();
    private final Deque<CompletableFuture<Reply>> unanswered = new ArrayDeque<>();
    private final BreakableTimeSource clock = new BreakableTimeSource(time);
    private final Registers registers = new Registers(clock, new Store(), new Rules(), TIME_TO_LIVE);
    private boolean answers = true;
    private boolean available = true;
    private boolean rejects;
    private boolean broken;
    private boolean unread;
    private boolean impatient;
    private boolean hasFailed;
    private boolean congested;
    private boolean tokensAreShort;
    private int fallback;

    /** The clock of the test, which fails once, after so many uses. */
    private static final class BreakableTimeSource implements TimeSource {

        private final TimeSource time;
        private int uses = Integer.MAX_VALUE;

        BreakableTimeSource(TimeSource time) {
            this.time = time;
        }

        private void use() {
            if (uses-- == 0) {
                throw new IllegalStateException("broken");
            }
        }

        @Override
        public long nanoTime() {
            use();
            return time.nanoTime();
        }

        @Override
        public void parkUntil(long nanos) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Future<?> maintainAt(long nanos, Runnable upkeep) {
            use();
            return time.maintainAt(nanos, upkeep);
        }
    }

    /** A store that replies at once, or when the test says so. */
    private final class Store implements RegisterStore {

        @Override
        public CompletableFuture<Reply> set(BucketName key, Claim claim, Duration timeToLive) {
            synchronized (claims) {
                claims.add(claim);
                CompletableFuture<Reply> reply = unread ? new Unread() : new CompletableFuture<>();
                if (rejects) {
                    reply.completeExceptionally(new BackendException("full", null, true));
                } else if (answers) {
                    reply.complete(asIfSet(1, claim));
                } else {
                    unanswered.add(reply);
                }
                return reply;
            }
        }

        @Override
        public boolean carriesClaims() {
            return true;
        }

        @Override
        public Decision take(List<Charge> charges, List<CarriedClaim> carried, Duration timeToLive) {
            if (rejects) {
                throw new BackendException("gone");
            }
            for (CarriedClaim each : carried) {
                if (tokensAreShort) {
                    each.withdraw();
                } else {
                    each.replied(asIfSet(1, each.claim()));
                }
            }
            return Decision.of(List.of());
        }

        @Override
        public BackendException failure(Throwable failure, long began) {
            return new BackendException("failed", failure);
        }
    }

    /** A reply that gets no listener, for want of memory. */
    private static final class Unread extends CompletableFuture<Reply> {

        @Override
        public CompletableFuture<Reply> whenComplete(BiConsumer<? super Reply, ? super Throwable> action) {
            throw new OutOfMemoryError();
        }
    }

    private final class Rules implements Registers.Access {

        @Override
        public CompletableFuture<Reply> start(Supplier<CompletableFuture<Reply>> call) {
            if (broken) {
                throw new LinkageError();
            }
            return available ? call.get() : null;
        }

        @Override
        public long timeoutNanos() {
            return TICK.toNanos();
        }

        @Override
        public boolean hasFailed() {
            return hasFailed;
        }

        @Override
        public void await(Future<?> decision) {
            if (impatient) {
                return;
            }
            try {
                decision.get(30, TimeUnit.SECONDS);
            } catch (Exception failed) {
                throw new AssertionError(failed);
            }
        }

        @Override
        public int fallback(ThrottlePolicy policy, int limit, boolean congested) {
            RegistersTests.this.congested = congested;
            return fallback;
        }
    }

    private Reply asIfSet(int process, Claim claim) {
        return model.set(process, claim, TIME_TO_LIVE.toNanos() / 1_000, time.nanoTime() / 1_000);
    }

    private static Charge charge(int limit) {
        return Charge.of(ThrottlePolicy.of(ALICE.policy(), BucketSpec.inFlight(limit), "user"), ALICE.key(), 1);
    }

    private SharedSlots slots() {
        return registers.of(charge(1).policy());
    }

    private Slot take(int limit) {
        return slots().take(charge(limit));
    }

    private CompletableFuture<Slot> takeLater(int limit) {
        return CompletableFuture.supplyAsync(() -> take(limit), work -> new Thread(work).start());
    }

    private Claim lastClaim() {
        return claims.get(claims.size() - 1);
    }

    private void awaitClaims(int number) {
        Awaitility.await().until(() -> {
            synchronized (claims) {
                return claims.size() == number;
            }
        });
    }

    /** Returns whether a register was renewed for a call that runs. */
    private boolean isRenewed() {
        synchronized (claims) {
            return claims.size() > 1 && lastClaim().have() == 1;
        }
    }

    @Test
    void aCallAloneClaimsASlotAndGivesItBack() {
        Slot slot = take(2);

        assertThat(slot.outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(slot.free()).isEqualTo(1);
        assertThat(slots().held("alice")).isEqualTo(1);

        slot.release();
        assertThat(slots().held()).isZero();
        assertThat(claims).containsExactly(new Claim(1, 0, 1, 2), new Claim(2, 0, 0, 2));
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    @Test
    void noMoreCallsRunThanOtherProcessesLeave() {
        asIfSet(2, new Claim(1, 1, 1, 2));

        Slot slot = take(2);
        assertThat(slot.outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(slot.free()).isZero();
        assertThat(take(2).outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);

        asIfSet(2, new Claim(2, 0, 0, 2));
        assertThat(take(2).outcome()).isEqualTo(Outcome.ALLOWED);
    }

    @Test
    void callsThatComeDuringAClaimShareTheNext() {
        answers = false;
        CompletableFuture<Slot> first = takeLater(3);
        awaitClaims(1);
        List<CompletableFuture<Slot>> others = List.of(takeLater(3), takeLater(3), takeLater(3));
        Awaitility.await().until(() -> slots().held("alice") == 0 && queued() == 4);

        unanswered.remove().complete(asIfSet(1, claims.get(0)));
        awaitClaims(2);
        assertThat(first.join().outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(lastClaim()).isEqualTo(new Claim(2, 1, 3, 3));

        unanswered.remove().complete(asIfSet(1, lastClaim()));
        assertThat(others.stream().map(other -> other.join().outcome()))
                .containsExactlyInAnyOrder(Outcome.ALLOWED, Outcome.ALLOWED, Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(claims).hasSize(2);
    }

    private int queued() {
        return ((PolicyRegisters) slots()).queued("alice");
    }

    @Test
    void aCallThatEndsDuringAClaimServesTheNextAtOnce() {
        Slot running = take(1);
        answers = false;
        CompletableFuture<Slot> next = takeLater(1);
        awaitClaims(2);

        running.release();
        assertThat(next.join().outcome()).isEqualTo(Outcome.ALLOWED);
    }

    @Test
    void renewsARegisterWhileCallsRun() {
        Slot slot = take(2);
        for (int i = 0; i < 10; i++) {
            time.advance(TIME_TO_LIVE.dividedBy(3));
        }
        assertThat(claims.size()).isBetween(8, 11);
        assertThat(lastClaim().have()).isEqualTo(1);
        assertThat(model.registers().get(1).usable()).isEqualTo(1);

        slot.release();
        time.advance(TIME_TO_LIVE);
        assertThat(lastClaim().have()).isZero();
        assertThat(time.waiting()).isZero();
    }

    @Test
    void renewsARegisterThoughNoThreadCanBeStartedForItAtOnce() {
        try (SystemTimeSource scarce = ScarceThreads.time()) {
            Registers renewed = new Registers(scarce, new Store(), new Rules(), Duration.ofSeconds(3));
            Slot slot = renewed.of(charge(2).policy()).take(charge(2));
            Awaitility.await().until(this::isRenewed);
            slot.release();
        }
    }

    @Test
    void slotsAreUsedUntilALifetimeAfterTheClaimWasSent() {
        asIfSet(2, new Claim(1, 0, 2, 3));
        Slot slot = take(3);
        available = false;
        time.advance(TIME_TO_LIVE.minusMillis(10));
        slot.release();
        assertThat(take(3).outcome()).as("the rule denies").isEqualTo(Outcome.BACKEND_FAILED);
    }

    @Test
    void aBusyKeyKeepsSlotsForMoments() {
        List<Slot> running = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            running.add(take(100));
        }
        assertThat(claims.size()).isLessThan(20);
        int before = claims.size();
        for (int i = 0; i < 1_000; i++) {
            running.remove(0).release();
            running.add(take(100));
        }
        assertThat(claims).hasSizeLessThan(before + 2);

        running.forEach(Slot::release);
        assertThat(model.registers().get(1).usable()).isBetween(1, 6);
        time.advance(TICK.multipliedBy(2));
        assertThat(model.registers().get(1).usable()).isZero();
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    @Test
    void aClaimWhoseReplyNobodyReadsIsRepairedByTheNext() {
        unread = true;
        assertThatThrownBy(() -> take(2)).isInstanceOf(OutOfMemoryError.class);

        unread = false;
        time.advance(Duration.ofSeconds(3));
        Slot slot = take(2);
        assertThat(slot.outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(slot.fallback()).isFalse();
        slot.release();
        time.advance(Duration.ofSeconds(3));
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    @Test
    @EnabledIfSystemProperty(named = "ratelimit.test.stack", matches = "true")
    void aCallWhoseStackOverflowsLeavesNoSlotBehind() throws InterruptedException {
        StackDepths.each(depth -> take(2)::release, depth -> {
            time.advance(Duration.ofSeconds(3));
            assertThat(slots().held("alice")).as("depth %d", depth).isZero();
            assertThat(queued()).as("depth %d", depth).isZero();
        });
        assertThat(take(1).outcome()).isEqualTo(Outcome.ALLOWED);
    }

    @Test
    void aClaimWithoutReplyIsRepairedByTheNext() {
        Slot slot = take(2);
        answers = false;
        slot.release();
        time.advance(TICK.multipliedBy(2));
        assertThat(model.registers().get(1).usable()).isEqualTo(1);
        assertThat(((PolicyRegisters) slots()).isBusy()).isTrue();

        answers = true;
        time.advance(Duration.ofSeconds(2));
        assertThat(model.registers().get(1).slots()).isZero();
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    @Test
    void whileTheStoreIsUnavailableTheRuleDecidesAndItsCallsAreRegisteredLater() {
        available = false;
        fallback = 2;
        List<Slot> running = List.of(take(3), take(3));
        assertThat(running).allMatch(slot -> slot.outcome() == Outcome.ALLOWED).allMatch(Slot::fallback);
        Slot third = take(3);
        assertThat(third.outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(third.fallback()).isTrue();
        assertThat(claims).isEmpty();

        asIfSet(2, new Claim(1, 0, 2, 3));
        available = true;
        time.advance(Duration.ofSeconds(2));
        assertThat(model.registers().get(1).slots()).isEqualTo(2);
        assertThat(take(3).outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);

        running.get(0).release();
        running.get(1).release();
        time.advance(Duration.ofSeconds(2));
        assertThat(model.registers().get(1).slots()).isZero();
    }

    /** The deadline of its request ends before the claim is late. */
    @Test
    void aCallThatTheRuleStartsDuringAClaimIsRegisteredAfterIt() {
        asIfSet(2, new Claim(1, 3, 3, 3));
        answers = false;
        impatient = true;
        fallback = 1;
        Slot slot = take(3);
        assertThat(slot.fallback()).isTrue();
        assertThat(slot.outcome()).isEqualTo(Outcome.ALLOWED);

        answers = true;
        unanswered.remove().complete(asIfSet(1, lastClaim()));

        assertThat(model.registers().get(1).slots()).isEqualTo(1);
        slot.release();
        assertThat(model.registers().get(1).slots()).isZero();
    }

    @Test
    void anUnavailableStoreLeavesNoKeysBehind() {
        available = false;
        assertThat(take(3).outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    /** As with a server that is full: it answers each call with an error, so the circuit breaker stays closed. */
    @Test
    void aStoreThatRejectsAllClaimsLeavesNoKeysBehind() {
        rejects = true;
        ThrottlePolicy policy = charge(3).policy();
        for (int i = 0; i < 1_000; i++) {
            Slot slot = slots().take(Charge.of(policy, "client " + i, 1));
            assertThat(slot.outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        }
        time.advance(Duration.ofSeconds(2));
        assertThat(claims).hasSize(2_000);
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    @Test
    void waitingCallsGetSlotsInTheirOrderWithoutAClaim() {
        Slot running = take(1);
        Slot first = slots().enqueue(charge(1), () -> 1);
        Slot second = slots().enqueue(charge(1), () -> 1);
        assertThat(take(1).outcome()).as("nobody overtakes").isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);

        int before = claims.size();
        running.release();
        assertThat(first.outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(second.outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        first.release();
        assertThat(second.outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(claims).hasSize(before);
    }

    @Test
    void waitingCallsAskAgainForSlotsOfOtherProcesses() {
        asIfSet(2, new Claim(1, 1, 1, 1));
        Slot waiting = slots().enqueue(charge(1), () -> 1);
        time.advance(Duration.ofSeconds(1));
        assertThat(claims.size()).isBetween(16, 26);

        asIfSet(2, new Claim(2, 0, 0, 1));
        time.advance(Duration.ofMillis(60));
        assertThat(waiting.outcome()).isEqualTo(Outcome.ALLOWED);
    }

    @Test
    void aCallThatGivesUpLeavesTheQueue() {
        asIfSet(2, new Claim(1, 1, 1, 1));
        Slot waiting = slots().enqueue(charge(1), () -> 1);
        waiting.giveUp();
        time.advance(Duration.ofSeconds(1));

        assertThat(waiting.outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
        assertThat(time.waiting()).isZero();
    }

    @Test
    void fewerSlotsRevokeNothing() {
        AtomicInteger limit = new AtomicInteger(3);
        List<Slot> running = List.of(take(3), take(3), take(3));
        Slot waiting = slots().enqueue(charge(3), limit::get);
        limit.set(1);
        running.get(0).release();
        running.get(1).release();
        assertThat(waiting.outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);

        running.get(2).release();
        assertThat(waiting.outcome()).isEqualTo(Outcome.ALLOWED);
    }

    @Test
    void fewerSlotsLetNoCallStartBeforeAllProcessesRunFewer() {
        AtomicInteger limit = new AtomicInteger(4);
        asIfSet(2, new Claim(1, 2, 2, 4));
        List<Slot> running = List.of(take(4), take(4));
        Slot waiting = slots().enqueue(charge(4), limit::get);
        limit.set(2);
        running.get(0).release();
        time.advance(Duration.ofSeconds(1));
        assertThat(waiting.outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(model.registers().get(1).slots()).isEqualTo(1);

        asIfSet(2, new Claim(2, 1, 1, 2));
        running.get(1).release();
        time.advance(Duration.ofSeconds(1));
        assertThat(waiting.outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(take(2).outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
    }

    @Test
    void anErrorLeavesNoCallBehind() {
        fallback = 1;
        broken = true;
        assertThatThrownBy(() -> take(2)).isInstanceOf(LinkageError.class);
        assertThat(congested)
                .as("a rule for outages would lift the limit of calls that wait")
                .isTrue();
        assertThat(slots().held()).isZero();

        broken = false;
        time.advance(TIME_TO_LIVE.multipliedBy(2));
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    @Test
    void anErrorDoesNotEndTheRenewals() {
        take(2);
        broken = true;
        time.advance(TIME_TO_LIVE.dividedBy(2));
        assertThat(claims).hasSize(1);

        broken = false;
        time.advance(TIME_TO_LIVE.dividedBy(3));
        assertThat(claims).hasSizeGreaterThan(1);
    }

    /** Each use of the clock fails once, at the start and at the end. Two calls run; in every second run two others wait for their slots. */
    @RepeatedTest(300)
    void aClockThatFailsOnceEndsNoRenewalAndLosesNoSlot(RepetitionInfo run) {
        impatient = true;
        clock.uses = run.getCurrentRepetition() / 2;
        asIfSet(2, new Claim(1, 1, 1, 3));
        List<Slot> calls = new ArrayList<>();
        attempt(() -> calls.add(take(3)));
        attempt(() -> calls.add(Objects.requireNonNull(carry(3).slot())));
        calls.removeIf(call -> call.outcome() != Outcome.ALLOWED);
        if (run.getCurrentRepetition() % 2 == 0) {
            attempt(() -> calls.add(slots().enqueue(charge(3), () -> 3)));
            attempt(() -> calls.add(slots().enqueue(charge(3), () -> 3)));
        }
        for (int i = 0; i < 20; i++) {
            time.advance(TIME_TO_LIVE.dividedBy(10));
            asIfSet(2, new Claim(i + 2, 1, 1, 3));
        }
        int running = Math.min(calls.size(), 2);
        assertThat(slots().held()).isEqualTo(running);
        assertThat(calls.stream().filter(call -> call.outcome() == Outcome.ALLOWED))
                .hasSize(running);
        assertThat(model.registers().get(1).usable()).isEqualTo(running);

        clock.uses = run.getCurrentRepetition() / 2;
        while (!calls.isEmpty()) {
            Slot slot = calls.remove(0); // they were allowed in their order
            assertThat(slot.outcome()).isEqualTo(Outcome.ALLOWED);
            attempt(slot::release);
            time.advance(Duration.ofSeconds(1));
        }
        assertThat(slots().held()).isZero();
        assertThat(model.registers().get(1).slots()).isZero();
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    @Test
    void noClaimIsLeftIfTheClockFailsAtAnother() {
        ThrottlePolicy policy = charge(2).policy();
        for (int uses = 0; uses < 20; uses++) {
            List<SharedSlots.Request> requests = List.of(
                    slots().request(Charge.of(policy, "alice" + uses, 1)),
                    slots().request(Charge.of(policy, "bob" + uses, 1)));
            List<CarriedClaim> carried = new ArrayList<>();
            clock.uses = uses;
            attempt(() -> carried.addAll(registers.carry(requests)));
            clock.uses = Integer.MAX_VALUE;
            carried.forEach(CarriedClaim::withdraw);
        }
        time.advance(Duration.ofSeconds(1));
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    private static void attempt(Runnable step) {
        try {
            step.run();
        } catch (IllegalStateException broken) {
            assertThat(broken).hasMessage("broken");
        }
    }

    @Test
    void moreSlotsStartWaitingCalls() {
        AtomicInteger limit = new AtomicInteger(1);
        take(1);
        Slot waiting = slots().enqueue(charge(1), limit::get);
        limit.set(2);
        time.advance(Duration.ofMillis(60));
        assertThat(waiting.outcome()).isEqualTo(Outcome.ALLOWED);
    }

    private SharedSlots.Request carry(int limit) {
        SharedSlots.Request request = slots().request(charge(limit));
        if (registers.start(List.of(request), true)) {
            List<CarriedClaim> carried = registers.carry(List.of(request));
            if (!carried.isEmpty()) {
                registers.take(List.of(charge(limit)), carried);
            }
        }
        return request;
    }

    @Test
    void aTakeOfTokensCarriesTheClaim() {
        Slot slot = Objects.requireNonNull(carry(2).slot());
        assertThat(slot.outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(claims).isEmpty();
        assertThat(model.registers().get(1).slots()).isEqualTo(1);

        slot.release();
        assertThat(claims).containsExactly(new Claim(2, 0, 0, 2));
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    @Test
    void aCarriedClaimIsDeniedIfOtherProcessesHaveTheSlots() {
        asIfSet(2, new Claim(1, 2, 2, 2));
        assertThat(Objects.requireNonNull(carry(2).slot()).outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    @Test
    void aClaimThatWasWithdrawnLeavesNothingBehind() {
        tokensAreShort = true;
        for (int i = 0; i < 100; i++) {
            assertThat(carry(2).slot()).isNull();
            assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
        }
        assertThat(claims).isEmpty();
        assertThat(model.registers()).isEmpty();
    }

    /** A withdrawn claim renews no register. */
    @Test
    void aRegisterIsRenewedInTimeWhileClaimsAreWithdrawn() {
        Slot running = take(2);
        tokensAreShort = true;
        for (int i = 0; i < 40; i++) {
            time.advance(TIME_TO_LIVE.dividedBy(10));
            assertThat(carry(2).slot()).isNull();
            asIfSet(2, new Claim(i + 1, 0, 0, 2));
            assertThat(model.registers().get(1)).as("step %d", i).isNotNull();
        }
        running.release();
    }

    @Test
    void aCallThatComesDuringACarriedClaimSharesTheNext() {
        SharedSlots.Request first = slots().request(charge(2));
        List<CarriedClaim> carried = registers.carry(List.of(first));
        CompletableFuture<Slot> second = takeLater(2);
        Awaitility.await().until(() -> queued() == 2);
        assertThat(registers.carry(List.of(slots().request(charge(2))))).isEmpty();
        assertThat(claims).isEmpty();

        carried.get(0).withdraw();
        assertThat(second.join().outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(first.slot()).isNull();
        assertThat(claims).containsExactly(new Claim(2, 0, 1, 2));
    }

    @Test
    void aSlotThatIsReleasedDuringACarriedClaimServesItsCall() {
        Slot running = take(1);
        SharedSlots.Request request = slots().request(charge(1));
        CarriedClaim carried = registers.carry(List.of(request)).get(0);
        running.release();
        carried.withdraw();

        Slot slot = Objects.requireNonNull(request.slot());
        assertThat(slot.outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(slots().held()).isEqualTo(1);
        slot.release();
        assertThat(model.registers().get(1).slots()).isZero();
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    /** As in a flood of calls whose tokens are short: one of their claims is always under way. */
    @Test
    void aFloodOfWithdrawnClaimsLetsNoRegisterRunOut() {
        Slot running = take(2);
        time.advance(TIME_TO_LIVE.dividedBy(2));
        for (int i = 0; i < TIME_TO_LIVE.dividedBy(TICK) + 1; i++) {
            List<CarriedClaim> carried = registers.carry(List.of(slots().request(charge(2))));
            time.advance(TICK);
            carried.forEach(CarriedClaim::withdraw);
        }
        assertThat(asIfSet(2, new Claim(1, 0, 2, 2)).usable()).isEqualTo(1);
        running.release();
    }

    @Test
    void aTakeThatFailsDecidesItsCallByTheRule() {
        rejects = true;
        fallback = 1;
        SharedSlots.Request request = slots().request(charge(2));
        List<CarriedClaim> carried = registers.carry(List.of(request));
        assertThatThrownBy(() -> registers.take(List.of(charge(2)), carried)).isInstanceOf(BackendException.class);
        Slot slot = Objects.requireNonNull(request.slot());
        assertThat(slot.outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(slot.fallback()).isTrue();
    }

    @Test
    void aRequestThatHasFailedBeforeIsNotTakenForABusyProcess() {
        fallback = 1;
        answers = false;
        impatient = true;
        assertThat(take(3).outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(congested).isTrue();
        hasFailed = true;
        take(3);
        assertThat(congested).isFalse();
    }

    @Test
    void theEndOfAProcessGivesBackWhatItKeeps() {
        List<Slot> running = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            running.add(take(100));
        }
        running.forEach(Slot::release);
        assertThat(model.registers().get(1).usable()).isPositive();

        registers.giveBackKept(Duration.ofSeconds(30));
        assertThat(model.registers().get(1).slots()).isZero();
        assertThat(((PolicyRegisters) slots()).isBusy()).isFalse();
    }

    @Test
    void theEndOfAProcessWaitsForTheClaimUnderWay() throws Exception {
        Slot slot = take(2);
        answers = false;
        slot.release();
        CompletableFuture<Void> end = CompletableFuture.runAsync(
                () -> registers.giveBackKept(Duration.ofSeconds(30)), work -> new Thread(work).start());
        unanswered.remove().complete(asIfSet(1, lastClaim()));
        end.get(30, TimeUnit.SECONDS);
        registers.giveBackKept(Duration.ofNanos(1));
        assertThat(model.registers().get(1).slots()).isZero();
    }
}
