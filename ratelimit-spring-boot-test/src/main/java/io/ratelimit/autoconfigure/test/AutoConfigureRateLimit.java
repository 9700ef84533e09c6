package io.ratelimit.autoconfigure.test;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.TimeSource;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.test.context.TestExecutionListeners;
import org.springframework.test.context.TestExecutionListeners.MergeMode;
import org.springframework.test.context.TestPropertySource;

/**
 * Enables limits in a test class, with {@code @SpringBootTest} or with a slice such as {@code @WebMvcTest}.
 *
 * <ul>
 *   <li>{@code ratelimit.mode} is {@code enforce}, also if the properties of the tests contain {@code off}.
 *   <li>The time is a bean of type {@link ManualTimeSource}, unless the application has a {@link TimeSource}.
 *   <li>Before each test method all buckets are full that calls through this context have taken from. Overflow
 *       buckets, which keys beyond {@code max-keys} share, stay as they are.
 *   <li>In a slice the policies of {@code application.yml} are enforced; without this annotation a slice has no limits.
 * </ul>
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@ImportAutoConfiguration
@TestPropertySource(properties = "ratelimit.mode=enforce")
@TestExecutionListeners(listeners = UsedBuckets.Reset.class, mergeMode = MergeMode.MERGE_WITH_DEFAULTS)
public @interface AutoConfigureRateLimit {}
