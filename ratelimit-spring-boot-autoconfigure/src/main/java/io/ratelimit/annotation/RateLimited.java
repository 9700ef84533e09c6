package io.ratelimit.annotation;

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
 * Limits the calls of a method: by policies of the configuration with {@code applies-to: annotated}, or by a limit that
 * the annotation brings itself. Each call is charged, so a batch that makes a hundred calls pays for a hundred. A refused
 * call is not made: the {@link #fallback} answers, or a {@link RateLimitExceededException} is thrown. The tokens of a
 * call that was made are never given back.
 *
 * <p>It may stand on methods and types of any Spring bean, more than once: a call is made if all of the limits allow it,
 * and if one refuses, none is charged. On a type it limits all methods of the bean, which share the buckets; of a
 * controller only the handler methods, not those for exceptions, models or binding. An annotation on a method replaces
 * the one on its type, and one on a class those on its interfaces. Only calls that come through the bean's proxy are
 * limited, so not those of a bean to itself.
 *
 * <p>All attributes may have <code>${placeholders}</code>. Expressions are SpEL over the arguments: {@code #name}, where
 * classes are compiled with {@code -parameters}, or by position {@code #p0}.
 */
@Target({ElementType.METHOD, ElementType.TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@Documented
@Reflective
@Repeatable(RateLimited.All.class)
public @interface RateLimited {

    /** The names of the policies that limit the calls. */
    @AliasFor("policy")
    String[] value() default {};

    /** The same as {@link #value}, to be written beside other attributes. */
    @AliasFor("value")
    String[] policy() default {};

    /**
     * Whose bucket is charged, in place of the policy's own key: an expression that gives a text or a number, or a list
     * or an array of them, as in {@code #tenant.id} or <code>{#user, #region}</code>. For a call where it gives nothing
     * or fails, the policy's {@code on-missing-key} decides.
     */
    String key() default "";

    /** The tokens of a call, in place of the policy's own cost: a number or an expression. Below 1 counts as 1. */
    String cost() default "";

    /**
     * An expression for the name of the tier that a call belongs to, of a policy that has tiers. Where it gives the name
     * of none, or fails, the policy's own rate holds.
     */
    String tier() default "";

    /**
     * How long a call that is short of tokens may wait in line for them, in place of the policy's own wait: {@code 2s},
     * for example, or {@code 0s} for not at all. A call that is interrupted while it waits throws a
     * {@link RateLimitInterruptedException}.
     */
    String maxWait() default "";

    /**
     * The name of the method that answers in place of a refused call. It is of the same class and has the same
     * parameters, and if it wants to know why, the {@link RateLimitExceededException} as one more at the end. Not on types.
     */
    String fallback() default "";

    /**
     * The name of the limit that the annotation brings; by default made of those of bean and method, as in
     * {@code order-service-place}. Annotations that write out the same name share the limit.
     */
    String name() default "";

    /** The rate of the limit that the annotation brings, in place of a policy: {@code 5/1m}, for example. */
    String rate() default "";

    /** The capacity of the limit that the annotation brings; by default the tokens of the rate. */
    String capacity() default "";

    /** Holds the annotations where there are several. */
    @Target({ElementType.METHOD, ElementType.TYPE})
    @Retention(RetentionPolicy.RUNTIME)
    @Inherited
    @Documented
    @Reflective
    @interface All {

        RateLimited[] value();
    }
}
