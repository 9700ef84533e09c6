package io.ratelimit.demand;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Keys;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Measures the demand of the keys of one policy or tier, in bounded memory: {@link #feed} it each request, and read
 * {@link #demand()}. Thread-safe. A request allocates nothing once its key is followed, or isn't in the sample.
 */
final class DemandMeter {

    /** The number of keys in the default sample, with which a meter takes at most 200 KB. */
    static final int DEFAULT_SAMPLE = 600;

    /*
     * Which keys are followed? All would be exact, but there may be millions. A choice among the requests would prefer
     * the keys that send many. Instead a secret hash orders the keys, and the sample has the keys with the smallest
     * hashes: each distinct key has the same chance. A key outside the sample costs one comparison: a local bucket has
     * its hash.
     *
     * A uniform sample of a million keys misses a single key that sends a third of the requests. The key of one request
     * in 32, chosen at random, is therefore counted, and the most frequent keys are followed too. A request of a
     * frequent key represents itself. A request of another followed key represents as many requests as the key
     * represents keys.
     */
    private static final int THINNING = 32;

    private static final int FREQUENT_SETS = 4;
    private static final int MAX_HEAVIEST = 16;
    private static final int MIN_COUNT = 8;
    private static final int MAX_KEY_LENGTH = 80;
    private static final int HASH_DIGITS = 16;
    private static final int STRIPES = 4;

    private final RateGrid grid;
    private final KeySample sample;
    private final ToLongFunction<String> hash;
    private final RequestTotals[] totals;
    private final HourlyPeaks hours = new HourlyPeaks();
    private int endedHours;
    private volatile FrequentKeys frequent = new FrequentKeys(FREQUENT_SETS);
    private volatile Heaviest heaviest = new Heaviest(List.of());

    /** The maxima, the totals and the counts of the most frequent keys in the week before this one. */
    private PastPeaks pastPeaks;

    private RequestTotals pastTotals;
    private Map<String, Long> pastFrequent = Map.of();

    DemandMeter(BucketSpec spec) {
        this(spec, DEFAULT_SAMPLE);
    }

    /**
     * @param spec the present limit; demand is measured at its rate times 1/16 to 16, and with its refill; that of
     *     a calendar as if its tokens came one by one
     * @param sample the maximum number of keys to follow, in addition to the heaviest
     */
    DemandMeter(BucketSpec spec, int sample) {
        this(spec, sample, Keys::hash);
    }

    /** @param hash the hash of a key, by which the sample is chosen */
    DemandMeter(BucketSpec spec, int sample, ToLongFunction<String> hash) {
        this.hash = hash;
        this.grid = new RateGrid(spec);
        this.sample = new KeySample(sample);
        this.totals = Stream.generate(this::noTotals).limit(STRIPES).toArray(RequestTotals[]::new);
        this.pastPeaks = new PastPeaks(grid, List.of());
        this.pastTotals = noTotals();
    }

    private RequestTotals noTotals() {
        return new RequestTotals(grid.size(), grid.perToken());
    }

    /**
     * Adds a request. Leaves out a request whose cost {@linkplain RateGrid#mayFit fits no measured limit}.
     *
     * @param nanos the time by a clock of the caller's choice; a step back counts as no time. Buckets with interval refill
     *     get their tokens at whole periods of that clock
     */
    void feed(String key, long cost, long nanos) {
        FollowedKey followed = grid.mayFit(cost) ? follow(key, hash(key)) : null;
        if (followed != null) {
            add(followed, cost, nanos);
        }
    }

    void feed(Answer answer, TimeSource time) {
        long cost = answer.charge().cost();
        FollowedKey followed = grid.mayFit(cost) ? follow(answer.charge().key(), positive(answer.keyHash())) : null;
        if (followed != null) {
            add(followed, cost, answer.takenAt(time));
        }
    }

    private void add(FollowedKey followed, long cost, long nanos) {
        followed.add(grid, cost * grid.perToken(), nanos, sample.weight());
    }

    /**
     * Counts the request among those of frequent keys, if the sample hasn't all keys. Returns the key if it is followed,
     * also from now on because it belongs to the sample; otherwise null.
     */
    private @Nullable FollowedKey follow(String key, long hash) {
        if (!sample.isComplete() && (ThreadLocalRandom.current().nextInt() & THINNING - 1) == 0) {
            countFrequent(key, hash);
        }
        if (!sample.covers(hash)) {
            return heaviest.find(hash);
        }
        FollowedKey followed = sample.find(hash);
        return followed != null ? followed : sample.enter(hash, this::create);
    }

    private FollowedKey create(long hash) {
        return new FollowedKey(hash, totals[(int) hash & STRIPES - 1], grid.size());
    }

    private long hash(String key) {
        return positive(hash.applyAsLong(key));
    }

    private static long positive(long hash) {
        return hash >>> 1;
    }

    /**
     * Looks for the most frequent keys again when the count of a key has doubled and may be one of the largest. With a
     * search after each doubling, a client that sends ever new keys could cause a search every few hundred requests.
     */
    private void countFrequent(String key, long hash) {
        long count = frequent.count(bounded(key, hash));
        if (count >= MIN_COUNT && Long.bitCount(count) == 1 && count * THINNING > heaviest.least()) {
            refreshHeaviest();
        }
    }

    /** Returns the key if it is short, and otherwise its beginning with the hash of the whole key. */
    private static String bounded(String key, long hash) {
        return key.length() <= MAX_KEY_LENGTH
                ? key
                : key.substring(0, MAX_KEY_LENGTH - HASH_DIGITS) + "…"
                        + HexFormat.of().toHexDigits(hash);
    }

    private long hashOfBounded(String bounded) {
        int length = bounded.length();
        return length <= MAX_KEY_LENGTH ? hash(bounded) : Long.parseLong(bounded, length - HASH_DIGITS, length, 16);
    }

    /**
     * Follows the keys that are the most frequent at present. A key that stays heavy is so at each moment, and a key outside
     * the sample for ever: a request of it that is under way must not count as many.
     */
    private synchronized void refreshHeaviest() {
        Heaviest before = heaviest;
        Map<String, Long> counts = frequent.counts();
        pastFrequent.forEach((key, count) -> counts.merge(key, count, Long::sum));
        Heaviest after = new Heaviest(mostFrequent(counts)
                .map(count -> heavy(count.getKey(), count.getValue() * THINNING, before))
                .toList());
        after.keys.forEach(heavy -> heavy.followed.setHeavy(true));
        heaviest = after;
        before.keys.stream()
                .map(Heavy::followed)
                .filter(followed -> after.find(followed.hash) != followed && sample.search(followed.hash) == followed)
                .forEach(followed -> followed.setHeavy(false));
    }

    private static Stream<Map.Entry<String, Long>> mostFrequent(Map<String, Long> counts) {
        return counts.entrySet().stream()
                .filter(count -> count.getValue() >= MIN_COUNT)
                .sorted(Map.Entry.<String, Long>comparingByValue().reversed())
                .limit(MAX_HEAVIEST);
    }

    private Heavy heavy(String key, long requests, Heaviest before) {
        long hash = hashOfBounded(key);
        FollowedKey sampled = sample.search(hash);
        FollowedKey followed = sampled != null ? sampled : before.find(hash);
        return new Heavy(key, requests, followed == null ? create(hash) : followed);
    }

    private record Heavy(String key, long requests, FollowedKey followed) {}

    /** The keys that are followed because they are frequent. Immutable. */
    private static final class Heaviest {

        private final List<Heavy> keys;

        /** A hash table with linear probing, at most a quarter full. */
        private final @Nullable FollowedKey[] table = new @Nullable FollowedKey[4 * MAX_HEAVIEST];

        Heaviest(List<Heavy> keys) {
            this.keys = keys;
            keys.forEach(heavy -> table[slot(heavy.followed.hash)] = heavy.followed);
        }

        private int slot(long hash) {
            int slot = (int) hash & table.length - 1;
            for (FollowedKey key = table[slot]; key != null && key.hash != hash; key = table[slot]) {
                slot = slot + 1 & table.length - 1;
            }
            return slot;
        }

        @Nullable
        FollowedKey find(long hash) {
            return table[slot(hash)];
        }

        /** Returns the least requests with which a key is among these; 0 if there is room for more keys. */
        long least() {
            return keys.size() < MAX_HEAVIEST ? 0 : keys.get(MAX_HEAVIEST - 1).requests;
        }
    }

    /**
     * Ends an hour: keeps its maxima for a week, and forgets keys that sent nothing for a week. Each 168th call ends a
     * week. Without calls of this method nothing is forgotten.
     */
    synchronized void endHour(long nanos) {
        endedHours++;
        hours.end(sample.all().stream()
                .mapToDouble(key -> key.endHour() / grid.perToken())
                .filter(peak -> peak > 0));
        if (endedHours % HourlyPeaks.KEPT == 0) {
            endWeek();
        }
        long weekAgo = grid.step(nanos - Duration.ofHours(HourlyPeaks.KEPT).toNanos());
        sample.removeIf(key -> key.lastStep() < weekAgo || needed(key)[0] == 0);
        if (!sample.isComplete()) {
            refreshHeaviest();
        }
    }

    /**
     * Forgets the week before this one. Maxima and counts are therefore kept for one week at least, and two at most. Only
     * a frequent key outside the sample loses its maxima when other keys become more frequent.
     */
    private void endWeek() {
        pastTotals = noTotals();
        Arrays.stream(totals).forEach(stripe -> stripe.moveTo(pastTotals));
        pastPeaks = new PastPeaks(
                grid,
                Stream.concat(sample.all().stream(), heaviest.keys.stream().map(Heavy::followed))
                        .distinct()
                        .toList());
        pastFrequent =
                mostFrequent(frequent.counts()).collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
        frequent = new FrequentKeys(FREQUENT_SETS);
        refreshHeaviest();
    }

    /** Returns the capacity that a key needed at each rate in this week and the week before. */
    private double[] needed(FollowedKey key) {
        double[] needed = key.peaks();
        for (int i = 0; i < needed.length; i++) {
            needed[i] /= grid.perToken();
        }
        pastPeaks.raise(key.hash, needed);
        return needed;
    }

    /** Returns the demand up to the last request. */
    synchronized Demand demand() {
        RequestTotals sum = noTotals();
        sum.add(pastTotals);
        Arrays.stream(totals).forEach(sum::add);
        if (!sample.isComplete()) {
            refreshHeaviest();
        }
        List<FollowedKey> followed = sample.all();
        List<double[]> others = new ArrayList<>();
        List<Demand.HeavyKey> heavyKeys = new ArrayList<>();
        for (Heavy heavy : heaviest.keys) {
            double[] needed = needed(heavy.followed);
            heavyKeys.add(new Demand.HeavyKey(heavy.key, heavy.requests, needed[grid.own()]));
            if (!sample.covers(heavy.followed.hash)) {
                others.add(needed);
            }
        }
        return new Demand(
                grid,
                followed.stream().map(this::needed).toList(),
                others,
                Math.round(followed.size() * sample.weight()),
                sum,
                Duration.ofNanos(sum.nanos()),
                hours.all(),
                heavyKeys);
    }

    /** The capacities that the sampled keys needed at the policy's own rate, for each of the last 168 hours. Thread-safe. */
    private static final class HourlyPeaks {

        /** The hours of a week. */
        static final int KEPT = 168;

        private final Deque<Demand.Hour> hours = new ArrayDeque<>();

        /** Adds an hour. Each capacity is what one key needed in it, in tokens. */
        synchronized void end(DoubleStream capacities) {
            double[] sorted = capacities.sorted().toArray();
            int keys = sorted.length;
            hours.addFirst(
                    keys == 0
                            ? new Demand.Hour(0, 0, 0)
                            : new Demand.Hour(keys, up(sorted[Demand.rank(0.99, keys) - 1]), up(sorted[keys - 1])));
            if (hours.size() > KEPT) {
                hours.removeLast();
            }
        }

        private static long up(double capacity) {
            return (long) Math.ceil(capacity);
        }

        /** Returns the hours, the latest first. */
        synchronized List<Demand.Hour> all() {
            return List.copyOf(hours);
        }
    }
}
