package io.ratelimit.demand;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import com.sun.management.ThreadMXBean;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Keys;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.demand.Demand.HeavyKey;
import io.ratelimit.demand.Demand.Quantile;
import io.ratelimit.demand.Demand.Suggestion;
import io.ratelimit.demand.Demand.Touched;
import java.lang.management.ManagementFactory;
import java.math.BigDecimal;
import java.math.MathContext;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("slow")
class DemandMeterTests {

    private static final Duration MINUTE = Duration.ofMinutes(1);

    private final BucketSpec spec = BucketSpec.of("10/1m");

    /** A request of one key. */
    private record Request(long nanos, long cost) {}

    /** The largest excess over all pairs of requests, in exact arithmetic. */
    @RepeatedTest(200)
    void neededCapacitiesEqualThoseOfBruteForce(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        BucketSpec spec = randomSpec(random);
        List<Request> requests = randomRequests(random, spec);
        Demand demand = measure(spec, requests);
        for (int i = 0; i < demand.rates().size(); i++) {
            assertThat(demand.needed(i))
                    .as(
                            "seed %d, %s, %s",
                            run.getCurrentRepetition(), spec, demand.rates().get(i))
                    .containsExactly(bruteForce(demand.rates().get(i), spec.refill(), requests));
        }
    }

    private static double bruteForce(Rate rate, Refill refill, List<Request> requests) {
        BigDecimal period = BigDecimal.valueOf(rate.period().toNanos());
        BigDecimal most = BigDecimal.ZERO;
        for (int i = 0; i < requests.size(); i++) {
            long cost = 0;
            for (int j = i; j < requests.size(); j++) {
                cost += requests.get(j).cost;
                long refilled = refill == Refill.GREEDY
                        ? requests.get(j).nanos - requests.get(i).nanos
                        : (periods(rate, requests.get(j)) - periods(rate, requests.get(i)))
                                * rate.period().toNanos();
                BigDecimal tokenNanos = BigDecimal.valueOf(cost)
                        .multiply(period)
                        .subtract(BigDecimal.valueOf(refilled).multiply(BigDecimal.valueOf(rate.tokens())));
                most = most.max(tokenNanos);
            }
        }
        return most.divide(period, MathContext.DECIMAL128).doubleValue();
    }

    private static long periods(Rate rate, Request request) {
        return request.nanos / rate.period().toNanos();
    }

    /** A bucket of the needed capacity denies no request, and a bucket of one token less denies one. */
    @RepeatedTest(200)
    void theNeededCapacityIsTheLeastThatABucketNeeds(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        BucketSpec spec = randomSpec(random);
        List<Request> requests = randomRequests(random, spec);
        Demand demand = measure(spec, requests);
        for (int i = 0; i < demand.rates().size(); i++) {
            long capacity = (long) Math.ceil(demand.needed(i)[0]);
            BucketSpec enough = new BucketSpec(demand.rates().get(i), capacity, spec.refill());
            assertThat(denied(enough, requests))
                    .as("seed %d, %s", run.getCurrentRepetition(), enough)
                    .isZero();
            if (capacity > 1) {
                assertThat(denied(enough.withCapacity(capacity - 1), requests))
                        .as("seed %d, %s less one", run.getCurrentRepetition(), enough)
                        .isPositive();
            }
        }
    }

    @RepeatedTest(50)
    void theShareOfDeniedRequestsIsThatOfABucketUnderThePresentLimit(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        BucketSpec spec = randomSpec(random);
        List<Request> requests = randomRequests(random, spec);
        Touched touched = measure(spec, requests).touched();
        long denied = denied(spec, requests);
        assertThat(touched.keys()).as("seed %d", run.getCurrentRepetition()).isEqualTo(denied > 0 ? 1 : 0);
        assertThat(touched.requests())
                .as("seed %d", run.getCurrentRepetition())
                .isEqualTo((double) denied / requests.size());
    }

