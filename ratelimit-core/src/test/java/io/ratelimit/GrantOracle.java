package io.ratelimit;

import io.ratelimit.BucketSpec.Refill;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The exact count of the tokens that one bucket granted, in whole parts of a token. It shares no arithmetic with the
 * buckets. It checks two things.
 *
 * <ul>
 *   <li>G1: in every window that ends at a grant, the tokens granted less those given back of them are at most the
 *       capacity at the window's start, the refill of the window, and the refill of one clock step. A grant counts at
 *       the moment when it is due. Where calls under several specs meet, the greatest rate, capacity and step count.
 *   <li>If the bucket has one spec: the exact answer of each take.
 * </ul>
 */
public final class GrantOracle {
    /*
     * Windows in constant time. Let excess(B) be the largest, over all windows that end at B, of the tokens granted in
     * the window less what the window allows. The worst window that ends at the next grant either extends the worst one
     * that ends here, or begins at that grant. So excess(next) = max(excess(B) - refill, -capacity) + granted. A return
     * reduces an earlier grant, and a grant may come before others: both count the later moments again.
     */

    private final BigInteger unit;
    private final Map<BucketSpec, Account> specs = new LinkedHashMap<>();
    private final Map<BucketSpec, Long> inForce = new LinkedHashMap<>();
    private final List<Grant> grants = new ArrayList<>();
    private final BigInteger step;
    private BigInteger forgotten = BigInteger.ZERO;
    private BigInteger level;
    private long levelAt;

    /** One spec in the parts of a token. */
    private record Account(BigInteger perNano, BigInteger capacity, long stepNanos) {}

    /** A grant, and the part of it that wasn't given back. */
    public static final class Grant {
        private final long due;
        private final Set<BucketSpec> specs = new HashSet<>();
        private BigInteger perNano = BigInteger.ZERO;
        private BigInteger capacity = BigInteger.ZERO;
        private BigInteger kept;
        private BigInteger forgotten = BigInteger.ZERO;
        private @Nullable BigInteger excess;
        private boolean owed;

        private Grant(long due, BigInteger kept) {
            this.due = due;
            this.kept = kept;
        }

        private void count(BucketSpec spec, Account account) {
            if (specs.add(spec)) {
                perNano = perNano.max(account.perNano);
                capacity = capacity.max(account.capacity);
            }
        }
    }

    /**
     * Returns how many steps a test of this kind makes: the system property {@code ratelimit.test.steps}, or so many.
     */
    public static int steps(int byDefault) {
        return Integer.getInteger("ratelimit.test.steps", byDefault);
    }

    /**
     * Creates the oracle of a full bucket.
     *
     * @param specs all specs that the bucket will have
     * @param ticksPerToken the ticks of a token under each spec, so that parts of a token given back can be counted
     * @param clockStep the nanoseconds of a clock step if tokens come back one by one
     */
    public GrantOracle(Collection<BucketSpec> specs, Collection<Long> ticksPerToken, long clockStep, long now) {
        BigInteger common = BigInteger.ONE;
        for (BucketSpec spec : specs) {
            common = commonMultiple(common, spec.rate().period().toNanos());
        }
        for (long ticks : ticksPerToken) {
            common = commonMultiple(common, ticks);
        }
        this.unit = common;
        BigInteger step = BigInteger.ZERO;
        for (BucketSpec spec : specs) {
            BigInteger capacity = tokens(spec.capacity());
            long period = spec.rate().period().toNanos();
            BigInteger perNano = tokens(spec.rate().tokens()).divide(BigInteger.valueOf(period));
            long stepNanos = spec.refill() == Refill.INTERVAL ? period : clockStep;
            this.specs.put(spec, new Account(perNano, capacity, stepNanos));
            step = step.max(perNano.multiply(BigInteger.valueOf(stepNanos)));
        }
        this.step = step;
        this.level = tokens(specs.iterator().next().capacity());
        this.levelAt = now;
    }

    private static BigInteger commonMultiple(BigInteger one, long other) {
        BigInteger number = BigInteger.valueOf(other);
        return one.divide(one.gcd(number)).multiply(number);
    }

    private BigInteger tokens(long tokens) {
        return unit.multiply(BigInteger.valueOf(tokens));
    }

    /** Counts with this spec from now on, beside those that may still matter. */
    public void use(BucketSpec spec, long now) {
        if (inForce.putIfAbsent(spec, Long.MIN_VALUE) == null) {
            int first = grants.size();
            while (first > 0 && grants.get(first - 1).due > now) {
                grants.get(--first).count(spec, specs.get(spec));
            }
            count(first, "a change of the spec");
        }
    }

    /** Counts with this spec until the given moment, beside those that are used by then: tokens under it are taken ahead. */
    public void hold(BucketSpec spec, long now, long until) {
        use(spec, now);
        inForce.merge(spec, until, Math::max);
    }

    /**
     * Counts that a full bucket was forgotten: under another spec it is full again, and its next batch is a whole one. A bucket
     * that is kept has the tokens and the part of a batch that it had under the first spec.
     *
     * @param clock the moment by the clock of the batches, which come at multiples of the period
     * @return whether the bucket is worth more than one that is kept
     */
    public boolean forgotten(BucketSpec full, BucketSpec next, long clock) {
        BigInteger more = worth(next, clock).subtract(worth(full, clock));
        forgotten = forgotten.add(more.max(BigInteger.ZERO));
        return more.signum() > 0;
    }

