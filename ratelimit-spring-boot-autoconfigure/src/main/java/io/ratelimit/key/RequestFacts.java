package io.ratelimit.key;

import org.jspecify.annotations.Nullable;

/** What policies may know about a request. Each fact is found when it is first asked for. */
public interface RequestFacts {

    /** The method, as the client sent it. */
    String method();

    /** The endpoint that the request will reach, such as {@code GET /items/{id}}; one text for all that reach none. */
    String endpoint();

    /** The client's address in its one canonical form; one text for all whose address is none. */
    String ip();

    /** The name of the authenticated user. */
    @Nullable
    String user();

    /** The first value of a header. */
    @Nullable
    String header(String name);
}
