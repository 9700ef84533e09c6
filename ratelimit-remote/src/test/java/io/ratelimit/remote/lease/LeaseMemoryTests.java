package io.ratelimit.remote.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.ChildProcess;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A flood of keys with leases in a separate process with little memory. */
@Tag("slow")
class LeaseMemoryTests {

    @Test
    void leasesOfManyLongKeysFitIn96Megabytes() throws IOException, InterruptedException {
        assertThat(ChildProcess.output("-Xmx96m", Flood.class)).contains("leased something: true");
    }

    /** Takes from each key until it has a lease. */
    static final class Flood {

        private static final int KEYS = 200_000;

        public static void main(String[] args) {
            ManualTimeSource time = new ManualTimeSource();
            ThrottlePolicy policy =
                    ThrottlePolicy.of("api", BucketSpec.of("1000/1s"), "user").withLease(Duration.ofMillis(50));
            Leases leases = new Leases(time, new Granting(), Runnable::run, request -> {}, Runnable::run);
            for (int i = 0; i < KEYS; i++) {
                Charge charge = Charge.of(policy, "k".repeat(1_000) + i, 1);
                for (int j = 0; j < 5; j++) {
                    leases.take(List.of(charge), leases::takeFromStore);
                }
            }
            System.out.println("leased something: " + (leases.tokens(policy) > 0));
        }
    }

    /** A store without limits that keeps nothing. */
    static final class Granting implements LeasingBucketStore {

        private static BucketSnapshot bucket(Charge charge) {
            BucketSpec spec = charge.spec();
            return new BucketSnapshot(spec.capacity(), spec.rate(), spec.capacity(), Duration.ZERO, Duration.ZERO);
        }

        private static void grant(LeaseRequest lease) {
            Charge charge = lease.charge();
            lease.grant(new Grant(lease.maxTokens(), bucket(charge), 0, cost -> charge));
        }

        @Override
        public Decision take(List<Charge> charges) {
            return Decision.of(charges.stream().map(Answer::allowed).toList());
        }

        @Override
        public Decision take(List<Charge> charges, List<LeaseRequest> leases) {
            leases.forEach(Granting::grant);
            return take(charges);
        }

        @Override
        public BucketSnapshot lease(LeaseRequest lease) {
            grant(lease);
            return bucket(lease.charge());
        }

        @Override
        public Decision reserve(List<Charge> charges) {
            return take(charges);
        }

        @Override
        public void giveBack(List<Answer> taken) {}

        @Override
        public BucketSnapshot snapshot(Charge charge) {
            return bucket(charge);
        }

        @Override
        public void reset(Charge charge) {}
    }
}