    /** Requests over the capacity if none is denied are at least as many as a bucket denies. */
    @RepeatedTest(50)
    void theShareOfRequestsOfAnotherLimitIsNotBelowWhatItsBucketDenies(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        BucketSpec spec = randomSpec(random);
        List<Request> requests = randomRequests(random, spec);
        Demand demand = measure(spec, requests);
        for (int i = 0; i < demand.rates().size(); i++) {
            long capacity = 1L << random.nextInt(6);
            BucketSpec other = new BucketSpec(demand.rates().get(i), capacity, spec.refill());
            long denied = denied(other, requests);
            assertThat(demand.touched(i, capacity).requests())
                    .as("seed %d, %s", run.getCurrentRepetition(), other)
                    .isBetween((double) denied / requests.size(), denied == 0 ? 0.0 : 1.0);
        }
    }

    private static BucketSpec randomSpec(SplittableRandom random) {
        String[] rates = {"10/1m", "600/1m", "8/1m", "7/3s", "5/100ms", "1/1h", "100/1s"};
        Rate rate = Rate.of(rates[random.nextInt(rates.length)]);
        return new BucketSpec(rate, random.nextInt(1, 40), random.nextBoolean() ? Refill.GREEDY : Refill.INTERVAL);
    }

    /** Returns bursts and pauses of about the time in which the rate brings a token. */
    private static List<Request> randomRequests(SplittableRandom random, BucketSpec spec) {
        long tokenNanos = spec.rate().period().toNanos() / spec.rate().tokens();
        List<Request> requests = new ArrayList<>();
        long nanos = random.nextLong(spec.rate().period().toNanos());
        for (int i = 0; i < 60; i++) {
            nanos += random.nextInt(3) == 0 ? random.nextLong(10 * tokenNanos) : random.nextLong(tokenNanos / 2);
            requests.add(new Request(nanos, random.nextInt(4) == 0 ? random.nextInt(1, 9) : 1));
        }
        return requests;
    }

    private static Demand measure(BucketSpec spec, List<Request> requests) {
        DemandMeter meter = new DemandMeter(spec);
        requests.forEach(request -> meter.feed("key", request.cost, request.nanos));
        return meter.demand();
    }

    private static long denied(BucketSpec spec, List<Request> requests) {
        ManualTimeSource time = new ManualTimeSource();
        Throttlers throttlers = Throttlers.local(List.of(ThrottlePolicy.of("policy", spec)), time);
        return requests.stream()
                .filter(request -> {
                    time.advance(Duration.ofNanos(request.nanos - time.nanoTime()));
                    return !throttlers.global("policy").decide(request.cost).allowed();
                })
                .count();
    }

    @Test
    void theDemandOfACalendarQuotaIsMeasuredAsIfItsTokensCameOneByOne() {
        BucketSpec quota = BucketSpec.of("100/month").withRefill(Refill.CALENDAR);
        assertThat(new DemandMeter(quota).demand().spec()).isEqualTo(quota.withRefill(Refill.GREEDY));
    }

    @Test
    void theRatesAreThePoliciesOwnTimesPowersOfTwo() {
        assertThat(rates("600/1m"))
                .containsExactly(
                        "75/2m", "75/1m", "150/1m", "300/1m", "600/1m", "1200/1m", "2400/1m", "4800/1m", "9600/1m");
        assertThat(rates("1/1d"))
                .containsExactly("1/16d", "1/8d", "1/4d", "1/2d", "1/1d", "2/1d", "4/1d", "8/1d", "16/1d");
    }

    @Test
    void aRateThatCannotBeConfiguredIsLeftOut() {
        assertThat(rates("1/365d")).startsWith("1/365d").hasSize(5);
        assertThat(rates("10000000000/1s")).endsWith("10000000000/1s").hasSize(5);
        assertThat(new DemandMeter(BucketSpec.of("1/365d")).demand().ownRate()).isZero();
    }

    private static List<String> rates(String rate) {
        return new DemandMeter(BucketSpec.of(rate))
                .demand().rates().stream().map(Rate::toString).toList();
    }

