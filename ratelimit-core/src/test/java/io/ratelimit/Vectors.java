package io.ratelimit;

import io.ratelimit.BucketSpec.Refill;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Sequences of calls with their exact answers: {@code vectors/ratelimit-vectors.json}. The answers are counted in parts of
 * a token by {@link Level}, which shares no arithmetic with the buckets. All times are whole milliseconds.
 */
final class Vectors {

    private static final int STEPS = 8;
    private static final String SPEC = "{\"tokens\":%d,\"period\":%d,\"capacity\":%d,\"refill\":\"%s\"}";

    /** A limit whose token comes back in so many milliseconds. */
    record Limit(long tokens, long millis, long capacity, boolean batches) {

        BucketSpec spec() {
            Rate rate = new Rate(tokens, Duration.ofMillis(period()));
            return new BucketSpec(rate, capacity, batches ? Refill.INTERVAL : Refill.GREEDY);
        }

        long period() {
            return tokens * millis;
        }

        /** Returns the milliseconds from empty to full. */
        private long toFull() {
            return batches ? (capacity + tokens - 1) / tokens * period() : capacity * millis;
        }

        private String json() {
            return SPEC.formatted(tokens, period(), capacity, batches ? "interval" : "greedy");
        }
    }

    /** The answer of one bucket. */
    record Expected(
            int bucket,
            long cost,
            String outcome,
            long remaining,
            long retry,
            long next,
            long reset,
            String policy,
            String header) {

        private String json() {
            return "{\"bucket\":%d,\"cost\":%d,\"outcome\":\"%s\",\"remaining\":%d,\"retry\":%d,\"next\":%d,\"reset\":%d,\"policy\":\"%s\",\"header\":\"%s\"}"
                    .formatted(bucket, cost, outcome, remaining, retry, next, reset, escaped(policy), escaped(header));
        }
    }

    private static String escaped(String text) {
        return text.replace("\"", "\\\"");
    }

    /** One step. The place is that of the bucket that changes, or of the step that took. */
    record Step(
            long at,
            String action,
            long maxWait,
            long waitTime,
            List<Expected> answers,
            int place,
            long cost,
            Limit limit) {

        private String json() {
            String start = "{\"at\":%d,\"do\":\"%s\"".formatted(at, action);
            return start
                    + switch (action) {
                        case "take" ->
                            ",\"maxWait\":%d,\"wait\":%d,\"answers\":[%s]}"
                                    .formatted(
                                            maxWait,
                                            waitTime,
                                            join(answers.stream()
                                                    .map(Expected::json)
                                                    .toList()));
                        case "change" -> ",\"bucket\":%d,\"limit\":%s}".formatted(place, limit.json());
                        default -> ",\"step\":%d,\"cost\":%d}".formatted(place, cost);
                    };
        }
    }

    record Sequence(String name, List<Limit> limits, List<Step> steps) {

        private String json() {
            return "{\"name\":\"%s\",\"limits\":[%s],\"steps\":[\n  %s]}"
                    .formatted(
                            name,
                            join(limits.stream().map(Limit::json).toList()),
                            steps.stream().map(Step::json).collect(Collectors.joining(",\n  ")));
        }
    }

    private static String join(List<String> texts) {
        return String.join(",", texts);
    }

    private Vectors() {}

    /** Returns the file's text. */
    static String json() {
        return "{\"version\":1,\"sequences\":[\n"
                + all().stream().map(Sequence::json).collect(Collectors.joining(",\n"))
                + "\n]}\n";
    }

    /** Returns all sequences. The number of a sequence is its seed. */
    static List<Sequence> all() {
        return IntStream.range(0, 630).mapToObj(Vectors::sequence).toList();
    }

