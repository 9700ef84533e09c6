package io.ratelimit.logging;

import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;
import org.springframework.util.ClassUtils;

/**
 * Adds fields to a log line: as entries of SLF4J's MDC, which Spring Boot's structured logging prints, and patterns with
 * {@code %X}. Without SLF4J lines have no fields.
 */
final class LogFields {

    private static final boolean AVAILABLE = ClassUtils.isPresent("org.slf4j.MDC", LogFields.class.getClassLoader());

    private LogFields() {}

    /**
     * Writes a line. The entries of the calling thread are afterwards as before.
     *
     * @param outcome null for a line without an outcome
     */
    static void write(String policy, @Nullable String outcome, Runnable line) {
        if (!AVAILABLE) {
            line.run();
            return;
        }
        Map<String, String> before = Objects.requireNonNullElse(MDC.getCopyOfContextMap(), Map.of());
        MDC.put("ratelimit.policy", policy);
        if (outcome != null) {
            MDC.put("ratelimit.outcome", outcome);
        }
        try {
            line.run();
        } finally {
            MDC.setContextMap(before);
        }
    }
}
