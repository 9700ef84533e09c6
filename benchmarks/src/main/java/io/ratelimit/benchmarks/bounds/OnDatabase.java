package io.ratelimit.benchmarks.bounds;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.github.bucket4j.distributed.jdbc.PrimaryKeyMapper;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import io.github.bucket4j.postgresql.Bucket4jPostgreSQL;
import io.ratelimit.TimeSource;
import io.ratelimit.jdbc.JdbcStorage;
import io.ratelimit.remote.Deadline;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import javax.sql.DataSource;
import org.h2.jdbcx.JdbcDataSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Limiters with their buckets in a table of a database, which another process serves. */
final class OnDatabase {

    private static final Duration TIMEOUT = Duration.ofMillis(100);

    /** The table of bucket4j's documentation. */
    private static final String BUCKET4J_TABLE =
            "CREATE TABLE IF NOT EXISTS bucket (id text PRIMARY KEY, state bytea, expires_at bigint)";

    private OnDatabase() {}

    private static DataSource h2(int port) {
        JdbcDataSource source = new JdbcDataSource();
        source.setURL("jdbc:h2:tcp://127.0.0.1:" + port + "/mem:bounds");
        source.setUser("sa");
        return source;
    }

    private static DataSource postgres(int port) {
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setUrl("jdbc:postgresql://127.0.0.1:" + port + "/postgres");
        source.setUser("postgres");
        return source;
    }

    static Instance oursOnH2(Limit limit, int port) {
        return ours(limit, h2(port));
    }

    static Instance oursOnPostgres(Limit limit, int port) {
        return ours(limit, postgres(port));
    }

    private static Instance ours(Limit limit, DataSource source) {
        Deadline deadline = new Deadline(TimeSource.system(), TIMEOUT);
        JdbcStorage storage = new JdbcStorage(
                source, new JdbcStorage.Settings("ratelimit_bucket", url -> true, 8, TIMEOUT, "bounds", ""), deadline);
        storage.selfTest();
        return OnRedis.closing(
                InMemory.ours(limit, OnRedis.failover("the database", storage.store(), deadline), Duration.ZERO),
                storage::close);
    }

    static Instance bucket4jOnPostgres(Limit limit, int port) throws SQLException {
        HikariConfig config = new HikariConfig();
        config.setDataSource(postgres(port));
        HikariDataSource pool = new HikariDataSource(config);
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(BUCKET4J_TABLE);
        }
        ProxyManager<String> manager = Bucket4jPostgreSQL.selectForUpdateBasedBuilder(pool)
                .primaryKeyMapper(PrimaryKeyMapper.STRING)
                .build();
        return OnRedis.closing(InMemory.bucket4j(manager, limit), pool::close);
    }
}
