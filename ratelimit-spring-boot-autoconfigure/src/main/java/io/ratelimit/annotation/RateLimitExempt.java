package io.ratelimit.annotation;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.aot.hint.annotation.Reflective;

/**
 * Frees the requests that a handler method of a controller answers, or all of a controller's, from the policies that
 * limit requests, but not from those with a written {@code phase: before-authentication}.
 *
 * <p>A request is charged before its headers and parameters choose among handlers. So it is free only if every handler
 * that its path and method may lead to is exempt; the start warns where one that isn't stands in the way.
 */
@Target({ElementType.METHOD, ElementType.TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@Documented
@Reflective
public @interface RateLimitExempt {}
