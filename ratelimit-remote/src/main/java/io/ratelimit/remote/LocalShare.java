package io.ratelimit.remote;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge.Share;
import io.ratelimit.Rate;
import io.ratelimit.Shares;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The part of capacity and rate that one instance grants by itself; rounding never makes it larger. A part of less than one
 * token, or of less than one in the longest period of a rate, is none. Thread-safe.
 */
final class LocalShare {

    private static final long MICROSECOND = 1_000;
    private static final long MAX_PERIOD = Duration.ofDays(365).toNanos();
    /** A number of tokens for which cutting off a part of one makes no difference. */
    private static final long PRECISE = 10_000;

    private final BigDecimal share;
    private final SpecCache<BucketSpec, Optional<BucketSpec>> shares = new SpecCache<>(this::find);

    /**
     * @throws IllegalArgumentException if the share isn't above 0 and at most 1
     */
    LocalShare(double share) {
        if (!(share > 0 && share <= 1)) {
            throw new IllegalArgumentException("local-share must be above 0 and at most 1, but was " + share);
        }
        this.share = BigDecimal.valueOf(share);
    }

    /** Returns the share of a spec; null if it is none. */
    @Nullable
    BucketSpec scaled(BucketSpec spec) {
        return share.compareTo(BigDecimal.ONE) == 0 ? spec : shares.get(spec).orElse(null);
    }

    /**
     * Returns what a charge may use of the local share of a limit with guaranteed shares. A lane may have no local share, and
     * nothing is then reserved for it.
     */
    @Nullable
    Share scaled(@Nullable Share whole, @Nullable Shares shares) {
        if (whole == null || shares == null) {
            return null;
        }
        BucketSpec lane = whole.guaranteed() == null ? null : scaled(whole.guaranteed());
        long reserve = reserve(shares);
        long leave = whole.leave() == shares.reserve() ? reserve : Math.max(reserve, part(whole.leave()));
        return new Share(whole.key(), lane, leave, whole.lanes());
    }

    private long reserve(Shares shares) {
        long reserve = shares.each() == null ? 0 : shares.keys() * capacity(shares.each());
        for (BucketSpec lane : shares.guaranteed().values()) {
            reserve += capacity(lane);
        }
        return reserve;
    }

    private long capacity(BucketSpec whole) {
        BucketSpec spec = scaled(whole);
        return spec == null ? 0 : spec.capacity();
    }

    /** Returns the share of a number of slots: at least one. */
    int slots(int limit) {
        return share.multiply(BigDecimal.valueOf(limit))
                .setScale(0, RoundingMode.CEILING)
                .intValueExact();
    }

    private Optional<BucketSpec> find(BucketSpec spec) {
        long capacity = part(spec.capacity());
        Rate rate = capacity < 1 ? null : scale(spec);
        return rate == null ? Optional.empty() : Optional.of(scaled(spec, rate, capacity));
    }

    private static BucketSpec scaled(BucketSpec spec, Rate rate, long capacity) {
        try {
            return spec.with(rate, capacity);
        } catch (IllegalArgumentException tooSlow) {
            return spec.with(rate, 1);
        }
    }

    private @Nullable Rate scale(BucketSpec spec) {
        long tokens = part(spec.rate().tokens());
        return switch (spec.refill()) {
            case GREEDY -> scaleStream(spec.rate());
            case INTERVAL -> tokens >= 1 ? new Rate(tokens, spec.rate().period()) : oneToken(spec.rate());
            case CALENDAR -> tokens >= 1 ? new Rate(tokens, spec.rate().period()) : null;
        };
    }

    private long part(long whole) {
        return share.multiply(BigDecimal.valueOf(whole)).longValue();
    }

    /** Returns one token over a longer period; null if that is longer than a rate's may be. */
    private @Nullable Rate oneToken(Rate rate) {
        BigDecimal micros = BigDecimal.valueOf(rate.period().toNanos() / MICROSECOND)
                .divide(share.multiply(BigDecimal.valueOf(rate.tokens())), RoundingMode.CEILING);
        return micros.compareTo(BigDecimal.valueOf(MAX_PERIOD / MICROSECOND)) > 0
                ? null
                : new Rate(1, Duration.ofNanos(micros.longValue() * MICROSECOND));
    }

    /** Returns the exact part, over the shortest period in which it is a whole number of tokens. */
    private @Nullable Rate scaleStream(Rate rate) {
        BigDecimal part = share.multiply(BigDecimal.valueOf(rate.tokens()));
        long times = timesUntilWhole(part);
        return times <= MAX_PERIOD / rate.period().toNanos()
                ? new Rate(
                        part.multiply(BigDecimal.valueOf(times)).longValueExact(),
                        rate.period().multipliedBy(times))
                : scaleRoughly(rate);
    }

    private static long timesUntilWhole(BigDecimal part) {
        BigDecimal shortest = part.stripTrailingZeros();
        BigInteger one = BigInteger.TEN.pow(Math.max(shortest.scale(), 0));
        BigInteger times = shortest.scale() <= 0 ? BigInteger.ONE : one.divide(one.gcd(shortest.unscaledValue()));
        return times.bitLength() < Long.SIZE ? times.longValue() : Long.MAX_VALUE;
    }

    /**
     * Returns nearly the part, over a period with at least {@link #PRECISE} tokens. If a year has fewer tokens, the time for
     * one token is rounded up to a microsecond instead.
     */
    private @Nullable Rate scaleRoughly(Rate rate) {
        long maxTimes = MAX_PERIOD / rate.period().toNanos();
        long wanted = share.multiply(BigDecimal.valueOf(rate.tokens())).compareTo(BigDecimal.ONE) >= 0
                ? PRECISE / part(rate.tokens()) + 1
                : maxTimes;
        long times = Math.min(wanted, maxTimes);
        long tokens = part(rate.tokens() * times);
        return tokens >= PRECISE ? new Rate(tokens, rate.period().multipliedBy(times)) : oneToken(rate);
    }
}
