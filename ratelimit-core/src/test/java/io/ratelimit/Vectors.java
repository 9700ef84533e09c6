package io.ratelimit;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Sequences of calls with their exact answers: {@code vectors/ratelimit-vectors.json}. The answers are counted in parts of
 * a token by {@link Level}, which shares no arithmetic with the buckets. All times are whole milliseconds.
 */
final class Vectors {

    private static final int STEPS = 8;
    private static final List<String> KINDS = List.of(
            "greedy",
            "interval",
            "waits",
            "waits in batches",
            "returns",
            "settlements",
            "changes",
            "several",
            "returns while calls wait");

    private static final List<String> CALENDAR_KINDS = List.of(
            "calendar",
            "waits by the calendar",
            "returns by the calendar",
            "settlements by the calendar",
            "changes by the calendar",
            "several calendars",
            "returns while calls wait by the calendar");

    /** The number of sequences without a calendar, which are the first ones. */
    private static final int WITHOUT_CALENDAR = 630;

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

    /** One step. The place is that of the bucket that changes, or of the step that took. A call may have a share. */
    record Step(
            long at,
            String action,
            long maxWait,
            long waitTime,
            List<Expected> answers,
            int place,
            long cost,
            VectorLimit limit,
            @Nullable String share) {

        /** Returns the last moment at which any bucket of the step is full, as far as the answers show it. */
        private long end() {
            return at + answers.stream().mapToLong(Expected::reset).max().orElse(0);
        }

        private String json(long until) {
            String start = "{\"at\":%d,\"do\":\"%s\"".formatted(at, action);
            return start
                    + switch (action) {
                        case "take" ->
                            ",%s\"maxWait\":%d,\"wait\":%d,\"answers\":[%s]}"
                                    .formatted(
                                            share == null ? "" : "\"share\":\"" + share + "\",",
                                            maxWait,
                                            waitTime,
                                            join(answers.stream()
                                                    .map(Expected::json)
                                                    .toList()));
                        case "change" -> ",\"bucket\":%d,\"limit\":%s}".formatted(place, limit.json(until));
                        default -> ",\"step\":%d,\"cost\":%d}".formatted(place, cost);
                    };
        }
    }

    /** @param shares what makes lanes of the limits behind the first one, or null */
    record Sequence(String name, List<VectorLimit> limits, ShareVectors.@Nullable Lanes shares, List<Step> steps) {

        @Nullable
        Instant start() {
            VectorCalendar calendar = limits.get(0).calendar();
            return calendar == null ? null : calendar.start();
        }

        private String json() {
            long until = steps.stream().mapToLong(Step::end).max().orElse(0);
            return "{\"name\":\"%s\",%s%s\"limits\":[%s],\"steps\":[\n  %s]}"
                    .formatted(
                            name,
                            start() == null ? "" : "\"start\":\"" + start() + "\",",
                            shares == null ? "" : "\"shares\":" + shares.json() + ",",
                            join(limits.stream().map(limit -> limit.json(until)).toList()),
                            steps.stream().map(step -> step.json(until)).collect(Collectors.joining(",\n  ")));
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
        return Stream.of(withoutCalendar(), byCalendar(), ShareVectors.all())
                .flatMap(List::stream)
                .toList();
    }

    static List<Sequence> withoutCalendar() {
        return sequences(0, WITHOUT_CALENDAR);
    }

    static List<Sequence> byCalendar() {
        return sequences(WITHOUT_CALENDAR, 720);
    }

    private static List<Sequence> sequences(int from, int to) {
        return IntStream.range(from, to).mapToObj(Vectors::sequence).toList();
    }

    private static Sequence sequence(int seed) {
        SplittableRandom random = new SplittableRandom(seed);
        List<VectorLimit> limits = new ArrayList<>();
        String kind = KINDS.get(seed % KINDS.size());
        if (seed >= WITHOUT_CALENDAR) {
            kind = CALENDAR_KINDS.get(seed % CALENDAR_KINDS.size());
            VectorCalendar calendar = VectorCalendar.random(random);
            for (int i = 0; i < count(kind); i++) {
                limits.add(new VectorLimit(
                        1 + random.nextInt(5), 1, 1 + random.nextInt(10), true, calendar.withUnit(random)));
            }
        } else {
            boolean batches = kind.contains("interval")
                    || kind.contains("batches")
                    || kind.startsWith("returns") && seed % 2 == 0;
            for (int i = 0; i < count(kind); i++) {
                limits.add(limit(random, batches));
            }
        }
        return new Sequence(kind + " " + seed, limits, null, new Run(kind, limits, random).steps());
    }

