package io.ratelimit.remote.inflight;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.remote.inflight.RegisterModel.Entry;
import io.ratelimit.remote.inflight.RegisterModel.Mutant;
import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.time.Duration;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * All histories of two processes with a few claims each, over the code that decides: {@link Register}, and the script in Java.
 * A message arrives at any time, in any order, or never; a process gives a claim up; a register runs out. In every state
 * at most so many calls run as there are slots, and those that still ran when the register of their process ran out.
 */
class RegisterHistoriesTests {

    private static final Duration TIME_TO_LIVE = Duration.ofSeconds(10);
    private static final long LIFETIME = TIME_TO_LIVE.toNanos();
    private static final long NOW = 5 * LIFETIME;

    /** Rules of a process that can be left out. */
    enum Careless {
        LOWERS_AFTER_THE_REPLY,
        COUNTS_FROM_THE_REPLY,
        TAKES_LATE_REPLIES
    }

    /** A violation: more calls run than may. */
    private static final class Violation extends RuntimeException {

        private static final long serialVersionUID = 1;
    }

    /** A set of numbers without objects. */
    private static final class Seen {

        private long[] table = new long[1 << 16];
        private int size;

        boolean add(long state) {
            if (2 * size > table.length) {
                long[] before = table;
                table = new long[2 * before.length];
                size = 0;
                for (long other : before) {
                    if (other != 0) {
                        add(other - 1);
                    }
                }
            }
            long value = state + 1;
            int at = (int) ((value * 0x9E3779B97F4A7C15L) >>> 32) & table.length - 1;
            while (table[at] != 0) {
                if (table[at] == value) {
                    return false;
                }
                at = at + 1 & table.length - 1;
            }
            table[at] = value;
            size++;
            return true;
        }
    }

    /** The states that still have to be visited. */
    private static final class Todo {

        private long[] states = new long[1 << 16];
        private int size;

        void push(long state) {
            states = size == states.length ? Arrays.copyOf(states, 2 * size) : states;
            states[size++] = state;
        }
    }

    /** A state as digits of a number: two processes, their registers at the store, and their messages. */
    private static final class State {

        final Process[] processes = {new Process(), new Process()};

        static State of(long digits) {
            State state = new State();
            long left = digits;
            for (Process process : state.processes) {
                left = process.read(left);
            }
            return state;
        }

        /** Returns one number for both orders of the two processes, which are alike. */
        long digits() {
            long one = processes[0].write(processes[1].write(0));
            return Math.min(one, processes[1].write(processes[0].write(0)));
        }
    }

    /** A process, its register at the store, and for each of its claims a message under way or none. */
    private static final class Process {

        private static final int[] SIZES = {4, 4, 2, 2, 2, 4, 4, 4, 4, 4};
        private static final int MESSAGES = 3;
        private static final int REPLY = 9;

        int running;
        int usable;
        int valid; // whether its slots may be used
        int fresh; // whether a reply to its last claim comes in time
        int awaits; // whether it waits for that reply
        int number;
        int cut; // the calls that ran when its register ran out
        int stored; // the number of its register; 0 if there is none
        int slots;
        int granted;
        final int[] messages = new int[MESSAGES + 1];

        long read(long digits) {
            int[] values = new int[SIZES.length];
            long left = digits;
            for (int i = 0; i < SIZES.length; i++) {
                values[i] = (int) (left % SIZES[i]);
                left /= SIZES[i];
            }
            running = values[0];
            usable = values[1];
            valid = values[2];
            fresh = values[3];
            awaits = values[4];
            number = values[5];
            cut = values[6];
            stored = values[7];
            slots = values[8];
            granted = values[9];
            for (int i = 1; i <= MESSAGES; i++) {
                messages[i] = (int) (left % 16);
                left /= 16;
            }
            return left;
        }