    private static Sequence sequence(int seed) {
        String[] kinds = {
            "greedy",
            "interval",
            "waits",
            "waits in batches",
            "returns",
            "settlements",
            "changes",
            "several",
            "returns while calls wait"
        };
        String kind = kinds[seed % kinds.length];
        SplittableRandom random = new SplittableRandom(seed);
        boolean batches =
                kind.contains("interval") || kind.contains("batches") || kind.startsWith("returns") && seed % 2 == 0;
        List<Limit> limits = new ArrayList<>();
        for (int i = 0; i < (kind.equals("several") ? 3 : 1); i++) {
            limits.add(limit(random, batches));
        }
        return new Sequence(kind + " " + seed, limits, new Run(kind, limits, random).steps());
    }

    private static Limit limit(SplittableRandom random, boolean batches) {
        return new Limit(1 + random.nextInt(5), 1 + random.nextInt(400), 1 + random.nextInt(10), batches);
    }

    /** The tokens of a bucket, in parts of which one comes back in a millisecond. */
    private static final class Level {
        private Limit limit;
        private long parts;
        private long at;
        /** The parts given back so far. */
        private long returned;
        /** The parts since time 0 until the last call that waits may go ahead, where a return has hidden it. */
        private long promised;

        Level(Limit limit) {
            this.limit = limit;
            this.parts = full();
        }

        /** Returns the parts since time 0 until the last call that waits may go ahead. */
        long lastPromise() {
            return Math.max(promised, gain(0, at) - parts);
        }

        long full() {
            return limit.capacity * limit.millis;
        }

        private long gain(long from, long to) {
            return limit.batches ? (to / limit.period() - from / limit.period()) * limit.period() : to - from;
        }

        void pass(long now) {
            parts = Math.min(parts + gain(at, now), full());
            at = now;
        }

        long available() {
            return Math.max(parts, 0) / limit.millis;
        }

        /** Returns the time until the bucket has the tokens. */
        long until(long tokens) {
            long missing = tokens * limit.millis - parts;
            if (missing <= 0) {
                return 0;
            }
            long period = limit.period();
            return limit.batches ? (at / period + (missing + period - 1) / period) * period - at : missing;
        }

        Expected answer(int bucket, long cost, String outcome) {
            long remaining = available();
            long retry = outcome.equals("allowed") || outcome.equals("never-fits") ? 0 : until(cost);
            long next = remaining == limit.capacity ? 0 : until(remaining + 1);
            return new Expected(bucket, cost, outcome, remaining, retry, next, until(limit.capacity), "", "");
        }
    }

    /**
     * A take that can be given back.
     *
     * @param due the parts since time 0 until the call may go ahead
     * @param before what was missing then beside the cost, and the parts given back until the take
     */
    private record Taken(int step, long due, long cost, long before) {}

    private static final class Run {
        private final String kind;
        private final SplittableRandom random;
        private final List<Level> levels;
        private final List<Taken> taken = new ArrayList<>();
        private final List<Step> steps = new ArrayList<>();
        private long now;

        Run(String kind, List<Limit> limits, SplittableRandom random) {
            this.kind = kind;
            this.random = random;
            this.levels = limits.stream().map(Level::new).toList();
        }

        List<Step> steps() {
            while (steps.size() < STEPS) {
                Level first = levels.get(0);
                pass(random.nextInt(3) == 0 ? 0 : random.nextLong(3 * first.limit.millis + 2));
                if (!taken.isEmpty() && random.nextInt(2) == 0) {
                    settle(first, taken.remove(random.nextInt(taken.size())));
                } else if (kind.equals("changes") && random.nextInt(2) == 0 && first.parts < first.full()) {
                    change(first);
                } else {
                    take(1 + random.nextLong(first.limit.capacity + (random.nextInt(6) == 0 ? 2 : 0)));
                }
            }
            return steps;
        }

        private void pass(long millis) {
            now += millis;
            levels.forEach(level -> level.pass(now));
        }

