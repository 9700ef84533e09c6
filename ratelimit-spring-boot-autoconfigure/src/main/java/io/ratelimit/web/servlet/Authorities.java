package io.ratelimit.web.servlet;

import java.security.Principal;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.GrantedAuthority;
import org.springframework.util.ClassUtils;

/** What Spring Security grants a user. Without it nothing, and then none of its classes is touched. */
final class Authorities {

    private static final String ROLE = "ROLE_";
    private static final boolean SPRING_SECURITY = ClassUtils.isPresent(
            "org.springframework.security.core.Authentication", Authorities.class.getClassLoader());

    private Authorities() {}

    /** The authorities by name; those that are roles also without their prefix. */
    static Set<String> of(@Nullable Principal user) {
        return SPRING_SECURITY ? SpringSecurity.authorities(user) : Collections.emptySet();
    }

    /** Loaded only where it can be. */
    private static final class SpringSecurity {

        static Set<String> authorities(@Nullable Principal user) {
            if (!(user instanceof Authentication authentication)) {
                return Collections.emptySet();
            }
            Set<String> names = new LinkedHashSet<>();
            for (GrantedAuthority authority : authentication.getAuthorities()) {
                String name = authority.getAuthority();
                if (name != null) {
                    names.add(name);
                    if (name.startsWith(ROLE)) {
                        names.add(name.substring(ROLE.length()));
                    }
                }
            }
            return Collections.unmodifiableSet(names);
        }
    }
}
