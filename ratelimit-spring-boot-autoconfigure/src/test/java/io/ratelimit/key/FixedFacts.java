package io.ratelimit.key;

import java.util.Map;

/** The facts of a request, as given. */
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
    public String header(String name) {
        return headers.get(name);
    }
}
