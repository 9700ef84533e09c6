package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.RequestKey.RequestLimit;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The limits that a bean gives to requests. */
class RequestLimitTests {

    private final List<String> failures = new ArrayList<>();

    /** Returns the limit under which a request is charged. */
    private BucketSpec limit(BucketSpec policy, long minCapacity, BucketSpec ofRequest) {
        ThrottleListener listener = new ThrottleListener() {
            @Override
            public void decided(Decision decision) {}

            @Override
            public void eventOccurred(ThrottlePolicy throttled, ThrottleListener.Event event) {
                failures.add(event.toString());
            }
        };
        return RequestLimit.of("bean:plans")
                .withBean(name -> request -> ofRequest, minCapacity)
                .apply(
                        Charge.of(ThrottlePolicy.of("policy", policy, "user"), "alice", 1),
                        FixedFacts.NONE,
                        (name, what, why) -> failures.add(why),
                        listener)
                .spec();
    }

    /** The slots of such a policy would be counted nowhere. */
    @Test
    void callsInFlightAreLimitedOnlyWhereThePolicyLimitsThem() {
        BucketSpec both = BucketSpec.of("9/1h").withInFlight(3);
        assertThat(limit(BucketSpec.of("2/1h"), 1, both)).isEqualTo(BucketSpec.of("2/1h"));
        assertThat(failures)
                .containsExactly("it limits the requests in flight, but the policy has no in-flight", "LIMIT_FAILURE");
        assertThat(limit(BucketSpec.of("2/1h").withInFlight(1), 1, both)).isEqualTo(both);
    }

    @Test
    void theCapacityMayBeTheCostOfARequest() {
        assertThat(limit(BucketSpec.of("20/1h"), 10, BucketSpec.of("10/1h"))).isEqualTo(BucketSpec.of("10/1h"));
        assertThat(failures).isEmpty();
        assertThat(limit(BucketSpec.of("20/1h"), 10, BucketSpec.of("9/1h"))).isEqualTo(BucketSpec.of("20/1h"));
        assertThat(failures).containsExactly("its capacity is below the cost of a request", "LIMIT_FAILURE");
    }

    @Test
    void theCalendarIsThatOfThePolicysZone() {
        BucketSpec policy = BucketSpec.of("2/month").withCalendar(ZoneId.of("Europe/Berlin"));
        BucketSpec inUtc = BucketSpec.of("5/month").withCalendar(ZoneId.of("UTC"));
        assertThat(limit(policy, 1, inUtc))
                .isEqualTo(BucketSpec.of("5/month").withCalendar(ZoneId.of("Europe/Berlin")));
        assertThat(failures).isEmpty();
    }
}
