package io.ratelimit.logging;

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
        if (AVAILABLE) {
            with("ratelimit.policy", policy, () -> with("ratelimit.outcome", outcome, line));
        } else {
            line.run();
        }
    }

    private static void with(String field, @Nullable String value, Runnable line) {
        if (value == null) {
            line.run();
            return;
        }
        String previous = MDC.get(field);
        MDC.put(field, value);
        try {
            line.run();
        } finally {
            if (previous == null) {
                MDC.remove(field);
            } else {
                MDC.put(field, previous);
            }
        }
    }
}
