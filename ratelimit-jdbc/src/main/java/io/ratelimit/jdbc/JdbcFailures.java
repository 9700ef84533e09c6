package io.ratelimit.jdbc;

import io.ratelimit.BackendException;
import io.ratelimit.remote.Deadline.CongestedException;
import java.net.SocketTimeoutException;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The meaning of the errors of databases, and their conversion into exceptions of the core. */
final class JdbcFailures {

    /** The beginnings of errors that don't end by themselves: a wrong statement or table, rights, data, no such database. */
    private static final List<String> MISCONFIGURED =
            List.of("42", "28", "3D", "3F", "22", "23", "S0", "90096"); // the last one is H2's, for rights

    /** A statement that was ended because it took too long. */
    static final String STATEMENT_CANCELLED = "57014";

    /** A statement that the server ended because it took too long, or waited too long for a lock. */
    private static final List<String> CANCELLED = List.of(STATEMENT_CANCELLED, "55P03", "HYT00", "70100");

    /** A server that doesn't write, such as a replica. The codes are those of MySQL, MariaDB, SQL Server, Oracle and H2. */
    private static final List<String> READ_ONLY = List.of("25006", "0A000");

    private static final List<Integer> READ_ONLY_CODES = List.of(1290, 1836, 3906, 16000, 90097);

    /** The code of MySQL and MariaDB for a setting that another version or product has. Its state is a general one. */
    private static final int UNKNOWN_VARIABLE = 1193;

    private static final String DUPLICATE = "23505";
    private static final String CONSTRAINT = "23000";

    /** The codes of MySQL, MariaDB, Oracle and SQL Server for a duplicate, whose state is that of all constraints. */
    private static final List<Integer> DUPLICATES = List.of(1062, 1, 2627, 2601);

    private static final List<String> MISSING_TABLE = List.of("42P01", "42S02", "42S03", "42S04", "S0002");
    private static final int MISSING_TABLE_IN_ORACLE = 942;

    private static final Pattern NO_TEXT = Pattern.compile("[\\s\\p{Cntrl}\u0085\u2028\u2029]+");

    private JdbcFailures() {}

    static BackendException of(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof BackendException converted) {
                return converted;
            }
            if (cause instanceof SQLException error) {
                return new BackendException("the database failed: " + message(error), error, isMisconfigured(error));
            }
            if (cause instanceof VirtualMachineError) { // this process lacks memory, stack or a thread
                return new CongestedException(cause.toString(), cause);
            }
        }
        return new BackendException("the database failed: " + failure, failure);
    }

    /** Returns the message of an error in one line, as the log shows it. */
    static String message(SQLException error) {
        return NO_TEXT.matcher(String.valueOf(error.getMessage())).replaceAll(" ");
    }

    /** Returns whether the rows were as another call had left them: a key that exists, or a deadlock. */
    static boolean isConflict(SQLException error) {
        String state = state(error);
        return state.equals(DUPLICATE)
                || state.equals(CONSTRAINT) && DUPLICATES.contains(error.getErrorCode())
                || state.startsWith("40") && !state.equals("40003"); // its result is unknown
    }

    /** Returns whether an error needs somebody who corrects the configuration, the rights or the table. */
    static boolean isMisconfigured(SQLException error) {
        return isRefused(error) || isReadOnly(error) || error.getErrorCode() == UNKNOWN_VARIABLE;
    }

    /** Returns whether the server refused a statement for a reason that doesn't end by itself. */
    static boolean isRefused(SQLException error) {
        return MISCONFIGURED.stream().anyMatch(state(error)::startsWith) && !isReadOnly(error);
    }

    /** Returns whether the server doesn't write. After a failover, another connection may lead to one that does. */
    private static boolean isReadOnly(SQLException error) {
        return READ_ONLY.contains(state(error)) || READ_ONLY_CODES.contains(error.getErrorCode());
    }

    /** Returns whether a pooler refused the options of a new session, in the words of PgBouncer or of Amazon's RDS Proxy. */
    static boolean isRefusedByPooler(SQLException error) {
        String message = message(error);
        return message.contains("options")
                && (message.contains("startup parameter") || message.contains("command-line"));
    }

    static BackendException ofPooler(SQLException refusal) {
        return new BackendException(
                "a pooler in front of PostgreSQL refuses the options of the limits' sessions (" + message(refusal)
                        + "): let 'ratelimit.jdbc.data-source' lead past it, or add 'options' to PgBouncer's"
                        + " 'ignore_startup_parameters'",
                refusal,
                true);
    }

    static boolean isLate(SQLException error) {
        return isCancelled(error) || error instanceof SQLTimeoutException || isCausedBySocket(error);
    }

    private static boolean isCausedBySocket(@Nullable Throwable error) {
        return error != null && (error instanceof SocketTimeoutException || isCausedBySocket(error.getCause()));
    }

    /** Returns whether the server has ended a statement that took too long, so that its connection may be used again. */
    static boolean isCancelled(SQLException error) {
        return CANCELLED.contains(state(error));
    }

    static boolean isMissingTable(SQLException error) {
        return MISSING_TABLE.contains(state(error)) || error.getErrorCode() == MISSING_TABLE_IN_ORACLE;
    }

    private static String state(SQLException error) {
        return String.valueOf(error.getSQLState());
    }
}
