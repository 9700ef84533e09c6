package io.ratelimit.remote.inflight;

import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** The script {@code slots.lua} in Java, for one key; and, for tests of tests, with a rule left out. */
public final class RegisterModel {

    /** Rules of the store that can be left out. */
    enum Mutant {
        NO_NUMBERS,
        GRANTS_WHAT_IS_ASKED,
        TAKES_BACK_WHAT_IT_PROMISED,
        USES_A_SLOT_THAT_WAS_FORCED
    }

    /** A register of one process. */
    record Entry(long number, int slots, int usable, long deadline) {

        /** Returns this register with a deadline that isn't later. */
        Entry until(long latest) {
            return deadline <= latest ? this : new Entry(number, slots, usable, latest);
        }
    }

    private final Map<Integer, Entry> registers = new TreeMap<>();
    private final Set<Mutant> mutants;

    public RegisterModel() {
        this(Set.of());
    }

    RegisterModel(Set<Mutant> mutants) {
        this.mutants = mutants;
    }

    /** Sets the register of a process, at a time in microseconds. */
    public Reply set(int process, Claim claim, long micros, long now) {
        Map<Integer, Entry> live = new TreeMap<>(registers);
        live.values().removeIf(entry -> entry.deadline <= now);
        Entry mine = live.remove(process);
        if (mine != null && claim.number() <= mine.number && !mutants.contains(Mutant.NO_NUMBERS)) {
            return new Reply(-1, 0);
        }
        long latest = now + micros;
        live.replaceAll((other, entry) -> entry.until(latest));
        int others = live.values().stream().mapToInt(Entry::slots).sum();
        int before = mine == null || mutants.contains(Mutant.TAKES_BACK_WHAT_IT_PROMISED) ? 0 : mine.usable;
        int most = Math.max(claim.limit() - others, before);
        int usable = mutants.contains(Mutant.GRANTS_WHAT_IS_ASKED)
                ? claim.want()
                : Math.max(0, Math.min(claim.want(), most));
        int slots = Math.max(claim.have(), usable);
        live.put(process, new Entry(claim.number(), slots, usable, latest));
        registers.clear();
        registers.putAll(live);
        return new Reply(mutants.contains(Mutant.USES_A_SLOT_THAT_WAS_FORCED) ? slots : usable, others);
    }

    Map<Integer, Entry> registers() {
        return registers;
    }
}