    @Test
    void aClockStepBackCountsAsNoTime() {
        DemandMeter meter = new DemandMeter(spec);
        for (long second : new long[] {100, 40, 100, 0}) {
            meter.feed("key", 1, Duration.ofSeconds(second).toNanos());
        }
        assertThat(meter.demand().needed(4)).containsExactly(4);
    }

    @Test
    void aClockMayStartBelowZero() {
        DemandMeter meter = new DemandMeter(spec.withRefill(Refill.INTERVAL));
        meter.feed("key", 7, -Duration.ofSeconds(90).toNanos());
        meter.feed("key", 9, -Duration.ofSeconds(30).toNanos());
        assertThat(meter.demand().needed(4)).containsExactly(9);
    }

    @Test
    void withoutRequestsThereIsNothingToSuggest() {
        Demand demand = new DemandMeter(spec).demand();
        assertThat(demand.suggest(0, MINUTE)).isNull();
        assertThat(demand.quantile(4, 0.5).capacity()).isZero();
        assertThat(demand.touched()).isEqualTo(new Touched(0, 0, 0));
    }

    /** Keys 1 to 100 send a burst of as many requests. */
    @Test
    void quantilesAndTouchedKeysAreThoseOfTheSample() {
        Demand demand = bursts(100).demand();
        assertThat(demand.quantile(4, 0.5).capacity()).isEqualTo(50);
        assertThat(demand.quantile(4, 0.99).capacity()).isEqualTo(99);
        assertThat(demand.quantile(4, 1)).isEqualTo(new Quantile(1, 100, 100, Double.POSITIVE_INFINITY));
        assertThat(demand.touched(4, 90).keys()).isEqualTo(10);
        assertThat(demand.touched(4, 90).share()).isEqualTo(0.1);
        assertThat(demand.keys()).isEqualTo(100);
        assertThat(demand.requests()).isEqualTo(5050);
        assertThat(demand.heaviest()).isEmpty();
    }

    private DemandMeter bursts(int keys) {
        DemandMeter meter = new DemandMeter(spec);
        for (int key = 1; key <= keys; key++) {
            for (int i = 0; i < key; i++) {
                meter.feed("key" + key, 1, 0);
            }
        }
        return meter;
    }

    /** The bounds for 10 of 100 are those of a table of Clopper and Pearson's interval. */
    @Test
    void sharesHaveTheErrorThatTheSampleImplies() {
        Demand demand = bursts(100).demand();
        assertThat(demand.touched(4, 90).atLeast()).isCloseTo(0.0490, within(0.0001));
        assertThat(demand.touched(4, 90).atMost()).isCloseTo(0.1762, within(0.0001));
        assertThat(demand.touched(4, 100).atMost()).isCloseTo(3.0 / 100, within(0.001));
        assertThat(demand.touched(4, 100).atLeast()).isZero();
        assertThat(demand.touched(4, 0).atLeast()).isCloseTo(1 - 3.0 / 100, within(0.001));
        assertThat(demand.touched(4, 0).atMost()).isEqualTo(1);
        Quantile median = demand.quantile(4, 0.5);
        assertThat(median.atLeast()).isEqualTo(40);
        assertThat(median.atMost()).isEqualTo(61);
        assertThat(demand.quantile(4, 0.99).atMost()).isInfinite();
    }

    @Test
    void theTightestLimitAllowsTheFewestTokensWithinATime() {
        DemandMeter meter = new DemandMeter(spec);
        for (int second = 0; second < 600; second += 3) {
            meter.feed("poller", 1, Duration.ofSeconds(second).toNanos());
        }
        assertThat(meter.demand().suggest(0, Duration.ofSeconds(1)).spec())
                .isEqualTo(new BucketSpec(Rate.of("20/1m"), 1, Refill.GREEDY));
        meter.feed("poller", 1, Duration.ofHours(6).toNanos());
        Suggestion overAnHour = meter.demand().suggest(0, Duration.ofHours(1));
        assertThat(overAnHour.spec()).isEqualTo(new BucketSpec(Rate.of("5/8m"), 194, Refill.GREEDY));
        assertThat(overAnHour.outermost()).isTrue();
        assertThat(overAnHour.touched().keys()).isZero();
    }

