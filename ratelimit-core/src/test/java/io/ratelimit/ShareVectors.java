package io.ratelimit;

import io.ratelimit.Vectors.Expected;
import io.ratelimit.Vectors.Level;
import io.ratelimit.Vectors.Sequence;
import io.ratelimit.Vectors.Step;
import io.ratelimit.Vectors.Taken;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The {@link Vectors} of guaranteed shares. The first limit is the pool, and each further one the lane of a share. */
final class ShareVectors {

    private static final int STEPS = 10;
    private static final List<String> KINDS = List.of("shares of keys", "shares with names", "returns to shares");

    /**
     * What divides the pool.
     *
     * @param keys the most lanes at a time, if keys have shares; 0 if names have them
     * @param lanes the names or keys of the lanes
     * @param batch the percentage of the pool that {@code batch} leaves
     */
    record Lanes(int keys, long reserve, List<String> lanes, int batch) {

        String json() {
            return "{\"for\":%d,\"reserve\":%d,\"lanes\":[%s],\"leave\":{%s}}"
                    .formatted(
                            keys == 0 ? lanes.size() : keys,
                            reserve,
                            lanes.stream().map(lane -> '"' + lane + '"').collect(Collectors.joining(",")),
                            batch == 0 ? "" : "\"batch\":" + batch);
        }

        ThrottlePolicy policy(List<BucketSpec> specs) {
            ThrottlePolicy policy = ThrottlePolicy.of("b0", specs.get(0));
            Map<String, BucketSpec> named = new HashMap<>();
            lanes.forEach(lane -> named.put(lane, specs.get(1 + lanes.indexOf(lane))));
            return policy.withShares(
                    keys > 0
                            ? Shares.forKeys(specs.get(1), keys, List.of("user"))
                            : Shares.named(named, Map.of("batch", batch)));
        }

        Charge charge(ThrottlePolicy policy, String share, long cost) {
            return keys == 0
                    ? Charge.of(policy, share, "", cost)
                    : share.isEmpty()
                            ? Charge.of(policy, "", cost)
                            : Charge.of(policy, "", cost).guaranteedTo(share);
        }
    }

    private ShareVectors() {}

    static List<Sequence> all() {
        return IntStream.range(720, 810).mapToObj(ShareVectors::sequence).toList();
    }

    private static Sequence sequence(int seed) {
        SplittableRandom random = new SplittableRandom(seed);
        String kind = KINDS.get(seed % KINDS.size());
        long parts = 1 + random.nextInt(200);
        int keys =
                kind.contains("names") || kind.contains("returns") && random.nextBoolean() ? 0 : 1 + random.nextInt(2);
        List<String> names = List.of("a", "b", "c").subList(0, keys == 0 ? 1 + random.nextInt(3) : 3);
        List<VectorLimit> limits = new ArrayList<>();
        for (int i = 0; i < names.size(); i++) {
            long slower = (keys == 0 ? names.size() : keys) + random.nextInt(3);
            boolean same = i > 0 && keys > 0;
            limits.add(same ? limits.get(0) : limit(random, parts * slower, 1 + random.nextInt(4)));
        }
        long reserve = limits.stream()
                .limit(keys == 0 ? names.size() : keys)
                .mapToLong(VectorLimit::capacity)
                .sum();
        long capacity = reserve + 4 + random.nextInt(4);
        limits.add(0, limit(random, parts, capacity));
        int batch = keys == 0 ? 1 + random.nextInt((int) (100 * (capacity - 1) / capacity)) : 0;
        Lanes lanes = new Lanes(keys, reserve, names, batch);
        return new Sequence(kind + " " + seed, limits, lanes, new Run(kind, limits, lanes, random).steps());
    }

    private static VectorLimit limit(SplittableRandom random, long parts, long capacity) {
        return new VectorLimit(1 + random.nextInt(5), parts, capacity, false, null);
    }

    private static final class Run {
        private final boolean returns;
        private final Lanes lanes;
        private final SplittableRandom random;
        private final List<Level> levels;
        private final Level pool;
        private final Map<Taken, Optional<Level>> taken = new LinkedHashMap<>(); // with the lane that served the call
        private final List<Step> steps = new ArrayList<>();
        private long now;

        Run(String kind, List<VectorLimit> limits, Lanes lanes, SplittableRandom random) {
            this.returns = kind.contains("returns");
            this.lanes = lanes;
            this.random = random;
            this.levels = limits.stream().map(Level::new).toList();
            this.pool = levels.get(0);
        }

        /** Time passes before each step, since a store may look for a free place once a millisecond. */
        List<Step> steps() {
            while (steps.size() < STEPS) {
                now += 1 + (random.nextInt(3) == 0 ? 0 : random.nextLong(3 * pool.limit.parts()));
                levels.forEach(level -> level.pass(now));
                if (returns && !taken.isEmpty() && random.nextInt(3) == 0) {
                    settle(List.copyOf(taken.keySet()).get(random.nextInt(taken.size())));
                } else {
                    take(random.nextInt(4) > 0 ? 1 + random.nextInt(lanes.lanes.size()) : 0);
                }
            }
            return steps;
        }

        /** @param place the place of the call's lane; 0 for none */
        private void take(int place) {
            Level lane = levels.get(place);
            boolean batch = place == 0 && lanes.batch > 0 && random.nextBoolean();
            long leave = Math.max(lanes.reserve, batch ? (pool.limit.capacity() * lanes.batch + 99) / 100 : 0);
            long most = place > 0 ? lane.limit.capacity() : pool.limit.capacity() - leave;
            long cost = 1 + random.nextLong(most + (random.nextInt(6) == 0 ? 4 : 0));
            long inUse = levels.stream()
                    .skip(1)
                    .filter(other -> other.parts < other.full())
                    .count();
            boolean hasPlace = lanes.keys == 0 || lane.parts < lane.full() || inUse < lanes.keys;
            boolean mayServe = place > 0 && cost <= lane.limit.capacity() && hasPlace;
            boolean everBorrows = cost + leave <= pool.limit.capacity();
            boolean borrows = everBorrows && pool.until(cost + leave) == 0;
            boolean allowed = borrows || mayServe && lane.until(cost) == 0;
            boolean byLane = !borrows && mayServe && (!everBorrows || lane.until(cost) < pool.until(cost + leave));
            if (allowed) {
                lane.parts -= byLane ? cost * lane.limit.parts() : 0;
                pool.parts -= cost * pool.limit.parts();
                taken.put(pool.taken(steps.size(), cost), byLane ? Optional.of(lane) : Optional.empty());
            }
            String outcome = allowed ? "allowed" : everBorrows || mayServe ? "denied" : "never-fits";
            Level by = byLane ? lane : pool;
            Expected answer = by.answer(byLane ? place : 0, cost, outcome, byLane ? 0 : leave);
            String share = batch ? "batch" : place == 0 ? "" : lanes.lanes.get(place - 1);
            steps.add(new Step(now, "take", 0, 0, List.of(Vectors.withHeaders(answer, by, 0, 0)), 0, 0, null, share));
        }

        /** The lane gets back no more than the pool. */
        private void settle(Taken take) {
            long cost = random.nextLong(take.cost());
            steps.add(new Step(now, "settle", 0, 0, List.of(), take.step(), cost, null, null));
            long back = pool.settle(take, cost);
            taken.remove(take)
                    .ifPresent(lane -> lane.parts =
                            Math.min(lane.parts + back * lane.limit.parts() / pool.limit.parts(), lane.full()));
        }
    }
}
