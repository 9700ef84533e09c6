package io.ratelimit.jdbc;

import java.sql.DatabaseMetaData;
import java.sql.SQLException;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** The statements that differ between databases. */
enum Dialect {
    POSTGRESQL(
            "PostgreSQL",
            "CAST(date_part('epoch', clock_timestamp()) * 1000000 AS bigint)",
            "(SELECT 1 AS n)",
            " ON CONFLICT DO NOTHING",
            "DELETE FROM %1$s WHERE id IN (SELECT id FROM %1$s WHERE expires < ? LIMIT %2$d FOR UPDATE SKIP LOCKED)",
            new Setting("SET synchronous_commit = off", "RESET synchronous_commit"),
            new Setting("SET statement_timeout = %d", "RESET statement_timeout")),
    MYSQL(
            "MySQL",
            "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)",
            "(SELECT 1 AS n)",
            "",
            "DELETE FROM %1$s WHERE expires < ? LIMIT %2$d",
            Setting.UTC,
            new Setting("SET max_execution_time = %d", "SET max_execution_time = DEFAULT"), // of a SELECT
            new Setting("SET innodb_lock_wait_timeout = CEIL(%d / 1000)", "SET innodb_lock_wait_timeout = DEFAULT")),
    MARIADB(
            "MariaDB",
            MYSQL.clock,
            MYSQL.oneRow,
            MYSQL.ignoringDuplicates,
            MYSQL.deleteExpired,
            Setting.UTC,
            new Setting("SET max_statement_time = %d / 1000", "SET max_statement_time = DEFAULT")),
    ORACLE(
            "Oracle",
            "(EXTRACT(DAY FROM SYS_EXTRACT_UTC(SYSTIMESTAMP) - TIMESTAMP '1970-01-01 00:00:00') * 86400"
                    + " + EXTRACT(HOUR FROM SYS_EXTRACT_UTC(SYSTIMESTAMP)) * 3600"
                    + " + EXTRACT(MINUTE FROM SYS_EXTRACT_UTC(SYSTIMESTAMP)) * 60"
                    + " + EXTRACT(SECOND FROM SYS_EXTRACT_UTC(SYSTIMESTAMP))) * 1000000",
            "(SELECT 1 AS n FROM dual)",
            "",
            "DELETE FROM %1$s WHERE expires < ? AND ROWNUM <= %2$d"),
    SQLSERVER(
            "Microsoft SQL Server",
            "DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME())",
            "(SELECT 1 AS n)",
            "",
            "DELETE TOP (%2$d) FROM %1$s WITH (READPAST) WHERE expires < ?",
            new Setting("SET LOCK_TIMEOUT %d", "SET LOCK_TIMEOUT -1")),
    H2(
            "H2",
            "CAST(EXTRACT(EPOCH FROM CURRENT_TIMESTAMP(6)) * 1000000 AS bigint)",
            "(SELECT 1 AS n)",
            "",
            "DELETE FROM %1$s WHERE expires < ? FETCH FIRST %2$d ROWS ONLY",
            new Setting("SET LOCK_TIMEOUT %d", "SET LOCK_TIMEOUT 2000"));

    private final String product;
    private final String clock;
    private final String oneRow;
    private final String ignoringDuplicates;
    private final String deleteExpired;
    private final Setting[] settings;

    /**
     * @param set a number is the longest time of a statement in milliseconds
     * @param reset restores the default, as the connection may go back into a pool of the application
     */
    private record Setting(String set, String reset) {

        /** A clock without a repeated hour. */
        private static final Setting UTC = new Setting("SET time_zone = '+00:00'", "SET time_zone = DEFAULT");
    }

    /**
     * @param product the name by which the driver calls the database
     * @param clock the time of the server in microseconds since 1970-01-01T00:00Z, not before the statement began
     * @param oneRow a table of one row
     * @param ignoringDuplicates the end of an insert that does nothing if the key exists; empty if it fails then
     * @param deleteExpired deletes a number of rows that expired before a time, and leaves out locked rows if possible
     * @param settings of each connection
     */
    Dialect(
            String product,
            String clock,
            String oneRow,
            String ignoringDuplicates,
            String deleteExpired,
            Setting... settings) {
        this.product = product;
        this.clock = clock;
        this.oneRow = oneRow;
        this.ignoringDuplicates = ignoringDuplicates;
        this.deleteExpired = deleteExpired;
        this.settings = settings;
    }

    /** @throws IllegalArgumentException if the database is unknown */
    static Dialect of(DatabaseMetaData database) throws SQLException {
        return of(database.getDatabaseProductName(), database.getDatabaseProductVersion());
    }

    /** MySQL's driver calls a MariaDB MySQL. */
    static Dialect of(String product, String version) {
        String name = version.contains(MARIADB.product) ? MARIADB.product : product;
        return Stream.of(values())
                .filter(dialect -> name.startsWith(dialect.product))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("the database '" + product + "' is none of "
                        + Stream.of(values()).map(dialect -> dialect.product).toList()));
    }

    /** Returns the settings of {@link #POSTGRESQL} as options of a new session. */
    static String postgresOptions(long millis) {
        return "-c synchronous_commit=off -c statement_timeout=" + millis
                + " -c default_transaction_isolation=read\\ committed";
    }

    /** Returns the statement that reads the clock and the rows of ids. It has a row without an id if there are none. */
    String select(String table, int ids) {
        return "SELECT " + clock + ", b.id, b.state FROM " + oneRow + " o LEFT JOIN " + table + " b ON b.id IN (?"
                + ", ?".repeat(ids - 1) + ")";
    }

    /** Returns a statement that touches no table. */
    String probe() {
        return "SELECT n FROM " + oneRow + " o";
    }

    String insert(String table) {
        return "INSERT INTO " + table + " (state, expires, id) VALUES (?, ?, ?)" + ignoringDuplicates;
    }

    /** Returns the statement that writes a row which is as it was read, if the clock is between two times. */
    String update(String table) {
        return "UPDATE " + table + " SET state = ?, expires = ?" + unchanged();
    }

    /** Returns the statement that removes a row under the same condition. */
    String delete(String table) {
        return "DELETE FROM " + table + unchanged();
    }

    private String unchanged() {
        return " WHERE id = ? AND state = ? AND " + clock + " BETWEEN ? AND ?";
    }

    String deleteExpired(String table, int rows) {
        return deleteExpired.formatted(table, rows);
    }

    List<String> settings(long millis) {
        return Stream.of(settings).map(setting -> setting.set.formatted(millis)).toList();
    }

    List<String> resets() {
        return Stream.of(settings).map(Setting::reset).toList();
    }

    /** Returns the resource that creates the table. */
    String script() {
        Dialect author = this == MARIADB ? MYSQL : this;
        return "schema-" + author.name().toLowerCase(Locale.ROOT) + ".sql";
    }
}