        long write(long digits) {
            long all = digits;
            for (int i = MESSAGES; i >= 1; i--) {
                all = all * 16 + messages[i];
            }
            int[] values = {running, usable, valid, fresh, awaits, number, cut, stored, slots, granted};
            for (int i = SIZES.length - 1; i >= 0; i--) {
                if (values[i] < 0 || values[i] >= SIZES[i]) {
                    throw new Violation(); // no correct process has such numbers
                }
                all = all * SIZES[i] + values[i];
            }
            return all;
        }

        Register register() {
            Register register = new Register(TIME_TO_LIVE);
            register.running = running;
            register.usable = usable;
            register.until = valid == 1 ? NOW + 1 : NOW;
            register.sentAt = fresh == 1 ? NOW : NOW - LIFETIME;
            register.awaited = awaits == 1 ? number : 0;
            return register;
        }

        void set(Register register) {
            running = register.running;
            usable = register.usable(NOW);
            valid = register.until - NOW > 0 ? 1 : 0;
            fresh = register.sentAt == NOW ? 1 : 0;
            awaits = register.awaited == 0 ? 0 : 1;
            cut = Math.min(cut, running);
        }
    }

    /** The search of all histories with so many slots and claims. */
    private static final class Search {

        private final int slots;
        private final int claims;
        private final Set<Mutant> mutants;
        private final Set<Careless> careless;
        private final Seen seen = new Seen();
        private final Todo todo = new Todo();

        Search(int slots, int claims, Set<Mutant> mutants, Set<Careless> careless) {
            this.slots = slots;
            this.claims = claims;
            this.mutants = mutants;
            this.careless = careless;
        }

        /** Returns the number of states. */
        int run(boolean afterACut) {
            State start = new State();
            if (afterACut) {
                Process first = start.processes[0];
                first.running = 1;
                first.number = 1;
                first.cut = 1;
                start.processes[1].number = 1;
            }
            add(start);
            while (todo.size > 0) {
                step(todo.states[--todo.size]);
            }
            return seen.size;
        }

        private void add(State state) {
            Process[] both = state.processes;
            if (both[0].running + both[1].running > slots + both[0].cut + both[1].cut) {
                throw new Violation();
            }
            long digits = state.digits();
            if (seen.add(digits)) {
                todo.push(digits);
            }
        }

        private void step(long digits) {
            State now = State.of(digits);
            for (int i = 0; i < 2; i++) {
                start(State.of(digits), i);
                end(State.of(digits), i);
                if (now.processes[i].awaits == 0) {
                    claim(State.of(digits), i, 0);
                    claim(State.of(digits), i, 1);
                } else {
                    giveUp(State.of(digits), i);
                }
                runOut(State.of(digits), i);
                for (int number = 1; number <= now.processes[i].number; number++) {
                    if (now.processes[i].messages[number] != 0) {
                        arrive(State.of(digits), i, number);
                    }
                }
            }
        }

        private void start(State state, int i) {
            Register register = state.processes[i].register();
            if (register.start(slots, NOW)) {
                state.processes[i].set(register);
                add(state);
            }
        }

        private void end(State state, int i) {
            Register register = state.processes[i].register();
            if (register.running > 0) {
                register.running--;
                state.processes[i].set(register);
                add(state);
            }
        }

        private void claim(State state, int i, int more) {
            Process process = state.processes[i];
            if (process.number < claims) {
                Register register = process.register();
                int before = register.usable(NOW);
                process.number++;
                Claim claim = register.claim(process.number, process.running + more, slots, NOW);
                if (careless.contains(Careless.LOWERS_AFTER_THE_REPLY)) {
                    register.usable = before;
                }
                process.set(register);
                process.messages[process.number] = 1 + 2 * claim.have() + claim.want() - claim.have();
                add(state);
            }
        }

        private void giveUp(State state, int i) {
            Register register = state.processes[i].register();
            register.gaveUp();
            state.processes[i].set(register);
            add(state);
        }

