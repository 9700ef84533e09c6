package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.LeasingBucketStore.Grant;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.Specs;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.GatheredTakes.Takes;
import io.ratelimit.redis.RedisBucketStore.Timing;
import io.ratelimit.redis.RedisScript.ScriptReply;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;

/**
 * Random takes and leases in shared calls, whose short paths are held against the long path of the script: reply by reply,
 * value by value, expiry by expiry. Each call on the long path has one more bucket, so that no short path may decide it.
 */
@Tag("slow")
class SharedCallsAgreementTests {

    private static final RedisCommands<byte[], byte[]> REDIS =
            TestRedis.shared().connection().sync();
    private static final ThrottlePolicy LARGE = ThrottlePolicy.of("large", BucketSpec.of("1000000/365d"), "user");

    private final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);
    private final RedisKeys sharedKeys = TestRedis.keys();
    private final RedisKeys longKeys = TestRedis.keys();
    private final ScriptCalls shared = calls(sharedKeys);
    private final ScriptCalls alone = calls(longKeys);
    private final List<List<Answer>> taken = new ArrayList<>();
    private int decided;

    private ScriptCalls calls(RedisKeys keys) {
        return new ScriptCalls(
                new RedisScript(TestRedis.shared().connection()::async, TimeSource.system()), keys, micros::get);
    }

    private record Call(List<Charge> charges, List<LeaseRequest> leases) implements Takes {

        /** Returns the same call, with requests that have no results yet. */
        Call again() {
            return new Call(
                    charges,
                    leases.stream()
                            .map(lease -> new LeaseRequest(lease.charge(), lease.maxTokens()))
                            .toList());
        }

        Call onLongPath() {
            List<Charge> longer = new ArrayList<>(charges);
            longer.add(Charge.of(LARGE, "nobody", 1));
            return new Call(longer, leases);
        }
    }

    @RepeatedTest(60)
    void sharedCallsTakeWhatTheLongPathTakes(RepetitionInfo run) {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        List<ThrottlePolicy> policies = Stream.of("first", "second")
                .map(name -> policy(name, Specs.randomSpec(random), random))
                .toList();
        for (int i = 0; i < 60; i++) {
            String step = "seed %d, step %d, %s".formatted(run.getCurrentRepetition(), i, policies);
            if (random.nextInt(2) == 0) {
                pass(policies.get(random.nextInt(2)), random);
            }
            if (random.nextInt(6) == 0 && !taken.isEmpty()) {
                giveBack(random);
            } else {
                make(calls(policies, random), step);
            }
            assertSameValues(policies, step);
        }
        assertThat(decided).as("takes that a shared call decided").isGreaterThan(10);
    }

    private static ThrottlePolicy policy(String name, BucketSpec spec, SplittableRandom random) {
        long most = Math.min(spec.timeToFull().toNanos(), 60_000_000_000L);
        return ThrottlePolicy.of(name, spec, "user").withLease(Duration.ofNanos(1 + random.nextLong(most)));
    }

    private void pass(ThrottlePolicy policy, SplittableRandom random) {
        long lease = policy.lease().toNanos() / 1_000;
        long full = Math.min(policy.spec().timeToFull().toNanos() / 1_000, 86_400_000_000L);
        micros.addAndGet(Specs.upTo((random.nextInt(4) == 0 ? full : lease) + 1, random));
    }

    private static List<Call> calls(List<ThrottlePolicy> policies, SplittableRandom random) {
        return Stream.generate(() -> call(policies, random))
                .limit(2 + random.nextInt(4))
                .toList();
    }

    private static Call call(List<ThrottlePolicy> policies, SplittableRandom random) {
        List<Charge> charges = new ArrayList<>();
        List<LeaseRequest> leases = new ArrayList<>();
        for (int i = random.nextInt(3) == 0 ? 2 : 1; i > 0; i--) {
            ThrottlePolicy policy = policies.get(random.nextInt(2));
            long cost = random.nextBoolean() ? 1 : Specs.upTo(policy.spec().capacity(), random) + random.nextInt(2);
            Charge charge = Charge.of(policy, "user" + random.nextInt(2), cost);
            charges.add(charge);
            if (random.nextInt(3) == 0) {
                leases.add(new LeaseRequest(charge, Specs.upTo(policy.spec().capacity(), random)));
            }
        }
        return new Call(charges, leases);
    }

    /** Makes the calls in both ways. Those that the shared call leaves out are made after all others. */
    private void make(List<Call> calls, String step) {
        ScriptReply reply = GatheredTakes.startEach(shared, calls).join();
        List<Call> left = new ArrayList<>();
        int bucket = 0;
        for (Call call : calls) {
            int count = call.charges.size();
            if (reply.has(bucket)) {
                decided++;
                assertSame(call, reply.part(bucket, count), step);
            } else {
                left.add(call);
            }
            bucket += count;
        }
        for (Call call : left) {
            assertSame(
                    call,
                    shared.startTake(call.charges, call.leases, Timing.AT_ONCE).join(),
                    step);
        }
    }

    private void assertSame(Call call, ScriptReply reply, String step) {
        Call again = call.again();
        Call longer = again.onLongPath();
        List<Answer> answers = shared.taken(call.charges, call.leases, Timing.AT_ONCE, reply);
        ScriptReply longReply =
                alone.startTake(longer.charges, longer.leases, Timing.AT_ONCE).join();
        List<Answer> expected = alone.taken(longer.charges, longer.leases, Timing.AT_ONCE, longReply);
        assertThat(answers).as(step).isEqualTo(expected.subList(0, answers.size()));
        if (answers.stream().allMatch(Answer::allowed)) {
            taken.add(answers);
        }
        for (int i = 0; i < call.leases.size(); i++) {
            assertSame(call.leases.get(i).grant(), again.leases.get(i).grant(), step);
        }
    }

    private static void assertSame(Grant grant, Grant expected, String step) {
        assertThat(grant == null).as(step).isEqualTo(expected == null);
        if (grant != null) {
            assertThat(grant.tokens()).as(step).isEqualTo(expected.tokens());
            assertThat(grant.bucket()).as(step).isEqualTo(expected.bucket());
            assertThat(grant.micros()).as(step).isEqualTo(expected.micros());
            assertThat(grant.receipts().apply(1))
                    .as(step)
                    .isEqualTo(expected.receipts().apply(1));
        }
    }

    private void giveBack(SplittableRandom random) {
        List<Answer> back = taken.remove(random.nextInt(taken.size()));
        shared.startGivingBack(back).join();
        alone.startGivingBack(back).join();
    }

    /** A kept expiry may be later on the clock of the test, which passes hours at once. */
    private void assertSameValues(List<ThrottlePolicy> policies, String step) {
        for (ThrottlePolicy policy : policies) {
            for (String user : List.of("user0", "user1")) {
                Charge charge = Charge.of(policy, user, 1);
                byte[] key = sharedKeys.key(charge);
                byte[] longKey = longKeys.key(charge);
                assertThat(REDIS.get(key)).as(step).isEqualTo(REDIS.get(longKey));
                assertThat(REDIS.pttl(key)).as(step).isGreaterThan(REDIS.pttl(longKey) - 30_000);
            }
        }
    }
}
