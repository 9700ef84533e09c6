package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;

/** Calls of shares in two threads answer as if they had come one after another, also those that are denied without the lock. */
@Tag("slow")
class SharesRaceTests {

    private static final int CALLS = 3;
    private static final int RACES = 50;
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of(
                    "api", BucketSpec.of("1/1h").withCapacity(5))
            .withShares(Shares.forKeys(BucketSpec.of("1/2h").withCapacity(2), 2, List.of("user")));

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
}
