package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.demand.DemandListener;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

@ExtendWith(OutputCaptureExtension.class)
class ShadowDemandLogTests {

    private static final BucketSpec SPEC = BucketSpec.of("60/1m");

    private final ManualTimeSource time = new ManualTimeSource();
    private final DemandListener demand = new DemandListener(time);
    private final Throttlers throttlers = new Throttlers(
            List.of(
                    ThrottlePolicy.of("candidate", SPEC, "user")
                            .withMode(Mode.SHADOW)
                            .withTiers(Map.of("pro", SPEC)),
                    ThrottlePolicy.of("site", SPEC).withMode(Mode.SHADOW),
                    ThrottlePolicy.of("quiet", SPEC, "user").withMode(Mode.SHADOW),
                    ThrottlePolicy.of("enforced", SPEC, "user")),
            BucketStore.local(time),
            time,
            demand);
    private final ShadowDemandLog log = new ShadowDemandLog(throttlers, demand, ThrottlePolicy::isGlobal, time);

    @BeforeEach
    void start() {
        log.start();
    }

    /** 1,204 users ask for 13 tokens at once and then for one each two seconds. */
    @Test
    void onceADayALineStatesTheLimitThatTheKeysWouldNeed(CapturedOutput output) {
        for (int user = 0; user < 1_204; user++) {
            throttlers.get("candidate").forKey("user" + user).decide(13);
        }
        for (int i = 0; i < 300; i++) {
            time.advance(Duration.ofSeconds(2));
            for (int user = 0; user < 1_204; user++) {
                throttlers.get("candidate").forKey("user" + user).decide(1);
            }
        }
        time.advance(Duration.ofHours(23));
        assertThat(lines(output)).isEmpty();

        time.advance(Duration.ofHours(1));
        assertThat(lines(output)).hasSize(1).first().asString().containsPattern(" % of about 1,[0-9]{3} users ");
        assertThat(lines(output).get(0))
                .contains("Throttle policy 'candidate' is in shadow mode: 99.9 % of ")
                .endsWith(" users would need 30/1m, capacity 13");
        time.advance(Duration.ofDays(1));
        assertThat(lines(output)).hasSize(2);
    }

    @Test
    void tiersAndTheCallsOfAGlobalPolicyHaveALine(CapturedOutput output) {
        for (int i = 0; i < 2; i++) {
            for (int user = 0; user < 30; user++) {
                throttlers.get("candidate").forKey("user" + user).inTier("pro").decide(1);
            }
            throttlers.get("enforced").forKey("alice").decide(1);
            throttlers.global("site").decide(5);
            time.advance(Duration.ofHours(12));
        }
        assertThat(lines(output))
                .satisfiesExactly(
                        line -> assertThat(line).endsWith("all 30 users in tier 'pro' would need 15/4m, capacity 1"),
                        line -> assertThat(line)
                                .endsWith("'site' is in shadow mode: its calls would need 15/4m, capacity 5"));
    }

    @Test
    void fewKeysOrAFewMinutesSuggestNothing(CapturedOutput output) {
        for (int hour = 0; hour < 24; hour++) {
            for (int user = 0; user < 29; user++) {
                throttlers.get("candidate").forKey("user" + user).decide(1);
            }
            time.advance(Duration.ofHours(1));
        }
        throttlers.global("site").decide(5);
        time.advance(Duration.ofMinutes(9));
        throttlers.global("site").decide(5);
        time.advance(Duration.ofDays(1));
        assertThat(lines(output)).isEmpty();
    }

    @Test
    void aPolicyWhoseAnnotationsGiveKeysNeedsManyOfThem(CapturedOutput output) {
        log.close();
        new ShadowDemandLog(throttlers, demand, policy -> false, time).start();
        for (int i = 0; i < 2; i++) {
            throttlers.global("site").decide(5);
            time.advance(Duration.ofHours(12));
        }
        assertThat(lines(output)).isEmpty();
    }

    @Test
    void aClosedLogWritesNothing(CapturedOutput output) {
        throttlers.global("site").decide(5);
        log.close();
        time.advance(Duration.ofDays(2));
        assertThat(lines(output)).isEmpty();
    }

    private static List<String> lines(CapturedOutput output) {
        return output.getOut()
                .lines()
                .filter(line -> line.contains("would need"))
                .toList();
    }
}
