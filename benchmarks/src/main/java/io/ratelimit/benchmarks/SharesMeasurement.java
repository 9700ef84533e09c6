package io.ratelimit.benchmarks;

import io.ratelimit.BucketSpec;
import io.ratelimit.GlobalThrottler;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Shares;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * Whom one limit of 20 tenants serves, by the way in which it is shared: one bucket, a bucket for each, a threshold as in
 * AI gateways, and guaranteed shares. Requests come at random, on a clock of its own. Prints for each way and each demand
 * the percentage of the limit that was used, and of the requests of tenants within their share those that were denied.
 */
public final class SharesMeasurement {

    private static final int TENANTS = 20;
    private static final int RATE = 100;
    private static final int CAPACITY = 200;
    private static final int LANE_CAPACITY = 3;
    private static final int SECONDS = 600;
    private static final int WINDOW_SECONDS = 60;
    private static final int SEED = 3;

    private final ManualTimeSource time = new ManualTimeSource();

    /** Decides a request of a tenant. */
    private interface Limiter {
        boolean tryAcquire(int tenant);
    }

    private SharesMeasurement() {}

    public static void main(String[] args) {
        Map<String, double[]> demands = new LinkedHashMap<>();
        demands.put("one tenant alone, 3 × the limit", demand(300, 0));
        demands.put("one asks 5 × the limit, 19 ask 80 % of a share", demand(500, 4));
        demands.put("all ask 2 × their share", demand(10, 10));
        demands.forEach((demand, perSecond) -> {
            for (String way : SharesPicture.WAYS) {
                new SharesMeasurement().run(way, demand, perSecond);
            }
        });
    }

    private static double[] demand(double first, double others) {
        double[] demand = new double[TENANTS];
        Arrays.fill(demand, others);
        demand[0] = first;
        return demand;
    }

    private void run(String way, String demand, double[] perSecond) {
        Limiter limiter = limiter(way);
        SplittableRandom random = new SplittableRandom(SEED);
        double all = Arrays.stream(perSecond).sum();
        long[] asked = new long[TENANTS];
        long[] granted = new long[TENANTS];
        long now = 0;
        while (true) {
            long pause = (long) (-Math.log(1 - random.nextDouble()) / all * 1e9);
            now += pause;
            if (now >= SECONDS * 1_000_000_000L) {
                break;
            }
            time.advance(Duration.ofNanos(pause));
            int tenant = tenant(perSecond, random.nextDouble() * all);
            asked[tenant]++;
            granted[tenant] += limiter.tryAcquire(tenant) ? 1 : 0;
        }
        long within = 0;
        long served = 0;
        for (int tenant = 0; tenant < TENANTS; tenant++) {
            boolean inShare = perSecond[tenant] <= (double) RATE / TENANTS;
            within += inShare ? asked[tenant] : 0;
            served += inShare ? granted[tenant] : 0;
        }
        double possible = Math.min(Arrays.stream(asked).sum(), (double) RATE * SECONDS + CAPACITY);
        System.out.printf(
                "%s, %s\t%.1f\t%.1f%n",
                demand,
                way,
                100 * Arrays.stream(granted).sum() / possible,
                within == 0 ? 0 : 100.0 * (within - served) / within);
    }

    private static int tenant(double[] perSecond, double point) {
        int tenant = 0;
        double sum = perSecond[0];
        while (sum <= point && tenant < TENANTS - 1) {
            sum += perSecond[++tenant];
        }
        return tenant;
    }

    private Limiter limiter(String way) {
        BucketSpec limit = BucketSpec.of(RATE + "/s").withCapacity(CAPACITY);
        BucketSpec share = BucketSpec.of(RATE / TENANTS + "/s").withCapacity(LANE_CAPACITY);
        ThrottlePolicy policy = ThrottlePolicy.of("api", limit);
        return switch (way) {
            case "one bucket" -> {
                GlobalThrottler one = throttlers(policy).global("api");
                yield tenant -> one.tryAcquire(1);
            }
            case "a bucket for each" -> {
                Throttlers each =
                        throttlers(ThrottlePolicy.of("api", share.withCapacity(CAPACITY / TENANTS), "tenant"));
                yield tenant -> each.get("api").forKey("tenant" + tenant).tryAcquire(1);
            }
            case "guaranteed shares" -> {
                Shares shares = Shares.forKeys(share, TENANTS, List.of("tenant"));
                GlobalThrottler shared = throttlers(policy.withShares(shares)).global("api");
                yield tenant -> shared.guaranteedTo("tenant" + tenant).tryAcquire(1);
            }
            default -> new Threshold();
        };
    }

    private Throttlers throttlers(ThrottlePolicy policy) {
        return Throttlers.local(List.of(policy), time);
    }

    /** A window of a minute: while 80 % of it are used, each tenant only has its part of the window. */
    private final class Threshold implements Limiter {

        private final long[] used = new long[TENANTS];
        private long window;
        private long all;

        @Override
        public boolean tryAcquire(int tenant) {
            long current = time.nanoTime() / (WINDOW_SECONDS * 1_000_000_000L);
            if (current != window) {
                window = current;
                all = 0;
                Arrays.fill(used, 0);
            }
            long limit = RATE * WINDOW_SECONDS;
            if (all >= limit || all >= limit * 8 / 10 && used[tenant] >= limit / TENANTS) {
                return false;
            }
            all++;
            used[tenant]++;
            return true;
        }
    }
}
