package io.ratelimit.autoconfigure;

import java.util.List;
import java.util.stream.Stream;

/** The auto-configurations of Spring Security, which is on the class path of these tests. */
public final class WithoutSecurity {

    /** The value for {@code spring.autoconfigure.exclude}. */
    public static final List<String> EXCLUDED = Stream.of(
                    "SecurityAutoConfiguration",
                    "UserDetailsServiceAutoConfiguration",
                    "web.servlet.ServletWebSecurityAutoConfiguration",
                    "web.servlet.SecurityFilterAutoConfiguration",
                    "actuate.web.servlet.ManagementWebSecurityAutoConfiguration")
            .map("org.springframework.boot.security.autoconfigure."::concat)
            .toList();

    private WithoutSecurity() {}
}