        /** The process has stopped to use its slots before, since it counts from a moment before the store does. */
        private void runOut(State state, int i) {
            Process process = state.processes[i];
            if (process.stored > 0) {
                if (!careless.contains(Careless.COUNTS_FROM_THE_REPLY)) {
                    process.cut = Math.max(process.cut, process.running);
                    process.valid = 0;
                    process.usable = 0;
                    process.fresh = process.number <= process.stored ? 0 : process.fresh;
                }
                process.stored = 0;
                process.slots = 0;
                process.granted = 0;
                add(state);
            }
        }

        private void arrive(State state, int i, int number) {
            Process process = state.processes[i];
            int message = process.messages[number];
            process.messages[number] = 0;
            if (message >= Process.REPLY) {
                Register register = process.register();
                if (careless.contains(Careless.TAKES_LATE_REPLIES)) {
                    register.awaited = number;
                }
                if (careless.contains(Careless.COUNTS_FROM_THE_REPLY)) {
                    register.sentAt = NOW;
                }
                register.replied(number, message - Process.REPLY);
                process.set(register);
                add(state);
            } else if (message > 0) {
                int have = (message - 1) / 2;
                set(state, i, new Claim(number, have, have + (message - 1) % 2, slots));
                add(state);
            }
        }

        private void set(State state, int i, Claim claim) {
            RegisterModel store = new RegisterModel(mutants);
            for (int j = 0; j < 2; j++) {
                Process process = state.processes[j];
                if (process.stored > 0) {
                    store.registers().put(j, new Entry(process.stored, process.slots, process.granted, NOW + LIFETIME));
                }
            }
            Reply reply = store.set(i, claim, LIFETIME, NOW);
            Process process = state.processes[i];
            Entry register = store.registers().get(i);
            process.stored = (int) register.number();
            process.slots = register.slots();
            process.granted = register.usable();
            process.messages[(int) claim.number()] = reply.usable() < 0 ? 0 : Process.REPLY + reply.usable();
        }
    }

    private static int states(int slots, int claims) {
        Set<Mutant> none = Set.of();
        return new Search(slots, claims, none, Set.of()).run(false);
    }

    @ParameterizedTest
    @CsvSource({"1, 2", "2, 2", "3, 2"})
    void noHistoryRunsMoreCallsThanSlots(int slots, int claims) {
        assertThat(states(slots, claims)).isGreaterThan(10_000);
    }

    @Test
    void norDoesOneAfterAProcessWasCutOff() {
        assertThat(new Search(1, 3, Set.of(), Set.of()).run(true)).isGreaterThan(10_000);
    }

    @Tag("slow")
    @Test
    void norDoesAnyWithThreeClaims() {
        Stream<CompletableFuture<Integer>> searches = IntStream.rangeClosed(1, 3)
                .mapToObj(slots -> CompletableFuture.supplyAsync(
                        () -> states(slots, 3), search -> new Thread(search, slots + " slots").start()));
        assertThat(searches.toList())
                .allSatisfy(states -> assertThat(states.join()).isGreaterThan(1_000_000));
    }

    private static void assertDies(Set<Mutant> mutants, Set<Careless> careless) {
        boolean died = Stream.of(false, true).anyMatch(afterACut -> {
            try {
                new Search(1, 3, mutants, careless).run(afterACut);
                return false;
            } catch (Violation violation) {
                return true;
            }
        });
        assertThat(died).as("%s %s".formatted(mutants, careless)).isTrue();
    }

    @ParameterizedTest
    @EnumSource
    void aStoreWithoutOneOfItsRulesRunsMore(Mutant mutant) {
        assertDies(Set.of(mutant), Set.of());
    }

    @ParameterizedTest
    @EnumSource
    void aProcessWithoutOneOfItsRulesRunsMore(Careless careless) {
        assertDies(Set.of(), Set.of(careless));
    }
}