    /** At 10/1m a poller with 20 requests a minute needs 101 tokens, which take ten minutes and six seconds. */
    @Test
    void aLimitThatTakesLongerToFullThanTheMeasuredTimeIsNotSuggested() {
        DemandMeter meter = new DemandMeter(spec);
        for (int second = 0; second < 600; second += 3) {
            meter.feed("poller", 1, Duration.ofSeconds(second).toNanos());
        }
        Demand atTheEnd = meter.demand();
        assertThat(atTheEnd.measured()).isEqualTo(Duration.ofSeconds(597));
        assertThat(atTheEnd.suggest(0, Duration.ofHours(1)).spec())
                .isEqualTo(new BucketSpec(Rate.of("20/1m"), 1, Refill.GREEDY));
        meter.feed("other", 1, Duration.ofSeconds(606).toNanos());
        assertThat(meter.demand().suggest(0, Duration.ofHours(1)).spec())
                .isEqualTo(new BucketSpec(Rate.of("10/1m"), 101, Refill.GREEDY));
        assertThat(bursts(1).demand().suggest(0, MINUTE)).isNull();
    }

    @Test
    void theMeasuredTimeIsThatOfTheRequestsThatAreKept() {
        DemandMeter meter = new DemandMeter(spec);
        long hour = Duration.ofHours(1).toNanos();
        for (int i = 1; i <= 3 * 168; i++) {
            meter.feed("key", 1, i * hour - 1);
            meter.endHour(i * hour);
            int kept = i % 168 + (i < 168 ? 0 : 168); // this week and the week before
            assertThat(meter.demand().measured()).as("hour %d", i).isEqualTo(Duration.ofHours(kept - 1));
            assertThat(meter.demand().requests()).isEqualTo(kept);
        }
    }

    /** The bound of a limit is that of its bin, which has all deficits from 9 to 11. */
    @Test
    void aLooserLimitDeniesAtMostWhatThePresentOneDenies() {
        Demand demand = burst(1, 1);
        assertThat(demand.touched().requests()).isEqualTo(2.0 / 12);
        assertThat(demand.touched(4, 11).requests()).isEqualTo(demand.touched().requests());
        assertThat(demand.touched(5, 10).requests()).isEqualTo(demand.touched().requests());
        assertThat(demand.touched(5, 9).requests())
                .isGreaterThan(demand.touched().requests());
        assertThat(demand.touched(3, 11).requests())
                .isGreaterThan(demand.touched().requests());
    }

    /** A bucket that grants one expensive request may deny many cheap ones. */
    @Test
    void theBoundOfALooserLimitIsKeptWhereCostsDiffer() {
        Demand demand = burst(1, 2);
        assertThat(demand.touched(4, 11).requests())
                .isGreaterThan(demand.touched().requests());
    }

    /** Twelve requests at once; the last has a cost of its own. */
    private Demand burst(long cost, long lastCost) {
        DemandMeter meter = new DemandMeter(spec);
        for (int i = 0; i < 11; i++) {
            meter.feed("key", cost, 0);
        }
        meter.feed("key", lastCost, 0);
        return meter.demand();
    }