        private void take(long cost) {
            long maxWait = kind.contains("wait") ? random.nextLong(6 * levels.get(0).limit.millis) : 0;
            List<Expected> before = new ArrayList<>();
            boolean all = true;
            for (int i = 0; i < levels.size(); i++) {
                Level level = levels.get(i);
                long price = i == 0 ? cost : 1;
                boolean fits = price <= level.limit.capacity;
                boolean allowed = fits && level.until(price) <= maxWait;
                String outcome = allowed ? "allowed" : !fits ? "never-fits" : maxWait > 0 ? "too-long" : "denied";
                before.add(level.answer(i, price, outcome));
                all &= allowed;
            }
            long wait = all ? levels.get(0).until(cost) : 0;
            List<Expected> after = new ArrayList<>();
            for (int i = 0; i < levels.size(); i++) {
                Level level = levels.get(i);
                Expected answer = before.get(i);
                if (all) {
                    level.parts -= answer.cost * level.limit.millis;
                    answer = level.answer(i, answer.cost, "allowed");
                    if (kind.startsWith("returns") || kind.equals("settlements")) {
                        taken.add(taken(level, cost));
                    }
                }
                long shown = Math.max(answer.retry, answer.next - wait);
                String policy = "\"b%d\";q=%d;w=%d".formatted(i, level.limit.capacity, seconds(level.limit.toFull()));
                String header =
                        "\"b%d\";r=%d%s".formatted(i, answer.remaining, shown > 0 ? ";t=" + seconds(shown) : "");
                after.add(new Expected(
                        i,
                        answer.cost,
                        answer.outcome,
                        answer.remaining,
                        answer.retry,
                        answer.next,
                        answer.reset,
                        policy,
                        header));
            }
            steps.add(new Step(now, "take", maxWait, wait, after, 0, 0, null));
        }

        private Taken taken(Level level, long cost) {
            long due = level.gain(0, now) + Math.max(-level.parts, 0);
            long beside = Math.min(level.full() - level.parts, level.full()) - cost * level.limit.millis;
            return new Taken(steps.size(), due, cost, beside + level.returned);
        }

        private static long seconds(long millis) {
            return (millis + 999) / 1_000;
        }

        /**
         * Time pays first for what was missing before the take, then for the tokens; what it hasn't paid comes back. While
         * calls wait, only what they don't depend on comes back, and they keep their moments.
         */
        private void settle(Level level, Taken take) {
            long most = kind.equals("settlements") ? 2 * take.cost + 1 : kind.equals("returns") ? 1 : take.cost;
            long cost = random.nextLong(most);
            steps.add(new Step(now, "settle", 0, 0, List.of(), take.step, cost, null));
            long unit = level.limit.millis;
            if (cost >= take.cost) {
                level.parts -= (cost - take.cost) * unit;
                return;
            }
            long price = (take.cost - cost) * unit;
            long last = level.lastPromise();
            boolean waits = last > level.gain(0, now);
            long room = waits ? 0 : Math.max(take.before - level.returned, 0);
            long unpaid = take.cost * unit + room - ((waits ? last : level.gain(0, now)) - take.due);
            long back = Math.min(Math.max(Math.min(unpaid, price), 0), level.full() - level.parts);
            if (waits && back > 0 && back < take.cost * unit) {
                level.promised = last;
            }
            level.parts += back;
            level.returned += back;
        }

        /** Changes the limit of a bucket that has whole tokens, and takes one, so that no store rounds. */
        private void change(Level level) {
            long rest = level.parts % level.limit.millis;
            pass(rest == 0 ? 0 : level.limit.millis - rest);
            long tokens = level.available();
            if (tokens == 0 || level.parts >= level.full()) {
                return;
            }
            level.limit = limit(random, false);
            level.parts = Math.min(tokens, level.limit.capacity) * level.limit.millis;
            steps.add(new Step(now, "change", 0, 0, List.of(), 0, 0, level.limit));
            take(1);
        }
    }
}
