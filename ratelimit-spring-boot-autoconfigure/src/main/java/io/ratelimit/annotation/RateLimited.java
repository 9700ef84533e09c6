package io.ratelimit.annotation;

import io.ratelimit.policy.RateLimitConfigurationException;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.aot.hint.annotation.Reflective;
import org.springframework.core.annotation.AliasFor;

/**
 * Limits the calls of a method of a Spring bean, by policies of the configuration or by an inline limit.
 *
 * <pre>
 * &#064;RateLimited("search")                          // ratelimit.policies.search, with applies-to: annotated
 * Results search(String text) { … }
 *
 * &#064;RateLimited(policy = "export", key = "#tenant.id", cost = "#rows / 100", fallback = "queued")
 * &#064;RateLimited(rate = "5/1m", capacity = "10")    // an inline limit
 * &#064;RateLimited(inFlight = "2")                      // two calls at the same time
 * Export export(Tenant tenant, int rows) { … }
 * </pre>
 *
 * <p>Each call is charged: a batch of a hundred calls takes a hundred times the cost. A denied call is not made. The
 * {@link #fallback} answers in its place; without one, a {@link RateLimitExceededException} is thrown. If that exception
 * leaves a web request, the request is rejected as the filter rejects requests. The tokens of a call that was made are
 * never returned, unless the annotation has a {@link #settle}.
 *
 * <p><b>Where to put it.</b> On methods and types of any Spring bean, also several times, and as a meta-annotation. A call
 * with several limits is made only if all of them allow it. If one of them denies the call, no limit is charged.
 * On a type the annotation limits all methods of the bean, which share the buckets. On a controller it limits the handler
 * methods only, not methods for exceptions, models or data binding. An annotation on a method replaces the annotations
 * on its type; an annotation on a class replaces those on its interfaces. {@link RateLimitExempt} on a method frees the
 * method of the annotations on its type. Only calls through the bean's proxy are
 * limited: calls of a bean to its own methods are not.
 *
 * <p><b>Texts.</b> All attributes may contain <code>${placeholders}</code>. Expressions are SpEL over the arguments. An
 * argument is {@code #name}, if classes are compiled with {@code -parameters}, or by its position {@code #p0}. A bean is
 * {@code @name}.
 *
 * <p><b>Mistakes</b> stop the start of the application with a {@link RateLimitConfigurationException}. Examples are an
 * unknown policy, an expression that can't be parsed, and a method that no proxy can override.
 */
