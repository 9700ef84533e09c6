package io.ratelimit.key;

import java.math.BigDecimal;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What policies may know about a request. Each fact is found when it is first asked for. Expressions see all of them but
 * the session.
 */
public interface RequestFacts {

    /** The method, as the client sent it. */
    String method();

    /** The path below the context path as the container reads it: decoded, without parameters and dots. */
    String path();

    /** The endpoint that the request will reach, such as {@code GET /items/{id}}; one text for all that reach none. */
    String endpoint();

    /** The client's address in its one canonical form; one text for all whose address is none. */
    String ip();

    /** The name of the authenticated user. */
    @Nullable
    String user();

    /** What the user is granted as Spring Security has it, roles with and without {@code ROLE_}; empty without it. */
    Set<String> roles();

    /** The bytes of the body as the client announces them, 2<sup>40</sup> at most; -1 where it doesn't. */
    long contentLength();

    /** The first value of a header. */
    @Nullable
    String header(String name);

    /** The first value of a parameter of the query string, decoded. Never reads the body. */
    @Nullable
    String query(String name);

    /** The first value of a cookie. */
    @Nullable
    String cookie(String name);

    /** A variable of the endpoint's pattern, decoded; null where the endpoint has none of the name. */
    @Nullable
    String pathVariable(String name);

    /** A text as a number, for expressions to reckon with: {@code number(query('rows'))}. Null where it is none. */
    default @Nullable Double number(@Nullable String text) {
        BigDecimal number = text == null ? null : RequestCost.number(text);
        return number == null ? null : number.doubleValue();
    }

    /** The id of the request's session, if it has one; none is made. */
    @Nullable
    String session();
}
