package io.ratelimit.remote;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** A failover store over a store in memory that can fail, with one policy for each rule. */
@ExtendWith(OutputCaptureExtension.class)
abstract class FailoverScenario {

    static final Duration TIMEOUT = Duration.ofMillis(100);
    static final BucketSpec SPEC = BucketSpec.of("10/1s").withCapacity(100);
    static final ThrottlePolicy LOCAL = ThrottlePolicy.of("local", SPEC, "user");
    static final ThrottlePolicy ALLOW = ThrottlePolicy.of("allow", SPEC, "user");
    static final ThrottlePolicy DENY = ThrottlePolicy.of("deny", SPEC, "user");

    final ManualTimeSource time = new ManualTimeSource();
    final FragileStore redis = new FragileStore(time);
    final Deadline deadline = new Deadline(time, TIMEOUT);
    final FailoverBucketStore store = new FailoverBucketStore(
            "Redis",
            redis,
            BucketStore.local(time),
            0.5,
            policy -> FailureRule.valueOf(policy.name().toUpperCase(Locale.ROOT)),
            deadline);
    CapturedOutput output;

    @BeforeEach
    void capture(CapturedOutput output) {
        this.output = output;
    }

    static Charge charge(ThrottlePolicy policy, long cost) {
        return Charge.of(policy, "alice", cost);
    }

    Decision take(ThrottlePolicy policy, long cost) {
        return store.take(List.of(charge(policy, cost)));
    }

    /** Takes tokens one by one until the bucket is empty. */
    int drain(ThrottlePolicy policy) {
        int granted = 0;
        while (take(policy, 1).allowed()) {
            granted++;
        }
        return granted;
    }

    List<String> lines() {
        return output.getOut()
                .lines()
                .filter(line -> line.contains("FailoverBucketStore"))
                .map(line -> line.replaceFirst("^\\S+\\s+(\\S+) .*? : ", "$1 "))
                .toList();
    }

    void breakUntilOpen() {
        redis.breakDown();
        for (int i = 0; i < 5; i++) {
            take(LOCAL, 1);
        }
        redis.calls();
    }
}