    private static int count(String kind) {
        return kind.startsWith("several") ? 3 : 1;
    }

    private static VectorLimit limit(SplittableRandom random, boolean batches) {
        return new VectorLimit(1 + random.nextInt(5), 1 + random.nextInt(400), 1 + random.nextInt(10), batches, null);
    }

    /** @param policy the number of the policy */
    static Expected withHeaders(Expected answer, Level level, int policy, long wait) {
        long shown = Math.max(answer.retry, answer.next - wait);
        return new Expected(
                answer.bucket,
                answer.cost,
                answer.outcome,
                answer.remaining,
                answer.retry,
                answer.next,
                answer.reset,
                "\"b%d\";q=%d;w=%d".formatted(policy, level.limit.capacity(), seconds(level.limit.toFull())),
                "\"b%d\";r=%d%s".formatted(policy, answer.remaining, shown > 0 ? ";t=" + seconds(shown) : ""));
    }

    private static long seconds(long millis) {
        return (millis + 999) / 1_000;
    }

    /** The tokens of a bucket, in parts of which one comes back in a millisecond. */
    static final class Level {
        VectorLimit limit;
        long parts;
        long at;
        /** The parts given back so far. */
        private long returned;
        /** The parts since time 0 until the last call that waits may go ahead, where a return has hidden it. */
        private long promised;

        Level(VectorLimit limit) {
            this.limit = limit;
            this.parts = full();
        }

        /** Returns the parts since time 0 until the last call that waits may go ahead. */
        long lastPromise() {
            return Math.max(promised, gain(0, at) - parts);
        }

        long full() {
            return limit.capacity() * limit.parts();
        }

        long gain(long from, long to) {
            return limit.batches() ? (limit.number(to) - limit.number(from)) * limit.period() : to - from;
        }

        void pass(long now) {
            parts = Math.min(parts + gain(at, now), full());
            at = now;
        }

        long available() {
            return Math.max(parts, 0) / limit.parts();
        }

        /** Returns the time until the bucket has the tokens. */
        long until(long tokens) {
            long missing = tokens * limit.parts() - parts;
            if (missing <= 0) {
                return 0;
            }
            long period = limit.period();
            return limit.batches() ? limit.begin(limit.number(at) + (missing + period - 1) / period) - at : missing;
        }

        /** @param leave the tokens that a call has to leave */
        Expected answer(int bucket, long cost, String outcome, long leave) {
            long remaining = Math.max(available() - leave, 0);
            long retry = outcome.equals("allowed") || outcome.equals("never-fits") ? 0 : until(cost + leave);
            long next = remaining == limit.capacity() - leave ? 0 : until(remaining + 1 + leave);
            return new Expected(bucket, cost, outcome, remaining, retry, next, until(limit.capacity()), "", "");
        }

        /** Returns a take that has just been made. */
        Taken taken(int step, long cost) {
            long due = gain(0, at) + Math.max(-parts, 0);
            long beside = Math.min(full() - parts, full()) - cost * limit.parts();
            return new Taken(step, due, cost, beside + returned);
        }

        /**
         * Time pays first for what was missing before the take, then for the tokens; what it hasn't paid comes back. While
         * calls wait, only what they don't depend on comes back, and they keep their moments. Returns the parts that come back.
         */
        long settle(Taken take, long cost) {
            long unit = limit.parts();
            if (cost >= take.cost) {
                parts -= (cost - take.cost) * unit;
                return 0;
            }
            long price = (take.cost - cost) * unit;
            long last = lastPromise();
            boolean waits = last > gain(0, at);
            long room = waits ? 0 : Math.max(take.before - returned, 0);
            long unpaid = take.cost * unit + room - ((waits ? last : gain(0, at)) - take.due);
            long back = Math.min(Math.max(Math.min(unpaid, price), 0), full() - parts);
            if (waits && back > 0 && back < take.cost * unit) {
                promised = last;
            }
            parts += back;
            returned += back;
            return back;
        }
    }