    /** Returns the tokens of a full bucket, and the part of its next batch that has been earned. */
    private BigInteger worth(BucketSpec spec, long clock) {
        Account account = specs.get(spec);
        long earned = spec.refill() == Refill.INTERVAL ? Math.floorMod(clock, account.stepNanos) : 0;
        return account.capacity.add(account.perNano.multiply(BigInteger.valueOf(earned)));
    }

    /** Counts tokens that may be granted in addition, by an exception that the documentation states. */
    public void excuse(long tokens) {
        forgotten = forgotten.add(tokens(tokens));
    }

    /** Counts that the clock was set: with interval refill, the next period may begin at once. */
    public void clockSet() {
        forgotten = forgotten.add(step);
    }

    /** Adds a grant under a spec, and checks all windows that contain it. */
    public Grant granted(BucketSpec spec, long cost, long now, long due, String step) {
        use(spec, now);
        Grant grant = new Grant(due, tokens(cost));
        inForce.keySet().forEach(counted -> grant.count(counted, specs.get(counted)));
        inForce.merge(spec, due, Math::max);
        inForce.entrySet().removeIf(other -> !other.getKey().equals(spec) && other.getValue() <= now);
        grant.forgotten = forgotten;
        forgotten = BigInteger.ZERO;
        add(grant, step);
        return grant;
    }

    /**
     * Takes tokens that were owed: they count for later grants, but may be more than their
     * own window allows. While calls wait, only the exact answers count them: the waiting calls keep their promises.
     */
    public void owed(BucketSpec spec, long tokens, long now, String step) {
        pass(specs.get(spec), now);
        level = level.subtract(tokens(tokens));
        if (grants.isEmpty() || grants.get(grants.size() - 1).due <= now) {
            use(spec, now);
            Grant grant = new Grant(now, tokens(tokens));
            inForce.keySet().forEach(counted -> grant.count(counted, specs.get(counted)));
            grant.owed = true;
            add(grant, step);
        }
    }

    private void add(Grant grant, String step) {
        int place = grants.size();
        while (place > 0 && grants.get(place - 1).due > grant.due) {
            place--;
        }
        grants.add(place, grant);
        count(place, step);
    }

    /** Takes from a grant the ticks that were given back of it. */
    public void returned(Grant grant, long ticks, long ticksPerToken, long now, String step) {
        BigInteger back = tokens(ticks).divide(BigInteger.valueOf(ticksPerToken));
        grant.kept = grant.kept.subtract(back);
        if (ticks < 0 || grant.kept.signum() < 0) {
            throw new AssertionError("%s: %d ticks given back, of fewer tokens".formatted(step, ticks));
        }
        level = level.add(back);
        List.copyOf(grant.specs).forEach(spec -> use(spec, now));
        count(grants.lastIndexOf(grant), step);
    }

    private void count(int first, String step) {
        for (int i = first; i < grants.size(); i++) {
            Grant grant = grants.get(i);
            BigInteger excess = grant.capacity.negate();
            if (i > 0) {
                Grant before = grants.get(i - 1);
                BigInteger refill = grant.perNano.multiply(BigInteger.valueOf(grant.due - before.due));
                excess =
                        before.excess.subtract(refill).subtract(grant.forgotten).max(excess);
            }
            excess = excess.add(grant.kept);
            grant.excess = excess;
            if (!grant.owed && excess.compareTo(this.step) > 0) {
                throw new AssertionError("%s: %s tokens too many were granted in the window of %s"
                        .formatted(step, inTokens(excess.subtract(this.step)), window(i)));
            }
        }
    }

    /** Returns the grants of the worst window that ends at a grant. */
    private String window(int last) {
        StringBuilder text = new StringBuilder();
        for (int i = last; i >= 0; i--) {
            Grant grant = grants.get(i);
            text.insert(0, "%s at %d, ".formatted(inTokens(grant.kept), grant.due));
            if (grant.excess.equals(grant.kept.subtract(grant.capacity))) {
                return text.toString();
            }
        }
        return text.toString();
    }

    private double inTokens(BigInteger parts) {
        return parts.doubleValue() / unit.doubleValue();
    }

    /**
     * Returns the exact time until a call of the only spec finds its tokens, and takes them if it comes within the wait.
     *
     * @return the nanoseconds, also if they are more than the wait
     */
    public long take(BucketSpec spec, long cost, long now, long maxWaitNanos) {
        Account account = specs.get(spec);
        long steps = Math.floorDiv(now, account.stepNanos);
        BigInteger perStep = account.perNano.multiply(BigInteger.valueOf(account.stepNanos));
        pass(account, now);
        BigInteger missing = tokens(cost).subtract(level);
        long wait = 0;
        if (missing.signum() > 0) {
            BigInteger stepsToWait =
                    missing.add(perStep).subtract(BigInteger.ONE).divide(perStep);
            wait = (steps + stepsToWait.longValueExact()) * account.stepNanos - now;
        }
        if (wait <= maxWaitNanos) {
            level = level.subtract(tokens(cost));
        }
        return wait;
    }

    private void pass(Account account, long now) {
        BigInteger perStep = account.perNano.multiply(BigInteger.valueOf(account.stepNanos));
        long passed = Math.floorDiv(now, account.stepNanos) - Math.floorDiv(levelAt, account.stepNanos);
        level = level.add(perStep.multiply(BigInteger.valueOf(passed))).min(account.capacity);
        levelAt = now;
    }
}
