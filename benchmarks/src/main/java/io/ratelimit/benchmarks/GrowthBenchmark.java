package io.ratelimit.benchmarks;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.springframework.http.HttpStatus;

/** An allowed request through both filters, by the number of policies or of handler mappings in the application. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class GrowthBenchmark {

    /** The number that grows. */
    public enum Growing {
        /** All policies charge the request. */
        POLICIES_OF_A_REQUEST,
        /** One policy of all charges the request. */
        POLICIES_WITH_DISJOINT_PATHS,
        /** One policy has a bucket for each endpoint. */
        LITERAL_MAPPINGS,
        /** The same, but each pattern begins with a variable. */
        MAPPINGS_WITH_LEADING_VARIABLE
    }

    @Param
    public Growing growing;

    @Param({"10"})
    public int count;

    private FilterChain chain;
    private final StubRequest request = new StubRequest("/api/resource5");
    private final StubResponse response = new StubResponse();

    @Setup
    public void start() throws ServletException, IOException {
        Map<String, Object> properties = new HashMap<>();
        boolean mappings = growing.compareTo(Growing.LITERAL_MAPPINGS) >= 0;
        for (int i = 0; i < (mappings ? 1 : count); i++) {
            String prefix = "ratelimit.policies.policy" + i + ".";
            properties.put(prefix + "key", mappings ? "ip,endpoint" : "ip");
            properties.put(prefix + "rate", "1000000/1s");
            properties.put(prefix + "capacity", 1_000_000_000);
            if (growing == Growing.POLICIES_WITH_DISJOINT_PATHS) {
                properties.put(prefix + "paths", "/api/resource" + (5 + i) + "/**");
            }
        }
        if (mappings) {
            properties.put(FilterApplication.COUNT, count);
            boolean literal = growing == Growing.LITERAL_MAPPINGS;
            properties.put(FilterApplication.MAPPINGS, literal ? "/api/resource%d" : "/{tenant}/resource%d");
        }
        chain = FilterChains.of(FilterApplication.filters(properties));
        if (answer() != HttpStatus.OK.value()) {
            throw new IllegalStateException("the answer was " + response.getStatus());
        }
    }

    @Benchmark
    public int answer() throws ServletException, IOException {
        request.recycle();
        response.recycle();
        chain.doFilter(request, response);
        return response.getStatus();
    }
}
