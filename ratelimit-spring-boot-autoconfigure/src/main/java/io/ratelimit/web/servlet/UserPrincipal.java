package io.ratelimit.web.servlet;

import jakarta.servlet.http.HttpServletRequest;
import java.security.Principal;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.security.authentication.AnonymousAuthenticationToken;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.GrantedAuthority;
import org.springframework.security.oauth2.core.ClaimAccessor;
import org.springframework.security.oauth2.core.OAuth2AuthenticatedPrincipal;
import org.springframework.security.oauth2.server.resource.authentication.AbstractOAuth2TokenAuthenticationToken;
import org.springframework.util.ClassUtils;

/** The user of a request, as far as authentication goes. Loads no class of Spring Security where that is missing. */
final class UserPrincipal {

    private static final boolean SPRING_SECURITY = isPresent("core.Authentication");
    private static final boolean OAUTH2 = SPRING_SECURITY && isPresent("oauth2.core.ClaimAccessor");
    private static final boolean RESOURCE_SERVER =
            OAUTH2 && isPresent("oauth2.server.resource.authentication.AbstractOAuth2TokenAuthenticationToken");

    private UserPrincipal() {}

    private static boolean isPresent(String name) {
        return ClassUtils.isPresent("org.springframework.security." + name, UserPrincipal.class.getClassLoader());
    }

    /** Returns whether the filters in front of this one have authenticated the request. */
    static boolean isAuthenticated(HttpServletRequest request) {
        Principal user = request.getUserPrincipal();
        return user == null ? request.getRemoteUser() != null : !SPRING_SECURITY || SpringSecurity.accepts(user);
    }

    /** Returns the names of the user's authorities, and roles also without their prefix. Empty without Spring Security. */
    static Set<String> authorities(@Nullable Principal user) {
        return SPRING_SECURITY ? SpringSecurity.authorities(user) : Collections.emptySet();
    }

    /**
     * Returns a claim of the user's token, or an attribute of the OAuth2 principal; null for a user who isn't authenticated,
     * and for a value that is neither text nor number nor boolean.
     */
    static @Nullable String claim(@Nullable Principal user, String name) {
        Object value = OAUTH2 && SpringSecurity.accepts(user) ? OAuth2.claim(user, name) : null;
        return value instanceof String || value instanceof Number || value instanceof Boolean ? value.toString() : null;
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

    /** Loaded only where Spring Security's OAuth2 is on the class path. */
    private static final class OAuth2 {

        static @Nullable Object claim(@Nullable Principal user, String name) {
            Map<String, Object> token = RESOURCE_SERVER ? ResourceServer.claims(user) : null;
            if (token != null) {
                return token.get(name);
            }
            Object principal = user instanceof Authentication authentication ? authentication.getPrincipal() : null;
            if (principal instanceof OAuth2AuthenticatedPrincipal authenticated) {
                return authenticated.getAttributes().get(name);
            }
            return principal instanceof ClaimAccessor accessor
                    ? accessor.getClaims().get(name)
                    : null;
        }
    }

    /** Loaded only where Spring Security's resource server is on the class path. */
    private static final class ResourceServer {

        static @Nullable Map<String, Object> claims(@Nullable Principal user) {
            return user instanceof AbstractOAuth2TokenAuthenticationToken<?> token ? token.getTokenAttributes() : null;
        }
    }
}
