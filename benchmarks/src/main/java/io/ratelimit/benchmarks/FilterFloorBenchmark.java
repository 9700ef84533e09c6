package io.ratelimit.benchmarks;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** The floor of the filter benchmark: the stubs, and the clock that each filter reads. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class FilterFloorBenchmark {

    private final FilterChain chain = FilterChains.of(List.of());
    private final StubRequest request = new StubRequest(FilterApplication.URI);
    private final StubResponse response = new StubResponse();

    @Benchmark
    public int stubs() throws ServletException, IOException {
        request.recycle();
        response.recycle();
        chain.doFilter(request, response);
        return response.getStatus();
    }

    @Benchmark
    public long nanoTime() {
        return System.nanoTime();
    }
}
