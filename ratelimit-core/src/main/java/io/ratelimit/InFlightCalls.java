package io.ratelimit;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.SharedSlots.Request;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Decides calls whose charges limit how many run at a time: takes their slots and their tokens, all or none. Thread-safe.
 */
final class InFlightCalls {

    /** Takes the tokens of charges, all or none. */
    interface Taker {

        /** @param slots the slots that the call needs beside the tokens; may be decided */
        Decision take(List<Charge> charges, List<Request> slots);

        default boolean mayWait() {
            return false;
        }
    }

    /** Parks a thread until its call has a slot, or for a time of the machine's clock. */
    private interface Wait {

        void await(long nanos) throws InterruptedException;
    }

    /** Ends a decision whose thread was interrupted while it waited for a slot. */
    static final class InterruptedWait extends RuntimeException {

        private static final long serialVersionUID = 1;

        private InterruptedWait(InterruptedException interrupted) {
            super(null, interrupted, false, false);
        }
    }

    /** The machine's time that a wait may last longer on another clock, in case that clock makes no call. */
    private static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(30);

    private final Throttlers throttlers;
    final TimeSource time;

    /** A waiting thread ends its wait itself: the waiting threads may be all those that could make the clock's call. */
    private final long graceNanos;

    /** The first of those whose threads had too little stack left to release their slots. Written under the lock. */
    volatile @Nullable Unreleased unreleased;

    InFlightCalls(Throttlers throttlers, TimeSource time) {
        this.throttlers = throttlers;
        this.time = time;
        this.graceNanos = time instanceof SystemTimeSource ? 0 : GRACE_NANOS;
    }

    static boolean concern(List<Charge> charges) {
        for (int i = 0; i < charges.size(); i++) {
            if (charges.get(i).spec().inFlight() > 0) {
                return true;
            }
        }
        return false;
    }

    /**
     * Takes the slots of the charges, and the tokens by the taker, and reports the decision. That of an allowed call holds the
     * slots.
     *
     * @throws InterruptedWait if the thread is interrupted while the call waits for a slot
     */
    Decision decide(List<Charge> charges, Taker tokens, GuardedListeners listener) {
        if (unreleased != null) {
            releaseEarlier();
        }
        Call call = new Call(tokens.mayWait());
        try {
            Decision decision = call.decide(charges, tokens);
            listener.report(decision);
            return decision;
        } catch (RuntimeException | Error failed) {
            try {
                call.releaseSlots();
            } catch (StackOverflowError overflow) {
                synchronized (this) { // needs no stack
                    call.next = unreleased;
                    unreleased = call;
                }
            }
            throw failed;
        }
    }

    /**
     * Releases the slots of earlier calls, whose threads had too little stack left for it. Without the lock, since a store of
     * the application may take its time.
     */
    private void releaseEarlier() {
        for (Unreleased slots = nextUnreleased(); slots != null; slots = nextUnreleased()) {
            try {
                slots.releaseSlots();
            } catch (VirtualMachineError lacking) {
                synchronized (this) {
                    slots.next = unreleased;
                    unreleased = slots;
                }
                throw lacking;
            } catch (RuntimeException failed) { // as if the call's own thread had released them
            }
        }
    }

    private synchronized @Nullable Unreleased nextUnreleased() {
        Unreleased first = unreleased;
        unreleased = first == null ? null : first.next;
        return first;
    }

    /** Checks that the calls of a policy are counted where its buckets are. */
    void checkPlace(ThrottlePolicy policy, BucketStore store) {
        Backend backend = policy.limitsInFlight() ? store.backend(policy) : null;
        if (backend != null && store.slots(policy) == null) {
            throw new IllegalArgumentException("'" + policy.name()
                    + "' limits the calls in flight, which the store of its buckets doesn't count: " + backend.name());
        }
    }

    int held(Charge charge) {
        return throttlers.of(charge.policy()).held(charge.key());
    }

    /** Returns the bucket of a charge without a rate: as many tokens as slots are free. */
    BucketSnapshot snapshot(Charge charge) {
        int limit = charge.spec().inFlight();
        long free = Math.max(0, limit - held(charge));
        return new BucketSnapshot(limit, charge.spec().rate(), free, Duration.ZERO, Duration.ZERO);
    }

    private final class Call extends UndecidedSlots {

        private List<Answer> slots = List.of();

        Call(boolean mayWait) {
            this.waiting = mayWait ? new Waiting(time.nanoTime()) : null;
        }