    @ParameterizedTest
    @ValueSource(strings = {"60%", "0.6", "-1", "some", "NaN", "", "%"})
    void aShareHasBounds(String touch) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Demand.parseTouch(touch))
                .withMessage("touch must be a share from 0% to 50%, such as 0.1% or 0.001");
    }

    @ParameterizedTest
    @ValueSource(strings = {"5", "1ms", "31d", "-1", "-1m", "0", "", "100000000000000d", "P9999999999D"})
    void aTimeHasBounds(String within) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Demand.parseWithin(within))
                .withMessage("within must be a time from 1s to 30d, such as 1m");
    }

    @Test
    void sharesAndTimesAreReadAsPeopleWriteThem() {
        assertThat(Demand.parseTouch("5%")).isEqualTo(Demand.parseTouch("0.05")).isEqualTo(0.05);
        assertThat(Demand.parseTouch(null)).isEqualTo(0.001);
        assertThat(Demand.parseWithin("90s")).isEqualTo(Duration.ofSeconds(90));
        assertThat(Demand.parseWithin(null)).isEqualTo(MINUTE);
    }

    @Test
    void aSampleHasASizeAndTheNumberOfKeysIsEstimated() {
        DemandMeter meter = new DemandMeter(spec);
        for (int i = 0; i < 100_000; i++) {
            meter.feed("key" + i % 50_000, 1, 0);
        }
        Demand demand = meter.demand();
        assertThat(demand.sample()).isEqualTo(DemandMeter.DEFAULT_SAMPLE);
        double fiveSigma = 5 / Math.sqrt(DemandMeter.DEFAULT_SAMPLE);
        assertThat((double) demand.keys()).isCloseTo(50_000, within(50_000 * fiveSigma));
        assertThat(demand.requests()).isCloseTo(100_000, within(100_000 * fiveSigma));
    }

    /** Each key of the sample has all its requests, whatever the order. */
    @RepeatedTest(20)
    void aKeyOfTheSampleIsFollowedFromItsFirstRequest(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        DemandMeter meter = new DemandMeter(spec, 50);
        int[] keys = IntStream.range(0, 5_000)
                .flatMap(key -> IntStream.generate(() -> key).limit(3))
                .toArray();
        for (int i = keys.length - 1; i > 0; i--) {
            int other = random.nextInt(i + 1);
            int key = keys[i];
            keys[i] = keys[other];
            keys[other] = key;
        }
        Arrays.stream(keys).forEach(key -> meter.feed("key" + key, 1, 0));
        assertThat(meter.demand().needed(4))
                .as("seed %d", run.getCurrentRepetition())
                .hasSize(50)
                .containsOnly(3);
    }

    @Test
    void theHeaviestKeyIsFollowedThoughTheSampleMissesIt() {
        DemandMeter meter = new DemandMeter(spec, 50);
        for (int i = 0; i < 200_000; i++) {
            meter.feed("key" + i, 1, i);
            if (i % 2 == 0) {
                meter.feed("scraper".repeat(20), 1, i);
            }
        }
        Demand demand = meter.demand();
        HeavyKey heaviest = demand.heaviest().get(0);
        assertThat(heaviest.key()).startsWith("scraperscraper").hasSizeLessThan(100);
        assertThat((double) heaviest.requests()).isBetween(50_000.0, 120_000.0);
        assertThat(demand.quantile(4, 1).capacity()).isGreaterThan(98_000);
        assertThat(demand.touched().requests()).isCloseTo(1.0 / 3, within(0.15));
        assertThat(demand.quantile(4, 0.99).capacity()).isEqualTo(1);
    }

    /** The least of some runs counts, because the first requests are interpreted. */
    @Test
    void keysThatTakeTurnsInBeingFrequentCauseFewSearches() {
        int requests = 1_000_000;

        assertThat(LongStream.generate(() -> bytesOfTurns(requests)).limit(10).anyMatch(bytes -> bytes < requests))
                .isTrue();
    }

    /**
     * Returns the bytes allocated by requests of 1,000 keys, of which 40 at a time send 1,000 requests each. The hash
     * allocates nothing.
     */
    private long bytesOfTurns(int requests) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        DemandMeter meter = new DemandMeter(spec, 50, key -> key.hashCode() * 0x9E3779B97F4A7C15L);
        String[] keys = IntStream.range(0, 1_000).mapToObj(key -> "key" + key).toArray(String[]::new);
        Arrays.stream(keys).forEach(key -> meter.feed(key, 1, 0));
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < requests; i++) {
            meter.feed(keys[i / 40_000 * 40 + i % 40], 1, 0);
        }
        return threads.getCurrentThreadAllocatedBytes() - before;
    }

    /** The hashes of the heavy keys end with the same bits, and are too large for the sample. */
    @Test
    void heavyKeysWithSimilarHashesAreFollowedApart() {
        DemandMeter meter = new DemandMeter(
                spec,
                50,
                key -> key.startsWith("heavy") ? -1 - (Long.parseLong(key.substring(5)) << 20) : Keys.hash(key));
        for (int i = 0; i < 20_000; i++) {
            meter.feed("key" + i % 200, 1, 0);
            meter.feed("heavy" + i % 10, 1, 0);
        }
        assertThat(meter.demand().heaviest())
                .filteredOn(heavy -> heavy.key().startsWith("heavy"))
                .hasSize(10);
        for (int key = 0; key < 10; key++) {
            double before = capacity(meter, "heavy" + key);
            for (int n = 0; n < 5_000 + key; n++) {
                meter.feed("heavy" + key, 1, hours(1_000));
            }
            assertThat(capacity(meter, "heavy" + key)).isEqualTo(Math.max(before, 5_000 + key));
        }
    }

    private static double capacity(DemandMeter meter, String key) {
        return meter.demand().heaviest().stream()
                .filter(heavy -> heavy.key().equals(key))
                .findFirst()
                .orElseThrow()
                .capacity();
    }

    @Test
    void theLastWeekIsKeptByTheHour() {
        DemandMeter meter = new DemandMeter(spec);
        long hour = Duration.ofHours(1).toNanos();
        for (int i = 0; i < 200; i++) {
            for (int n = 0; n < (i == 100 ? 50 : 3); n++) {
                meter.feed("key", 1, i * hour);
            }
            meter.endHour((i + 1) * hour);
        }
        Demand demand = meter.demand();
        assertThat(demand.hours()).hasSize(168).first().isEqualTo(new Demand.Hour(1, 3, 3));
        assertThat(demand.hours().get(99)).isEqualTo(new Demand.Hour(1, 50, 50));
        assertThat(demand.needed(4)).containsExactly(50);
    }

    /** The peak of 50 tokens is in the given hour of the first week. All other hours need three tokens. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 100, 166, 167})
    void aPeakIsKeptForAtLeastOneWeekAndAtMostTwo(int peakHour) {
        DemandMeter meter = new DemandMeter(spec);
        for (int i = 0; i < 4 * 168; i++) {
            for (int n = 0; n < (i == peakHour ? 50 : 3); n++) {
                meter.feed("key", 1, hours(i));
            }
            meter.endHour(hours(i + 1));
            int age = i - peakHour;
            if (age >= 0 && age < 168) {
                assertThat(meter.demand().needed(4)).as("after %d hours", age).containsExactly(50);
                assertThat(meter.demand().touched().requests()).isPositive();
            } else if (age > 2 * 168) {
                assertThat(meter.demand().needed(4)).as("after %d hours", age).containsExactly(3);
                assertThat(meter.demand().touched().requests()).isZero();
                assertThat(meter.demand().requests()).isBetween(168.0 * 3, 2 * 168.0 * 3);
            }
        }
    }

    /** No measured limit has such a capacity: the guess may be too low by a factor of 16, as for the rates. */
    @ParameterizedTest
    @ValueSource(longs = {161, 1_000_000, 1_000_000_000_000L, Long.MAX_VALUE})
    void aCostThatFitsNoMeasuredLimitIsNoDemand(long cost) {
        DemandMeter meter = new DemandMeter(spec);
        for (int minute = 0; minute < 60; minute++) {
            for (int key = 0; key < 20; key++) {
                meter.feed("key" + key, 1, MINUTE.multipliedBy(minute).toNanos());
            }
        }
        Suggestion before = meter.demand().suggest(0, MINUTE);
        meter.feed("key1", cost, 0);
        meter.feed("other", cost, 0);
        Demand demand = meter.demand();
        assertThat(demand.suggest(0, MINUTE)).isEqualTo(before);
        assertThat(demand.quantile(4, 1).capacity()).isEqualTo(1);
        assertThat(demand.requests()).isEqualTo(60 * 20);
    }

    @Test
    void aCostUpTo16TimesTheCapacityIsDemand() {
        DemandMeter meter = new DemandMeter(spec);
        meter.feed("key", 160, 0);
        assertThat(meter.demand().needed(4)).containsExactly(160);
        assertThat(meter.demand().touched()).isEqualTo(new Touched(1, 1, 1));
    }

    /** Three of the largest possible requests at once would need more than the largest possible capacity. */
    @Test
    void aDeficitIsCutAtTheLargestCapacity() {
        long most = 1_000_000_000_000L;
        DemandMeter meter = new DemandMeter(BucketSpec.of("10000000000/1s").withCapacity(most));
        for (int i = 0; i < 3; i++) {
            meter.feed("key", most, 0);
        }
        meter.feed("key", most + 1, 0);
        Demand demand = meter.demand();
        for (int rate = 0; rate < demand.rates().size(); rate++) {
            assertThat(demand.needed(rate)).containsExactly(most);
        }
        meter.feed("other", 1, hours(1));
        assertThat(meter.demand().suggest(0, MINUTE).spec().capacity()).isEqualTo(most);
        meter.feed("key", 5, hours(1));
        assertThat(meter.demand().hours()).isEmpty();
        meter.endHour(hours(1));
        assertThat(meter.demand().hours()).containsExactly(new Demand.Hour(2, most, most));
    }

    private static long hours(int hours) {
        return Duration.ofHours(hours).toNanos();
    }

    /** A bucket that is refilled once a month gives no reason to forget the key, but the key sent nothing for weeks. */
    @Test
    void aKeyOfALongPeriodIsForgottenWithItsPeaks() {
        DemandMeter meter = new DemandMeter(BucketSpec.of("1000/30d").withRefill(Refill.INTERVAL));
        meter.feed("key", 9, 0);
        for (int i = 1; i <= 2 * 168; i++) {
            meter.endHour(hours(i));
            assertThat(meter.demand().sample()).as("after %d hours", i).isEqualTo(i < 2 * 168 ? 1 : 0);
        }
        assertThat(meter.demand().requests()).isZero();
    }

    @Test
    void costsThatRequestsHadTwoWeeksAgoAreForgotten() {
        DemandMeter meter = new DemandMeter(spec);
        meter.feed("key", 5, 0);
        meter.feed("key", 1, 0);
        for (int i = 1; i <= 2 * 168; i++) {
            meter.endHour(hours(i));
        }
        for (int i = 0; i < 12; i++) {
            meter.feed("key", 1, hours(2 * 168));
        }
        assertThat(meter.demand().touched(4, 11).requests()).isEqualTo(2.0 / 12);
    }

    /** The heaviest key stops after the first week. It isn't in the sample. */
    @Test
    void aHeavyKeyIsKeptForAtLeastOneWeekAndAtMostTwo() {
        DemandMeter meter = new DemandMeter(spec, 50, key -> key.equals("scraper") ? -1 : Keys.hash(key));
        for (int i = 0; i < 4 * 168; i++) {
            for (int n = 0; n < 200; n++) {
                meter.feed("key" + n, 1, hours(i));
            }
            for (int n = 0; n < 2_000 && (i == 0 || i == 160); n++) {
                meter.feed("scraper", 1, hours(i));
            }
            meter.demand();
            meter.endHour(hours(i + 1));
            int age = i - 160;
            if (age >= 0 && age < 168) {
                assertThat(meter.demand().heaviest()).as("after %d hours", age).satisfiesOnlyOnce(heavy -> {
                    assertThat(heavy.key()).isEqualTo("scraper");
                    assertThat(heavy.capacity()).isEqualTo(2_000);
                });
                assertThat(meter.demand().capacity(4, 1)).isEqualTo(2_000);
            } else if (age > 2 * 168) {
                assertThat(meter.demand().heaviest()).as("after %d hours", age).noneMatch(heavy -> heavy.key()
                        .equals("scraper"));
                assertThat(meter.demand().capacity(4, 1)).isLessThan(11);
            }
        }
    }

    @Test
    void aPeakOfAKeyThatStaysHeavyIsKeptForAtMostTwoWeeks() {
        DemandMeter meter = new DemandMeter(spec, 50, key -> key.equals("scraper") ? -1 : Keys.hash(key));
        for (int i = 0; i < 3 * 168; i++) {
            for (int n = 0; n < 200; n++) {
                meter.feed("key" + n, 1, hours(i));
                meter.feed("scraper", i == 160 ? 10 : 1, hours(i));
            }
            meter.demand();
            meter.endHour(hours(i + 1));
        }
        assertThat(meter.demand().heaviest().get(0).key()).isEqualTo("scraper");
        assertThat(meter.demand().heaviest().get(0).capacity()).isEqualTo(200);
        assertThat(meter.demand().capacity(4, 1)).isEqualTo(200);
    }

    /** The capacities of a past week are rounded up, but not to more whole tokens than a key needed. */
    @Test
    void peaksOfThePastWeekAreNeverTooLow() {
        BucketSpec spec = BucketSpec.of("10000000/3s").withCapacity(1_000_000_000_000L);
        DemandMeter meter = new DemandMeter(spec);
        DemandMeter exact = new DemandMeter(spec);
        var random = new SplittableRandom(1);
        for (int key = 0; key < 500; key++) {
            long nanos = 0;
            for (int i = 0; i < 4; i++) {
                long cost = random.nextLong(1, 1L << random.nextInt(1, 40));
                nanos += random.nextLong(3_000_000_000L);
                meter.feed("key" + key, cost, nanos);
                exact.feed("key" + key, cost, nanos);
            }
        }
        for (int i = 0; i < 168; i++) {
            meter.endHour(0);
        }
        for (int rate = 0; rate < RateGrid.SIZE; rate++) {
            double[] rounded = meter.demand().needed(rate);
            double[] needed = exact.demand().needed(rate);
            for (int i = 0; i < needed.length; i++) {
                assertThat(rounded[i]).isBetween(needed[i], needed[i] * (1 + 1.0 / 1024));
                if (needed[i] <= 2048) {
                    assertThat(Math.ceil(rounded[i])).isEqualTo(Math.ceil(needed[i]));
                }
            }
        }
    }

    /** A float would have rounded the second one down. */
    @Test
    void theMaximaOfAnHourAreExact() {
        DemandMeter meter = new DemandMeter(BucketSpec.of("1000000000/1s").withCapacity(1_000_000_000_000L));
        for (long cost : new long[] {(1 << 24) - 1, (1 << 24) + 1, 123_456_789_013L}) {
            meter.feed("key", cost, 0);
            meter.endHour(Duration.ofHours(1).toNanos());
        }
        assertThat(meter.demand().hours())
                .extracting(Demand.Hour::max)
                .containsExactly(123_456_789_013L + (1 << 25), 1L << 25, (1L << 24) - 1);
        IntStream.rangeClosed(1, 200).forEach(key -> meter.feed("key" + key, key, 0));
        meter.endHour(Duration.ofHours(1).toNanos());
        assertThat(meter.demand().hours().get(0)).isEqualTo(new Demand.Hour(200, 198, 200));
    }

    @Test
    void aKeyThatSentNothingForAWeekIsForgotten() {
        DemandMeter meter = new DemandMeter(spec);
        meter.feed("key", 9, 0);
        meter.feed("other", 1, Duration.ofDays(7).toNanos());
        meter.endHour(Duration.ofDays(7).toNanos());
        assertThat(meter.demand().sample()).isEqualTo(2);
        meter.endHour(Duration.ofDays(8).toNanos());
        assertThat(meter.demand().sample()).isOne();
    }

    @Test
    void afterAFloodOfKeysTheSampleFillsAgain() {
        DemandMeter meter = new DemandMeter(spec, 50);
        IntStream.range(0, 100_000).forEach(i -> meter.feed("flood" + i, 1, 0));
        for (int hour = 168; hour < 200; hour++) {
            long nanos = Duration.ofHours(hour).toNanos();
            IntStream.range(0, 1_000).forEach(i -> meter.feed("user" + i, 1, nanos));
            meter.endHour(nanos);
        }
        assertThat(meter.demand().sample()).isBetween(20, 50);
        assertThat((double) meter.demand().keys()).isBetween(500.0, 2_000.0);
    }
}
