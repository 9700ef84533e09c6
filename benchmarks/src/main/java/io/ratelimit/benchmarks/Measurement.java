package io.ratelimit.benchmarks;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * JMH's result of one benchmark.
 *
 * @param name of the method
 * @param parameters their values, in the order of their names
 * @param nanos the median of the iterations, for one call
 * @param error half of the 99.9 % confidence interval of the mean; NaN where there were too few iterations for one
 * @param bytes allocated by a call
 */
record Measurement(String name, List<String> parameters, double nanos, double error, double bytes) {

    /** Reads a file that JMH wrote; returns an empty list if there is none. */
    static List<Measurement> read(Path file) {
        List<Measurement> measurements = new ArrayList<>();
        if (Files.exists(file)) {
            JsonMapper.shared().readTree(file).forEach(result -> measurements.add(of(result)));
        }
        return measurements;
    }

    private static Measurement of(JsonNode result) {
        String benchmark = result.get("benchmark").asString();
        JsonNode score = result.get("primaryMetric");
        return new Measurement(
                benchmark.substring(benchmark.lastIndexOf('.') + 1),
                result.path("params").valueStream().map(JsonNode::asString).toList(),
                score.get("scorePercentiles").get("50.0").asDouble(),
                score.get("scoreError").asDouble(Double.NaN),
                result.path("secondaryMetrics")
                        .path("gc.alloc.rate.norm")
                        .path("score")
                        .asDouble(Double.NaN));
    }

    /** The one of this name and these parameters; not a number if it wasn't measured. */
    static Measurement of(List<Measurement> measurements, String name, Object... parameters) {
        List<String> wanted = List.of(parameters).stream().map(Object::toString).toList();
        return measurements.stream()
                .filter(one -> one.name.equals(name) && one.parameters.equals(wanted))
                .findFirst()
                .orElse(new Measurement(name, wanted, Double.NaN, Double.NaN, Double.NaN));
    }

    double ratioTo(Measurement other) {
        return nanos / other.nanos;
    }

    String label() {
        return parameters.isEmpty()
                ? name
                : name + ", " + String.join(", ", parameters).toLowerCase(Locale.ROOT);
    }
}