        Decision decide(List<Charge> charges, Taker taker) {
            Decision decision = takeLocal(charges) ? takeShared(charges, taker) : Decision.of(slots);
            if (decision.allowed()) {
                return decision.holding(held);
            }
            releaseSlots();
            return decision;
        }

        /** Takes the slots that this process counts, and leaves requests for the others. */
        private boolean takeLocal(List<Charge> charges) {
            boolean allowed = true;
            for (int i = 0; i < charges.size(); i++) {
                Charge charge = charges.get(i);
                if (charge.spec().inFlight() > 0) {
                    SharedSlots shared = throttlers.of(charge.policy()).sharedSlots();
                    if (shared == null) {
                        Answer answer = allowed ? takeSlot(charge) : peek(charge);
                        allowed &= answer.allowed();
                        slots = with(slots, answer);
                    } else {
                        requests = with(requests, shared.request(charge));
                    }
                }
            }
            return allowed;
        }

        /**
         * Takes the tokens, and the slots that processes share. The store takes both together if it can. Otherwise slots follow
         * the tokens, since most denials are denials of tokens, and most of these need no call of the backend.
         */
        private Decision takeShared(List<Charge> charges, Taker taker) {
            while (true) {
                List<Charge> rated = rated(charges);
                if (rated.isEmpty() && requests.isEmpty()) {
                    return new Decision(slots, held);
                }
                Decision tokens = rated.isEmpty() ? Decision.of(List.of()) : taker.take(rated, requests);
                Request denied = firstDenied(tokens.allowed());
                if (denied == null && tokens.outcome() == Outcome.TOO_MANY_IN_FLIGHT) {
                    continue; // the call got the slot of another one while the store denied it
                }
                if (denied == null) {
                    hold(tokens.allowed());
                    return rated.size() == charges.size()
                            ? tokens
                            : new Decision(merge(charges, tokens.answers()), tokens.allowed() ? held : List.of());
                }
                if (tokens.allowed()) {
                    throttlers.giveBack(tokens.taken());
                }
                Answer denial = awaitSlot(denied);
                if (denial != null) {
                    return Decision.of(with(slots, denial));
                }
            }
        }

        /** Returns the first request that is denied, after the store had its choice; null if there is none. */
        private @Nullable Request firstDenied(boolean takeOthers) {
            for (Request request : requests) {
                if (takeOthers) {
                    request.take();
                }
                if (request.isDenied()) {
                    return request;
                }
            }
            return null;
        }

        /** Keeps the slots of an allowed call, and adds the answers. */
        private void hold(boolean allowed) {
            for (Request request : requests) {
                SharedSlots.Slot slot = request.slot();
                Charge charge = request.charge();
                if (slot != null) {
                    Answer answer = allowed(charge, charge.spec().inFlight() - slot.free());
                    slots = with(slots, slot.fallback() ? answer.asFallback(charge) : answer);
                }
                if (slot != null && allowed) {
                    HeldSlot heldSlot = new HeldSlot(throttlers.of(charge.policy()), slot, InFlightCalls.this);
                    held = with(held, heldSlot);
                    request.decide(null); // the held slot is released in its place
                    heldSlot.start();
                }
            }
            requests = allowed ? List.of() : requests;
        }

        /** Returns the charges with a rate, which may wait for the rest of their time. */
        private List<Charge> rated(List<Charge> charges) {
            List<Charge> rated = List.of();
            for (int i = 0; i < charges.size(); i++) {
                Charge charge = charges.get(i);
                if (charge.spec().hasRate()) {
                    rated = rated.isEmpty() ? new ArrayList<>(charges.size()) : rated;
                    rated.add(
                            waiting == null || waiting.nanos == 0 ? charge : charge.withMaxWait(left(charge, waiting)));
                }
            }
            return rated;
        }

        private static Duration left(Charge charge, Waiting waiting) {
            return charge.maxWait()
                    .minusNanos(Math.min(waiting.nanos, charge.maxWait().toNanos()));
        }

        /** Returns the answers of the charges in their order: of the bucket, or of the slots of a charge without a rate. */
        private List<Answer> merge(List<Charge> charges, List<Answer> tokens) {
            List<Answer> merged = new ArrayList<>(charges.size());
            int token = 0;
            for (int i = 0; i < charges.size(); i++) {
                if (!charges.get(i).spec().hasRate()) {
                    addSlot(merged, charges.get(i));
                } else if (token < tokens.size()) { // a remote store may leave out answers
                    merged.add(tokens.get(token++));
                }
            }
            return merged;
        }

