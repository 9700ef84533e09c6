package io.ratelimit.annotation;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.aot.hint.annotation.Reflective;

/**
 * Exempts the requests of a handler method of a controller from the policies that limit requests. On a controller, the
 * annotation exempts the requests of all its handler methods. On a method of any bean whose type has {@link RateLimited},
 * the annotation exempts the method's calls from the limits of the type.
 *
 * <pre>
 * &#064;GetMapping("/status")
 * &#064;RateLimitExempt
 * Status status() { … }
 * </pre>
 *
 * <p>Policies with a written {@code phase: before-authentication} still apply, and so does {@link RateLimited} on methods
 * that the handler calls. Both annotations on the same method stop the start.
 *
 * <p>The filter charges a request before the headers and parameters of the request select one of several handlers. A
 * request is therefore exempt only if every handler that its path and method may lead to is exempt. The start logs a
 * warning if a handler without the annotation prevents the exemption.
 */
@Target({ElementType.METHOD, ElementType.TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@Documented
@Reflective
public @interface RateLimitExempt {}
