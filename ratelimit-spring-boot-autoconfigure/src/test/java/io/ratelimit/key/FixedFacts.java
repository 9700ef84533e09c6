package io.ratelimit.key;

import java.util.Map;
import java.util.Set;

/** Request facts with given values. The map contains headers by name, and other named facts with their kind as prefix. */
record FixedFacts(String method, String endpoint, String ip, String user, Map<String, String> headers)
        implements RequestFacts {

    static final FixedFacts NONE = new FixedFacts("GET", "none", "203.0.113.7", null, Map.of());

    FixedFacts withMethod(String method) {
        return new FixedFacts(method, endpoint, ip, user, headers);
    }

    FixedFacts withUser(String user) {
        return new FixedFacts(method, endpoint, ip, user, headers);
    }

    FixedFacts withIp(String ip) {
        return new FixedFacts(method, endpoint, ip, user, headers);
    }

    FixedFacts withHeaders(Map<String, String> headers) {
        return new FixedFacts(method, endpoint, ip, user, headers);
    }

    @Override
    public String path() {
        return headers.getOrDefault("path", "/");
    }

    @Override
    public Set<String> roles() {
        return headers.containsKey("roles") ? Set.of(headers.get("roles").split(",")) : Set.of();
    }

    @Override
    public long contentLength() {
        return Long.parseLong(headers.getOrDefault("contentLength", "-1"));
    }

    @Override
    public String header(String name) {
        return headers.get(name);
    }

    @Override
    public String query(String name) {
        return headers.get("query " + name);
    }

    @Override
    public String cookie(String name) {
        return headers.get("cookie " + name);
    }

    @Override
    public String pathVariable(String name) {
        return headers.get("variable " + name);
    }

    @Override
    public String claim(String name) {
        return headers.get("claim " + name);
    }

    @Override
    public String session() {
        return headers.get("session");
    }
}
