package io.ratelimit.jdbc;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import javax.sql.DataSource;

/** Another result of a method of JDBC, for a database that behaves as no test can make it. */
interface Replacement {

    /** @param result the result that the method had for these arguments */
    Object of(Object result, Object... arguments) throws SQLException;

    /** Replaces the results of one method. */
    static <T> T proxy(Class<T> type, Object target, String method, Replacement replacement) {
        return type.cast(Proxy.newProxyInstance(
                Replacement.class.getClassLoader(), new Class<?>[] {type}, (proxy, called, arguments) -> {
                    try {
                        Object result = called.invoke(target, arguments);
                        return called.getName().equals(method) ? replacement.of(result, arguments) : result;
                    } catch (InvocationTargetException failed) {
                        throw failed.getCause();
                    }
                }));
    }

    /** Replaces the prepared statements of all connections. */
    static DataSource ofStatements(DataSource source, Replacement statements) {
        return proxy(
                DataSource.class,
                source,
                "getConnection",
                (connection, none) -> proxy(Connection.class, connection, "prepareStatement", statements));
    }
}
