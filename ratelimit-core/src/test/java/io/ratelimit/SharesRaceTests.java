package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import com.github.benmanes.caffeine.cache.Scheduler;
import com.github.benmanes.caffeine.cache.Ticker;
import io.ratelimit.Charge.Share;
import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Calls of shares at once answer as if they had come one after another, also those that are denied without the lock. */
class SharesRaceTests {

    private static final int CALLS = 3;
    private static final int RACES = 50;
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of(
                    "api", BucketSpec.of("1/1h").withCapacity(5))
            .withShares(Shares.forKeys(BucketSpec.of("1/2h").withCapacity(2), 2, List.of("user")));

    @Tag("slow")
    @RepeatedTest(60)
    void eachAnswerIsThatOfAnOrder(RepetitionInfo run) {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        List<List<Charge>> calls = List.of(calls(random), calls(random));
        Set<List<String>> possible = new HashSet<>();
        for (int order = 0; order < 1 << 2 * CALLS; order++) {
            if (Integer.bitCount(order) == CALLS) {
                possible.add(inOrder(calls, order));
            }
        }
        for (int race = 0; race < RACES; race++) {
            assertThat(possible)
                    .as("seed %d, %s", run.getCurrentRepetition(), calls)
                    .contains(atOnce(calls));
        }
    }

    /** Returns calls of one of three tenants, of which two have room for a share, or of none. */
    private static List<Charge> calls(SplittableRandom random) {
        List<Charge> calls = new ArrayList<>();
        for (int i = 0; i < CALLS; i++) {
            Charge charge = Charge.of(POLICY, "", random.nextLong(1, 3));
            int tenant = random.nextInt(4);
            calls.add(tenant == 0 ? charge : charge.guaranteedTo("tenant" + tenant));
        }
        return calls;
    }

    /** @param order a bit for each call: the thread that makes it */
    private static List<String> inOrder(List<List<Charge>> calls, int order) {
        BucketStore store = BucketStore.local(() -> 0);
        String[] answers = new String[2 * CALLS];
        int[] next = {0, 0};
        for (int i = 0; i < 2 * CALLS; i++) {
            int thread = order >> i & 1;
            answers[CALLS * thread + next[thread]] =
                    answer(store, calls.get(thread).get(next[thread]));
            next[thread]++;
        }
        return List.of(answers);
    }

    private static List<String> atOnce(List<List<Charge>> calls) {
        BucketStore store = BucketStore.local(() -> 0);
        String[] answers = new String[2 * CALLS];
        AtomicInteger ready = new AtomicInteger();
        Threads.run(2, thread -> {
            ready.incrementAndGet();
            while (ready.get() < 2) {
                Thread.onSpinWait();
            }
            for (int i = 0; i < CALLS; i++) {
                answers[CALLS * thread + i] = answer(store, calls.get(thread).get(i));
            }
        });
        return List.of(answers);
    }

    private static String answer(BucketStore store, Charge charge) {
        Answer answer = store.take(List.of(charge)).answers().get(0);
        return answer.outcome() + (answer.allowed() && answer.isGuaranteed() ? " by the share" : "");
    }

    /** Otherwise a call between the two would take from a new pool and an old share. */
    @Test
    void noShareTakesBetweenTheResetOfThePoolAndThatOfTheShares() {
        AtomicReference<Lanes> lanes = new AtomicReference<>();
        List<Boolean> locked = new ArrayList<>();
        Ticker ticker = () -> {
            if (lanes.get() != null) {
                locked.add(Thread.holdsLock(lanes.get()));
            }
            return 0;
        };
        PolicyBuckets buckets = new PolicyBuckets(10, SipHash.PROCESS, ticker, Scheduler.disabledScheduler(), () -> 0);
        buckets.bucket(Charge.of(POLICY, "", 1), 0);
        lanes.set(buckets.lanes());
        buckets.reset("");
        lanes.set(null);
        assertThat(locked).isNotEmpty().doesNotContain(false);
    }

    /** Each time that the call has read the clock, others overtake it before it looks at a bucket again. */
    @Test
    void aCallThatOthersOvertakeAnswersAsOneBetweenThem() {
        int overtaken = 0;
        for (int seed = 0; seed < GrantOracle.steps(20_000); seed++) {
            Overtaken history = new Overtaken(seed);
            String answers = history.overtaken();
            Set<String> possible = new HashSet<>();
            for (int place = 0; place <= history.overtook; place++) {
                possible.add(history.inOrder(place));
            }
            assertThat(possible).as("seed %d: %s", seed, history).contains(answers);
            overtaken += history.overtook > 0 ? 1 : 0;
        }
        assertThat(overtaken).isGreaterThan(GrantOracle.steps(20_000) / 4);
    }

