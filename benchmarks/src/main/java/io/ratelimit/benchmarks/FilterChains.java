package io.ratelimit.benchmarks;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import java.util.List;

/** Filters one after the other, as a container calls them, and then nothing. */
final class FilterChains {

    private FilterChains() {}

    static FilterChain of(List<Filter> filters) {
        if (filters.isEmpty()) {
            return (request, response) -> {};
        }
        Filter first = filters.get(0);
        FilterChain rest = of(filters.subList(1, filters.size()));
        return (request, response) -> first.doFilter(request, response, rest);
    }
}
