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
 * Holds calls of a method to limits: policies of the configuration with {@code applies-to: annotated}, or a limit of its
 * own. Every call is charged, so a batch that calls a hundred times pays a hundred; a call that is refused is not made
 * and throws a {@link RateLimitExceededException}. What a call that was made has taken is never given back.
 *
 * <p>On methods and types of any Spring bean, several times if need be: then all of the limits allow a call, or none is
 * charged. On a type it holds for all methods of the bean, and they share the buckets; of a controller, not for its exception handlers and the
 * like. On a method it takes the place of
 * what the type says; on a class, of what its interfaces say. Calls that don't come through the bean's proxy, such as
 * those of a bean to itself, are not seen.
 *
 * <p>Texts may have <code>${placeholders}</code>. Expressions are SpEL over the arguments: {@code #name}, where classes are
 * compiled with {@code -parameters}, or {@code #p0}.
 */
@Target({ElementType.METHOD, ElementType.TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@Documented
@Reflective
@Repeatable(RateLimited.All.class)
public @interface RateLimited {

    /** The names of policies. */
    @AliasFor("policy")
    String[] value() default {};

    /** The names of policies. */
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
     * An expression for the tier of the policy that the call belongs to, by its name. What names no tier is held to the
     * policy's own rate.
     */
    String tier() default "";

    /**
     * The method that answers in place of a refused call: of the same class and with the same parameters, and behind
     * them, if wanted, the exception.
     */
    String fallback() default "";

    /** The name of a limit of its own; by default those of bean and method, as in {@code order-service-place}. */
    String name() default "";

    /** The rate of a limit of its own, as in {@code 5/1m}, in place of a policy. */
    String rate() default "";

    /** The capacity of a limit of its own; by default the tokens of the rate. */
    String capacity() default "";

    /** Several of them. */
    @Target({ElementType.METHOD, ElementType.TYPE})
    @Retention(RetentionPolicy.RUNTIME)
    @Inherited
    @Documented
    @Reflective
    @interface All {

        RateLimited[] value();
    }
}