        /** Adds the answer for this very charge: to compare two policies takes longer than to decide. */
        private void addSlot(List<Answer> answers, Charge charge) {
            for (int i = 0; i < slots.size(); i++) {
                if (slots.get(i).charge() == charge) {
                    answers.add(slots.get(i));
                }
            }
        }

        private Answer takeSlot(Charge charge) {
            Waiting wait = waiting;
            PolicyThrottler throttler = throttlers.of(charge.policy());
            PolicySlots policy = throttler.slots();
            takenFrom = policy;
            taken = policy.take(charge.key(), charge.spec().inFlight());
            if (taken == null && wait != null && !left(charge, wait).isZero()) {
                if (!wait.join(throttler.queue(), charge.policy().queueLimit())) {
                    return denied(charge, Outcome.QUEUE_FULL);
                }
                await(charge, throttler, wait);
                wait.leave();
            }
            KeySlots slots = taken;
            if (slots == null) {
                return denied(charge, Outcome.TOO_MANY_IN_FLIGHT);
            }
            HeldSlot slot = new HeldSlot(throttler, slots, InFlightCalls.this);
            held = with(held, slot);
            taken = null;
            slot.start(); // at last, since a clock may throw
            return allowed(charge, slots.held());
        }

        /** Waits for a slot, if the call may. Returns the denial; null if the call has the slot. */
        private @Nullable Answer awaitSlot(Request request) {
            Waiting wait = waiting;
            Charge charge = request.charge();
            SharedSlots.Slot slot = request.take();
            PolicyThrottler throttler = throttlers.of(charge.policy());
            if (slot.outcome() == Outcome.TOO_MANY_IN_FLIGHT
                    && wait != null
                    && !left(charge, wait).isZero()) {
                if (!wait.join(throttler.queue(), charge.policy().queueLimit())) {
                    return denied(charge, Outcome.QUEUE_FULL);
                }
                slot = await(request, throttler, wait);
                wait.leave();
            }
            if (slot.outcome() == Outcome.ALLOWED) {
                return null;
            }
            Answer denial = denied(charge, slot.outcome());
            return slot.fallback() ? denial.asFallback(charge) : denial;
        }

        private SharedSlots.Slot await(Request request, PolicyThrottler throttler, Waiting wait) {
            Charge charge = request.charge();
            long began = time.nanoTime();
            SharedSlots.Slot slot = request.enqueue(() -> throttler.inFlightNow(charge));
            await(slot::giveUp, slot::await, charge, began, wait);
            return slot;
        }

        /** Waits until the call has a slot of the key, unless none comes in time. */
        private void await(Charge charge, PolicyThrottler throttler, Waiting wait) {
            long began = time.nanoTime();
            KeySlots.Waiter waiter = throttler.slots().enqueue(charge.key(), () -> throttler.inFlightNow(charge));
            wait.waiter = waiter;
            await(waiter::giveUp, waiter::await, charge, began, wait);
            taken = waiter.slots();
            wait.waiter = null;
        }

        /** Waits until the maximum wait has passed, and reports the wait since it began. */
        private void await(Runnable giveUp, Wait park, Charge charge, long began, Waiting wait) {
            try {
                awaitUntil(wait.start + charge.maxWait().toNanos(), giveUp, park);
            } catch (InterruptedException interrupted) {
                throw new InterruptedWait(interrupted);
            } finally {
                long now = time.nanoTime();
                wait.nanos = now - wait.start;
                throttlers.of(charge.policy()).listener().waited(now - began);
            }
        }

        private void awaitUntil(long end, Runnable giveUp, Wait wait) throws InterruptedException {
            Future<?> timeout = time.callAt(end, giveUp);
            try {
                wait.await(end - time.nanoTime() + graceNanos);
            } finally {
                timeout.cancel(false);
            }
        }

        private Answer peek(Charge charge) {
            int running = InFlightCalls.this.held(charge);
            return running < charge.spec().inFlight()
                    ? allowed(charge, running)
                    : denied(charge, Outcome.TOO_MANY_IN_FLIGHT);
        }

        private static Answer allowed(Charge charge, int running) {
            long free = Math.max(0, charge.spec().inFlight() - running);
            return new Answer(charge, Outcome.ALLOWED, free, 0, 0, 0, 0);
        }

        private Answer denied(Charge charge, Outcome outcome) {
            long retry = throttlers
                    .of(charge.policy())
                    .slots()
                    .retryNanos(charge.spec().inFlight());
            return Answer.denied(charge, outcome, Duration.ofNanos(retry));
        }
    }
}
