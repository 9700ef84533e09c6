package io.ratelimit.web.servlet;

import jakarta.servlet.http.HttpServletRequest;
import java.security.Principal;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.security.authentication.AnonymousAuthenticationToken;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.GrantedAuthority;
import org.springframework.util.ClassUtils;

/** The user of a request, as far as authentication goes. Loads no class of Spring Security where that is missing. */
final class UserPrincipal {

    private static final boolean SPRING_SECURITY = ClassUtils.isPresent(
            "org.springframework.security.core.Authentication", UserPrincipal.class.getClassLoader());

    private UserPrincipal() {}

    /** Returns whether the filters in front of this one have authenticated the request. */
    static boolean isAuthenticated(HttpServletRequest request) {
        Principal user = request.getUserPrincipal();
        return user == null ? request.getRemoteUser() != null : !SPRING_SECURITY || SpringSecurity.accepts(user);
    }

    /** Returns the names of the user's authorities, and roles also without their prefix. Empty without Spring Security. */
    static Set<String> authorities(@Nullable Principal user) {
        return SPRING_SECURITY ? SpringSecurity.authorities(user) : Collections.emptySet();
    }

    /** The part that is loaded only where Spring Security is on the class path. */
    static final class SpringSecurity {

        private static final String ROLE = "ROLE_";

        private SpringSecurity() {}

        /** Returns false for the anonymous user, and for credentials that have not been checked yet. */
        static boolean accepts(@Nullable Principal user) {
            return user instanceof Authentication authentication
                    ? authentication.isAuthenticated() && !(user instanceof AnonymousAuthenticationToken)
                    : user != null;
        }

        private static Set<String> authorities(@Nullable Principal user) {
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
