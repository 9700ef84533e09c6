package io.ratelimit.key;

import java.security.Principal;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.security.authentication.AbstractAuthenticationToken;
import org.springframework.security.core.AuthenticatedPrincipal;
import org.springframework.security.core.userdetails.UserDetails;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * The stable name of a user. An authentication of Spring Security whose principal is an object of the application uses
 * the object's {@code toString()} as its name. That text may contain the expiry of a token or an identity hash. Then each
 * login, or each request, would have a bucket of its own.
 */
final class UserName {

    private static final Log logger = LogFactory.getLog(UserName.class);
    private static final boolean SPRING_SECURITY =
            ClassUtils.isPresent("org.springframework.security.core.Authentication", UserName.class.getClassLoader());

    private UserName() {}

    /**
     * Returns the name of a user; null without a user, and for a user whose name may change. Logs a warning once for each
     * class of such a principal.
     */
    static @Nullable String find(@Nullable Principal user) {
        if (user == null || SPRING_SECURITY && !SpringSecurity.hasStableName(user)) {
            return null;
        }
        return user.getName();
    }

    /** Loaded only if Spring Security is on the class path. */
    private static final class SpringSecurity {

        /** True for a class of authentications that inherits {@code getName()}, which reads the principal. */
        private static final ClassValue<Boolean> INHERITS_NAME = new ClassValue<>() {
            @Override
            protected Boolean computeValue(Class<?> type) {
                var getName = ReflectionUtils.findMethod(type, "getName");
                return getName != null && getName.getDeclaringClass() == AbstractAuthenticationToken.class;
            }
        };

        /** True until the warning about a class of principals has been logged. */
        private static final ClassValue<AtomicBoolean> MAY_WARN = new ClassValue<>() {
            @Override
            protected AtomicBoolean computeValue(Class<?> type) {
                return new AtomicBoolean(true);
            }
        };

        static boolean hasStableName(Principal user) {
            if (!(user instanceof AbstractAuthenticationToken authentication)
                    || !INHERITS_NAME.get(authentication.getClass())) {
                return true;
            }
            Object principal = authentication.getPrincipal();
            if (principal == null) {
                return true;
            }
            boolean isStable = principal instanceof CharSequence
                    || principal instanceof UserDetails
                    || principal instanceof AuthenticatedPrincipal
                    || principal instanceof Principal
                    || principal instanceof Number
                    || principal instanceof UUID;
            if (!isStable && MAY_WARN.get(principal.getClass()).compareAndSet(true, false)) {
                logger.warn("The principal of an authentication is a "
                        + principal.getClass().getName()
                        + ", whose toString() would be the name of the user. That text may change with each login or"
                        + " request, so throttle policies treat the user as missing. Have the class implement"
                        + " java.security.Principal or AuthenticatedPrincipal with a stable name, or key the policy by"
                        + " 'bean:NAME'. This is logged once for the class");
            }
            return isStable;
        }
    }
}
