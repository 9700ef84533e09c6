package io.ratelimit.autoconfigure.jdbc;

import io.ratelimit.BackendException;
import io.ratelimit.autoconfigure.BackendStart;
import io.ratelimit.jdbc.JdbcStorage;
import io.ratelimit.jdbc.JdbcStorage.MissingTableException;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.remote.FailoverBucketStore;

/** The start of the database, after tools such as Flyway have created the table. A missing table stops the start. */
final class JdbcStart extends BackendStart {

    JdbcStart(JdbcStorage storage, FailoverBucketStore store, boolean enabled) {
        super(storage, store, enabled);
    }

    @Override
    protected void failed(BackendException failure) {
        if (failure instanceof MissingTableException missing) {
            throw new RateLimitConfigurationException(
                    "'backend: jdbc' is set, but " + missing.getMessage() + " in the database.",
                    "Run the script '" + missing.script()
                            + "' of ratelimit-jdbc, for example as a migration of Flyway, or set"
                            + " 'ratelimit.jdbc.initialize-schema: always'. If the table has another name or schema, set"
                            + " 'ratelimit.jdbc.table'.",
                    "ratelimit.jdbc.table");
        }
        super.failed(failure);
    }
}
