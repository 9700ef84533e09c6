package io.ratelimit.key;

import io.ratelimit.Keys;
import java.math.BigDecimal;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The facts of a request on which policies may depend. A {@link KeyResolver} reads all of them; expressions of the
 * configuration read all but the session. Each fact is determined on first use. One thread at a time uses an instance.
 */
public interface RequestFacts {

    /** Returns the HTTP method as the client sent it. */
    String method();

    /** Returns the path below the context path as the container reads it: decoded, without parameters and dots. */
    String path();

    /**
     * Returns the endpoint that handles the request, such as {@code GET /items/{id}}; {@code none} for each request
     * without an endpoint.
     */
    String endpoint();

    /** Returns the {@link #endpoint} as a part of keys that ignore case. */
    default String foldedEndpoint() {
        return Keys.part(endpoint(), true);
    }

    /**
     * Returns the client's address in canonical form: dotted IPv4, or an IPv6 network such as
     * {@code 2001:db8:0:1::/64}; {@code none} for each request without an address, and {@code closed} for each
     * request whose HTTP/2 connection was closed before it began.
     */
    String ip();

    /**
     * Returns the name of the authenticated user; null without a user, and for a user whose name is not
     * {@linkplain KeyPart#userOf stable}.
     */
    @Nullable
    String user();

    /**
     * Returns the user's granted authorities of Spring Security: roles both with and without the prefix {@code ROLE_};
     * empty without Spring Security or without a user.
     */
    Set<String> roles();

    /**
     * Returns a claim of the request's JWT, or an attribute of its OAuth2 principal, as text; null without a user, and for
     * a value that is neither text nor number nor boolean.
     */
    @Nullable
    String claim(String name);

    /** Returns the length of the body in bytes as the client announced it, at most 2<sup>40</sup>; -1 if it didn't. */
    long contentLength();

    /**
     * Returns the first value of a header; null if the request has none.
     *
     * @param name the name of the header, in any case
     */
    @Nullable
    String header(String name);

    /**
     * Returns the first value of a query parameter, decoded; null if the query string has none. Never reads the body.
     * Without the parameter {@code limit}, {@code !limit} or {@code Limit} counts, by which Spring's data binding sets a
     * field too.
     *
     * @throws IllegalStateException if the body is multipart and the method isn't POST, PUT or PATCH: a controller gets
     *     the values of the body's parts first; or if, without the parameter {@code limit}, there is {@code _limit}, by
     *     which data binding removes a field's default; or if two spellings of the name have different values, and data
     *     binding may use another one
     */
    @Nullable
    String query(String name);

    /** Returns the first value of a cookie, decoded; null if the request has none. */
    @Nullable
    String cookie(String name);

    /** Returns a variable of the endpoint's path pattern, decoded; null if the pattern has none of the name. */
    @Nullable
    String pathVariable(String name);

    /**
     * Returns the number that a text spells, exact up to 40 digits. Equal numbers have equal texts, so
     * {@code number(pathVariable('id'))} is one key for 5, 05 and +5.
     *
     * @return the number; null if the text is null or spells none
     */
    default @Nullable BigDecimal number(@Nullable String text) {
        return text == null ? null : NumberText.read(text);
    }

    /** Returns the id of the request's session; null if it has none. Never creates a session. */
    @Nullable
    String session();

    /** Access to the web request that the calling thread serves. */
    @FunctionalInterface
    interface Current {

        /** An access that never finds a request. */
        Current NONE = () -> null;

        /** Returns the facts of the request; null if the thread serves none. */
        @Nullable
        RequestFacts facts();

        /**
         * Notes the exception of a call that was denied or interrupted, in the request that the thread serves. Spring MVC
         * drops the exception if an exception handler throws it.
         */
        default void noteRejectedCall(RuntimeException rejected) {}
    }
}
