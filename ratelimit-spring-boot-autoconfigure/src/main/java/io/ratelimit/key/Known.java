package io.ratelimit.key;

/** How early something about a request is known, earliest first: a policy can't be asked before. */
public enum Known {
    /** At once: it is in the request itself. */
    AT_ONCE,
    /** It may be another after authentication: a login changes the session, and code may look at whatever it likes. */
    PERHAPS_LATER,
    /** After authentication: it is about the user. */
    WITH_USER
}
