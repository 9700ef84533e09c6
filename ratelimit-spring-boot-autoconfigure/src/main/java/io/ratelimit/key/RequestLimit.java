package io.ratelimit.key;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The source of a request's own rate and capacity: a bean. Thread-safe. */
public final class RequestLimit {

    private static final String BEAN = "bean:";
    private static final String FACT = "its limit, so the policy's own applied";

    private final String bean;
    private final LimitResolver resolver;
    private final long minCapacity;

    private RequestLimit(String bean, LimitResolver resolver, long minCapacity) {
        this.bean = bean;
        this.resolver = resolver;
        this.minCapacity = minCapacity;
    }

    /**
     * Parses {@code bean:NAME}. The source fails until it {@linkplain #withBean has its bean}.
     *
     * @throws IllegalArgumentException if the text is of another form
     */
    public static RequestLimit of(String text) {
        String name = text.startsWith(BEAN) ? text.substring(BEAN.length()) : "";
        if (name.isBlank()) {
            throw new IllegalArgumentException("'" + text + "' can't give a limit: write 'bean:NAME' with the name of a"
                    + " bean of the type io.ratelimit.key.LimitResolver");
        }
        return new RequestLimit(
                name,
                request -> {
                    throw new IllegalStateException("'" + text + "' has not been resolved");
                },
                1);
    }

    /**
     * Returns this source with its bean.
     *
     * @param minCapacity the least cost of the policy; a limit with a smaller capacity counts as failed
     */
    public RequestLimit withBean(Function<String, LimitResolver> beans, long minCapacity) {
        return new RequestLimit(bean, beans.apply(bean), minCapacity);
    }

    /** Returns the limit of a request; null if the policy's applies. */
    @Nullable
    BucketSpec spec(RequestFacts request, ThrottlePolicy policy, FailureListener failures, ThrottleListener listener) {
        try {
            BucketSpec spec = resolver.limit(request);
            if (spec == null) {
                return null;
            }
            if (spec.inFlight() > 0 && policy.spec().inFlight() == 0) {
                throw new IllegalArgumentException("it limits the requests in flight, but the policy has no in-flight");
            }
            if (spec.capacity() >= minCapacity) {
                return underRefillOf(policy.spec(), spec.orElse(policy.spec()));
            }
            failures.failed(policy.name(), FACT, "its capacity is below the cost of a request");
        } catch (Exception | LinkageError | AssertionError | StackOverflowError failure) {
            failures.failed(policy.name(), FACT, failure);
        }
        listener.eventOccurred(policy, ThrottleListener.Event.LIMIT_FAILURE);
        return null;
    }

    private static BucketSpec underRefillOf(BucketSpec policy, BucketSpec spec) {
        if (policy.refill() == Refill.CALENDAR
                && !policy.rate().period().equals(spec.rate().period())) {
            throw new IllegalArgumentException("the period of a calendar is the policy's");
        }
        if (spec.refill() == policy.refill() && spec.zone().equals(policy.zone())) {
            return spec;
        }
        BucketSpec refilled = policy.with(spec.rate(), spec.capacity());
        return spec.inFlight() == 0 ? refilled : refilled.withInFlight(spec.inFlight());
    }

    @Override
    public String toString() {
        return BEAN + bean;
    }
}