    /** An event is a pause in milliseconds, or a call of one of three tenants, or of none, or the return of the last call. */
    private record Event(long pause, int tenant, long cost, boolean waits) {}

    /** A call that others overtake. */
    private static final class Overtaken implements TimeSource {

        private static final ThrottlePolicy POLICY = ThrottlePolicy.of(
                        "api", BucketSpec.of("1/1s").withCapacity(6))
                .withShares(Shares.forKeys(BucketSpec.of("1/2s").withCapacity(2), 2, List.of("user")))
                .withMaxWait(Duration.ofSeconds(3));

        private final List<Event> before;
        private final List<Event> meanwhile;
        /** How many of them run when the call reads the clock first; the others run when it reads it once more. */
        private final int first;

        private final Event call;
        private BucketStore store;
        private Lanes lanes;
        private List<Answer> taken;
        private StringBuilder text;
        private long nanos;
        private int reads;
        private int overtook;

        Overtaken(int seed) {
            SplittableRandom random = new SplittableRandom(seed);
            before = Stream.generate(() -> event(random))
                    .limit(random.nextInt(9))
                    .toList();
            meanwhile = Stream.generate(() -> event(random))
                    .limit(1 + random.nextInt(5))
                    .toList();
            first = random.nextInt(meanwhile.size() + 1);
            call = new Event(0, random.nextInt(4), random.nextLong(1, 3), random.nextInt(4) == 0);
        }

        private static Event event(SplittableRandom random) {
            int kind = random.nextInt(5);
            return kind == 0
                    ? new Event(random.nextLong(1_500), 0, 0, false)
                    : new Event(0, random.nextInt(4), kind == 1 ? 0 : random.nextLong(1, 3), random.nextInt(4) == 0);
        }

        /** Returns the answers and what is left if others overtake the call. */
        String overtaken() {
            begin();
            reads = 1;
            String answer = run(call);
            reads = 0;
            return answer + text + left();
        }

        /** Returns the answers and what is left if the call comes before this one of the events that overtook it. */
        String inOrder(int place) {
            begin();
            meanwhile.subList(0, place).forEach(this::run);
            String answer = run(call);
            meanwhile.subList(place, overtook).forEach(this::run);
            return answer + text + left();
        }

        private void begin() {
            nanos = 0;
            store = BucketStore.local(this);
            taken = new ArrayList<>();
            text = new StringBuilder();
            store.take(List.of(Charge.of(POLICY, "", 1)));
            lanes = ((LocalBucketStore) store).buckets(POLICY).lanes();
            before.forEach(this::run);
        }

        private String run(Event event) {
            nanos += event.pause * 1_000_000;
            if (event.cost == 0) {
                if (event.pause == 0 && !taken.isEmpty()) {
                    store.giveBack(List.of(taken.remove(taken.size() - 1)));
                }
                return "";
            }
            Charge charge = Charge.of(POLICY, "", event.cost);
            List<Charge> charges = List.of(event.tenant == 0 ? charge : charge.guaranteedTo("tenant" + event.tenant));
            Decision decision = event.waits ? store.reserve(charges) : store.take(charges);
            String answer = decision.outcome() + " " + decision.waitNanos() + "; ";
            if (event != call) {
                taken.addAll(decision.taken());
                text.append(answer);
            }
            return answer;
        }

        /** Returns what is left in the pool. A lane may have paid in vain, since by an older clock the pool looks emptier. */
        private String left() {
            return store.snapshot(Charge.of(POLICY, "", 1).withShare(new Share("", null, 0, 2)))
                    .toString();
        }

        @Override
        public long nanoTime() {
            long read = nanos;
            if (reads > 0) {
                int until = reads == 1 ? first : reads == 2 ? meanwhile.size() : overtook;
                int next = reads + 1;
                reads = 0; // the others aren't overtaken
                while (overtook < until && !Thread.holdsLock(lanes)) {
                    run(meanwhile.get(overtook++));
                }
                reads = next;
            }
            return read;
        }

        @Override
        public String toString() {
            return before + ", then " + call + " overtaken by " + meanwhile;
        }
    }
}
