package io.ratelimit.migration;

import static io.ratelimit.migration.BulkheadMigrationTests.reports;

import io.github.resilience4j.bulkhead.Bulkhead;
import io.github.resilience4j.bulkhead.BulkheadRegistry;

/** An example of {@code docs/migrating/bulkhead.md} apart, as it has a type with the name of an annotation. */
final class BulkheadOfUser {

    private BulkheadOfUser() {}

    static String export(BulkheadRegistry registry, String user) {
        Bulkhead bulkhead = registry.bulkhead("export-" + user, "export");
        if (!bulkhead.tryAcquirePermission()) {
            return "busy";
        }
        try {
            return reports.create();
        } finally {
            bulkhead.onComplete();
        }
    }
}
