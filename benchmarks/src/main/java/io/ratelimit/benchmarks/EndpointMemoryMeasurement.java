package io.ratelimit.benchmarks;

import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.lang.ref.Reference;
import java.util.List;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;

/** The heap and the time that the index of 10,000 literal mappings takes beside 100 with a leading variable. */
public final class EndpointMemoryMeasurement {

    private EndpointMemoryMeasurement() {}

    /** Prints a name, the KiB of heap, and the milliseconds. */
    public static void main(String[] args) throws Exception {
        List<RequestMappingHandlerMapping> mappings = List.of(
                FilterApplication.mappingsOf("/api/resource%d", 10_000),
                FilterApplication.mappingsOf("/{tenant}/item%d", 100));
        new Endpoints(FilterApplication.SERVLET, "", mappings);
        long before = MemoryMeasurement.usedHeap();
        long start = System.nanoTime();
        Endpoints endpoints = new Endpoints(FilterApplication.SERVLET, "", mappings);
        long millis = (System.nanoTime() - start) / 1_000_000;
        long after = MemoryMeasurement.usedHeap();
        Reference.reachabilityFence(endpoints);
        Reference.reachabilityFence(mappings);
        System.out.println("endpoints\t" + (after - before) / 1024 + "\t" + millis);
    }
}