    /**
     * A take that can be given back.
     *
     * @param due the parts since time 0 until the call may go ahead
     * @param before what was missing then beside the cost, and the parts given back until the take
     */
    record Taken(int step, long due, long cost, long before) {}

    private static final class Run {
        private final String kind;
        private final SplittableRandom random;
        private final List<Level> levels;
        private final List<Taken> taken = new ArrayList<>();
        private final List<Step> steps = new ArrayList<>();
        private long now;

        Run(String kind, List<VectorLimit> limits, SplittableRandom random) {
            this.kind = kind;
            this.random = random;
            this.levels = limits.stream().map(Level::new).toList();
        }

        List<Step> steps() {
            while (steps.size() < STEPS) {
                Level first = levels.get(0);
                pass(random.nextInt(3) == 0 ? 0 : random.nextLong(3 * first.limit.pace() + 2));
                if (!taken.isEmpty() && random.nextInt(2) == 0) {
                    settle(first, taken.remove(random.nextInt(taken.size())));
                } else if (kind.startsWith("changes") && random.nextInt(2) == 0 && first.parts < first.full()) {
                    change(first);
                } else {
                    take(1 + random.nextLong(first.limit.capacity() + (random.nextInt(6) == 0 ? 2 : 0)));
                }
            }
            return steps;
        }

        private void pass(long millis) {
            now += millis;
            levels.forEach(level -> level.pass(now));
        }

        private void take(long cost) {
            long maxWait = kind.contains("wait")
                    ? random.nextLong(6 * levels.get(0).limit.pace())
                    : 0;
            List<Expected> before = new ArrayList<>();
            boolean all = true;
            for (int i = 0; i < levels.size(); i++) {
                Level level = levels.get(i);
                long price = i == 0 ? cost : 1;
                boolean fits = price <= level.limit.capacity();
                boolean allowed = fits && level.until(price) <= maxWait;
                String outcome = allowed ? "allowed" : !fits ? "never-fits" : maxWait > 0 ? "too-long" : "denied";
                before.add(level.answer(i, price, outcome, 0));
                all &= allowed;
            }
            long wait = all ? levels.get(0).until(cost) : 0;
            List<Expected> after = new ArrayList<>();
            for (int i = 0; i < levels.size(); i++) {
                Level level = levels.get(i);
                Expected answer = before.get(i);
                if (all) {
                    level.parts -= answer.cost * level.limit.parts();
                    answer = level.answer(i, answer.cost, "allowed", 0);
                    if (kind.startsWith("returns") || kind.startsWith("settlements")) {
                        taken.add(level.taken(steps.size(), cost));
                    }
                }
                after.add(withHeaders(answer, level, i, wait));
            }
            steps.add(new Step(now, "take", maxWait, wait, after, 0, 0, null, null));
        }

        private void settle(Level level, Taken take) {
            long most = kind.startsWith("settlements") ? 2 * take.cost + 1 : kind.equals("returns") ? 1 : take.cost;
            long cost = random.nextLong(most);
            steps.add(new Step(now, "settle", 0, 0, List.of(), take.step, cost, null, null));
            level.settle(take, cost);
        }

        /**
         * Changes the limit of a bucket that has whole tokens, and takes one, so that no store rounds. Of a calendar, only the
         * capacity changes: another number of tokens would keep a part of the period's.
         */
        private void change(Level level) {
            long rest = level.parts % level.limit.parts();
            pass(rest == 0 ? 0 : level.limit.parts() - rest);
            long tokens = level.available();
            if (tokens == 0 || level.parts >= level.full()) {
                return;
            }
            level.limit = level.limit.calendar() == null
                    ? limit(random, false)
                    : level.limit.withCapacity(1 + random.nextInt(10));
            level.parts = Math.min(tokens, level.limit.capacity()) * level.limit.parts();
            steps.add(new Step(now, "change", 0, 0, List.of(), 0, 0, level.limit, null));
            take(1);
        }
    }
}
