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

/** A request through both filters, with the README's four policies. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class FilterBenchmark {

    /** More than a run takes, and not so much more that the arithmetic is another. */
    private static final long PLENTY = 1_000_000_000;

    /** The denying policy: none; a policy of the first filter; a policy of the second filter, after the others were charged. */
    public enum Denied {
        BY_NONE(""),
        BY_FIRST_FILTER("per-ip"),
        BY_SECOND_FILTER("per-user-per-endpoint");

        private final String policy;

        Denied(String policy) {
            this.policy = policy;
        }
    }

    @Param
    public Denied denied;

    private FilterChain chain;
    private final StubRequest request = new StubRequest(FilterApplication.URI);
    private final StubResponse response = new StubResponse();

    @Setup
    public void start() throws ServletException, IOException {
        Map<String, Object> properties = new HashMap<>();
        policy(properties, "per-user-per-endpoint", "user,endpoint", "1ms-5ms");
        policy(properties, "per-endpoint", "endpoint", "5ms-10ms");
        policy(properties, "global", "", "10ms-20ms");
        policy(properties, "per-ip", "ip", "0ms-0ms");
        properties.put("ratelimit.policies.per-ip.phase", "before-authentication");
        chain = FilterChains.of(FilterApplication.filters(properties));
        answer();
        boolean asWanted = (answer() == HttpStatus.TOO_MANY_REQUESTS.value()) == (denied != Denied.BY_NONE);
        if (!asWanted) {
            throw new IllegalStateException("the answer was " + response.getStatus() + " with denied " + denied);
        }
    }

    private void policy(Map<String, Object> properties, String name, String key, String jitter) {
        boolean one = name.equals(denied.policy);
        String prefix = "ratelimit.policies." + name + ".";
        properties.put(prefix + "key", key);
        properties.put(prefix + "rate", one ? "1/1d" : "1000000/1s");
        properties.put(prefix + "capacity", one ? 1 : PLENTY);
        properties.put(prefix + "retry-jitter", jitter);
    }

    @Benchmark
    public int answer() throws ServletException, IOException {
        request.recycle();
        response.recycle();
        chain.doFilter(request, response);
        return response.getStatus();
    }
}