@Target({ElementType.METHOD, ElementType.TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@Documented
@Reflective(RateLimitedOperation.Fallback.Hints.class)
@Repeatable(RateLimited.All.class)
public @interface RateLimited {

    /**
     * The names of the policies that limit the calls, as in {@code @RateLimited("search")}. The default is none, for an
     * annotation with a {@link #rate}.
     *
     * <p>An unknown policy stops the start, and so does a policy without {@code applies-to: annotated}. An annotation
     * needs either policies or an inline limit, a rate or {@link #inFlight}, and can't have both.
     */
    @AliasFor("policy")
    String[] value() default {};

    /** An alias of {@link #value}, for use beside other attributes: {@code policy = "search", cost = "5"}. */
    @AliasFor("value")
    String[] policy() default {};

    /**
     * An expression for the key of the call, in place of the policy's own key: {@code #tenant.id} or
     * <code>{#user, #region}</code>. Each key has its own bucket. The default is the policy's own key. An inline limit
     * without a key has one bucket for all calls.
     *
     * <p>The value is a text, a number, an enum constant, a boolean, a UUID or a {@code Principal}; or a list or an array
     * of them. Other objects don't count as keys. If the value is null, blank or not a key, or the expression fails, the
     * policy's {@code on-missing-key} applies. An inline limit uses {@code client-ip}.
     *
     * <p>An expression that can't be parsed or that uses an unknown parameter stops the start.
     */
    String key() default "";

    /**
     * The tokens of a call, in place of the policy's own cost: a number such as {@code 5} or an expression such as
     * {@code #rows / 100}. The default is the policy's cost, and 1 for an inline limit.
     *
     * <p>Fractions are rounded up. A missing value and a number below 1 count as 1. An expression that fails and a value
     * that isn't a number count as the policy's {@code max-cost}, or as 1 if the policy has none. A call that costs more
     * than the capacity is always denied. A constant cost above the capacity stops the start, also above that of a tier or
     * an override that calls may have. The cost of a limit without a rate stops the start too.
     */
    String cost() default "";

    /**
     * An expression for the calls that are limited: {@code #rows > 100}. A call for which it is false is made without a
     * charge. The default is none: all calls are limited.
     *
     * <p>If the value is null or not a boolean, or the expression fails, the call is limited. A constant other than true
     * and false stops the start, and so does an expression that can't be parsed or that uses an unknown parameter.
     */
    String condition() default "";

    /**
     * An expression for the actual cost of a call, which is known when the call returns: {@code #result.usage.totalTokens}.
     * {@code #result} is what the method returned; the arguments have their names. The default is none: the cost is final.
     *
     * <p>The {@link #cost} is then an estimate, which is taken before the call. If the actual cost is lower, the rest comes
     * back; if it is higher, the difference is taken even if the tokens are not there, and the bucket is in debt until time
     * has brought them. Fractions are rounded up, and a cost above the policy's {@code max-cost} counts as that.
     *
     * <p>The result of a {@code CompletionStage} or a {@code Mono} is its value, and the call is settled when that is
     * there. The estimate stands if the call throws an exception, if the value is missing, if it is no number from 0 to
     * 10^12, or if the expression fails. A {@link #fallback} isn't settled: nothing was taken.
     *
     * <p>An expression that can't be parsed or that uses an unknown parameter stops the start, and so does a method that
     * returns nothing, a {@code Future} of another kind, or a stream of several values, and a limit without a rate.
     */
    String settle() default "";

    /**
     * An expression for the name of the policy's tier that the call belongs to, as in {@code #customer.plan}. The default
     * is the policy's own {@code tier}.
     *
     * <p>If the value is the name of no tier, or the expression fails, the policy's own rate and capacity apply. A tier
     * stops the start if the annotation has a {@link #rate}, or if the policy has no tiers.
     */
    String tier() default "";

    /**
     * The longest time that a call may wait for its tokens, in place of the policy's {@code max-wait}: for example
     * {@code 2s}, or {@code 0s} for no wait. The default is the policy's {@code max-wait}, and no wait for an inline limit.
     *
     * <p>A call that would have to wait longer is denied at once, and so is a call that finds the queue full. The queue
     * and its {@code queue-limit} are the policy's; the queue of an inline limit holds 20 calls. A call that is
     * interrupted while it waits throws a {@link RateLimitInterruptedException}. A number without a unit, a time above
     * 365 days, and a wait beside the policy's {@code lease} stop the start.
     */
    String maxWait() default "";

    /**
     * The name of the method that answers in place of a denied call. The default is none: the call throws a
     * {@link RateLimitExceededException}.
     *
     * <p>The method belongs to the same class, has the same parameters and returns the same type or a subtype. It may
     * have the exception as one more parameter at the end:
     *
     * <pre>
     * private Export queued(Tenant tenant, int rows, RateLimitExceededException denied) { … }
     * </pre>
     *
     * <p>It is called on the bean itself and is not charged. Exceptions that it throws reach the caller. The start stops
     * if no method fits, if the annotation stands on a type, or if a method is its own fallback.
     */
    String fallback() default "";

    /**
     * The name of the inline limit in logs, headers and meters. The default is made from the names of the bean and the
     * method, as in {@code order-service-place}.
     *
     * <p>Annotations with the same written name share one limit, and must have the same rate, capacity and key. A name
     * without a limit of its own stops the start, and so does a name that another limit or a policy has.
     */
    String name() default "";

    /**
     * The rate of an inline limit, in place of a policy: tokens and period, as in {@code 5/1m} or {@code 10/s}. The
     * default is none, for an annotation that names a policy.
     *
     * <p>A rate that can't be read stops the start.
     */
    String rate() default "";

    /**
     * The capacity of an inline limit, a whole number such as {@code 10}: the most tokens that a bucket holds, and so the
     * largest burst. The default is the tokens of the {@link #rate}.
     *
     * <p>A capacity that isn't a whole number, or that has no rate beside it, stops the start.
     */
    String capacity() default "";

    /**
     * The number of calls of a key that may run at the same time, as an inline limit beside a {@link #rate} or alone: a
     * whole number such as {@code 2}. The default is any number. A policy of the configuration has its own
     * {@code in-flight}.
     *
     * <p>A call runs until the method returns or throws an exception. If it returns a {@code CompletionStage} or a reactive
     * type, the call runs until that is complete, has failed or is cancelled. With buckets in Redis all instances of the
     * application count together; otherwise each one counts its own calls. A number below 1 stops the start, and so does a
     * method that returns another {@code Future}.
     */
    String inFlight() default "";

    /** The container of repeated annotations. */
    @Target({ElementType.METHOD, ElementType.TYPE})
    @Retention(RetentionPolicy.RUNTIME)
    @Inherited
    @Documented
    @Reflective
    @interface All {

        /** The annotations. */
        RateLimited[] value();
    }
}
