package io.ratelimit.demand;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class DemandListenerTests {

    private static final ThrottlePolicy USER = ThrottlePolicy.of("per-user", BucketSpec.of("2/1m"), "user")
            .withTiers(Map.of("pro", BucketSpec.of("2/1m"), "free", BucketSpec.of("1/1m")));
    private static final ThrottlePolicy GLOBAL = ThrottlePolicy.of("global", BucketSpec.of("3/1m"));
    private static final ThrottlePolicy SHADOW =
            ThrottlePolicy.of("shadow", BucketSpec.of("1/1m"), "user").withMode(Mode.SHADOW);

    private static final ThrottlePolicy BUSY =
            ThrottlePolicy.of("busy", BucketSpec.of("5/1m").withInFlight(1), "user");

    private final ManualTimeSource time = new ManualTimeSource();
    private final DemandListener demand = new DemandListener(time);
    private final Throttlers throttlers =
            new Throttlers(List.of(USER, GLOBAL, SHADOW, BUSY), BucketStore.local(time), time, demand);

    @Test
    void demandContainsWhatWasDenied() {
        ask(5, Charge.of(USER, "alice", 1));
        assertThat(needed("per-user", null)).containsExactly(5);
        ask(4, Charge.of(SHADOW, "alice", 2));
        assertThat(needed("shadow", null)).containsExactly(8);
    }

    @Test
    void tiersAreApartAlsoWithEqualLimits() {
        ask(3, Charge.of(USER, "pro", "alice", 1));
        ask(2, Charge.of(USER, "free", "bob", 1));
        ask(1, Charge.of(USER, "carol", 1));
        assertThat(needed("per-user", "pro")).containsExactly(3);
        assertThat(needed("per-user", "free")).containsExactly(2);
        assertThat(needed("per-user", null)).containsExactly(1);
    }

    @Test
    void aRequestThatAnotherPolicyDeniedIsNoDemand() {
        ask(5, Charge.of(USER, "alice", 1), Charge.of(GLOBAL, "", 1));
        assertThat(needed("global", null)).containsExactly(2);
        assertThat(needed("per-user", null)).containsExactly(5);
    }

    @Test
    void aKeyWithALimitOfItsOwnIsNotCounted() {
        ask(5, new Charge(USER, BucketSpec.of("100/1m"), "vip", 1));
        assertThat(needed("per-user", null)).isEmpty();
    }

    @Test
    void aCallWithoutAKeyIsNotCounted() {
        ask(5, Charge.withoutKey(USER, 1));
        assertThat(needed("per-user", null)).isEmpty();
    }

    /** A flood that waits for one call to end doesn't ask for a higher rate. */
    @Test
    void aCallWithoutASlotIsNotCounted() {
        ask(10, Charge.of(BUSY, "alice", 1));
        assertThat(needed("busy", null)).containsExactly(1);
    }

    @Test
    void aChangedLimitIsMeasuredAnewAndTheOthersGoOn() {
        ask(3, Charge.of(USER, "pro", "alice", 1));
        ask(3, Charge.of(USER, "alice", 1));
        throttlers.get("per-user").reconfigure(BucketSpec.of("7/1m"));
        assertThat(needed("per-user", null)).isEmpty();
        assertThat(needed("per-user", "pro")).containsExactly(3);
        throttlers.get("per-user").forKey("alice").decide(1);
        assertThat(needed("per-user", null)).containsExactly(1);
    }

    @Test
    void anotherLimitOfCallsInFlightChangesNoMeasurement() {
        ask(3, Charge.of(USER, "alice", 1));
        throttlers.get("per-user").reconfigure(USER.spec().withInFlight(8));
        assertThat(needed("per-user", null)).containsExactly(3);
        throttlers.get("per-user").forKey("alice").decide(1);
        assertThat(needed("per-user", null)).containsExactly(4);
    }

    @Test
    void anUnknownPolicyOrTierHasNoDemand() {
        assertThat(demand.demand("nothing", null)).isNull();
        assertThat(demand.demand("per-user", "gold")).isNull();
    }

    /** Otherwise a night without traffic would count as evidence that a low rate suffices. */
    @Test
    void timeAfterTheLastRequestIsNotMeasured() {
        ask(1, Charge.of(USER, "alice", 1));
        time.advance(Duration.ofMinutes(1));
        ask(1, Charge.of(USER, "alice", 1));
        time.advance(Duration.ofHours(8));
        assertThat(demand.demand("per-user", null).measured()).isEqualTo(Duration.ofMinutes(1));
    }

    @Test
    void hoursEndWhileItIsStarted() {
        demand.start();
        ask(3, Charge.of(SHADOW, "alice", 1));
        time.advance(Duration.ofHours(2));
        assertThat(demand.demand("shadow", null).hours())
                .containsExactly(new Demand.Hour(0, 0, 0), new Demand.Hour(1, 3, 3));
        demand.close();
        time.advance(Duration.ofHours(2));
        assertThat(demand.demand("shadow", null).hours()).hasSize(2);
    }

    @Test
    void aPeakIsShownForAtLeastOneWeekAndAtMostTwo() {
        demand.start();
        ask(5, Charge.of(SHADOW, "alice", 1));
        for (int day = 1; day <= 21; day++) {
            time.advance(Duration.ofDays(1));
            ask(1, Charge.of(SHADOW, "alice", 1));
            if (day <= 7) {
                assertThat(needed("shadow", null)).as("day %d", day).containsExactly(5);
            } else if (day > 14) {
                assertThat(needed("shadow", null)).as("day %d", day).containsExactly(1);
            }
        }
    }

    private void ask(int times, Charge... charges) {
        for (int i = 0; i < times; i++) {
            throttlers.decide(List.of(charges));
        }
    }

    private double[] needed(String policy, String tier) {
        Demand measured = demand.demand(policy, tier);
        return measured.needed(measured.ownRate());
    }
}
