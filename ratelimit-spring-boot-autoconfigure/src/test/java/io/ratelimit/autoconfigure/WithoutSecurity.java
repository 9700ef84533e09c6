package io.ratelimit.autoconfigure;

import java.util.List;
import java.util.stream.Stream;

/** What an application excludes to run without the Spring Security that is on the class path of these tests. */
public final class WithoutSecurity {

    /** For {@code spring.autoconfigure.exclude}. */
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
