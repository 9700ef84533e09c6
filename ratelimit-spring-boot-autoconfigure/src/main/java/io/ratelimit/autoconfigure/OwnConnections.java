package io.ratelimit.autoconfigure;

import io.ratelimit.jdbc.JdbcStorage.PostgresSource;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Properties;
import javax.sql.DataSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.BeanWrapper;
import org.springframework.beans.PropertyAccessorFactory;
import org.springframework.boot.jdbc.DataSourceBuilder;
import org.springframework.jdbc.datasource.AbstractDataSource;
import org.springframework.jdbc.datasource.SimpleDriverDataSource;
import org.springframework.util.ClassUtils;

/**
 * Opens connections by the URL, the driver and the credentials that the application's data source has at the time, beside its
 * pool: a limit must not wait for a connection that a request holds. Thread-safe.
 */
class OwnConnections extends AbstractDataSource {

    private static final Log logger = LogFactory.getLog(OwnConnections.class);

    /** The property of HikariCP with properties for the driver, such as those of TLS. */
    private static final String DRIVER_PROPERTIES = "dataSourceProperties";

    final DataSource application;

    private OwnConnections(DataSource application) {
        this.application = application;
    }

    /** Returns connections beside a data source; the data source itself if it doesn't show where it leads to. */
    static DataSource beside(DataSource application) {
        try {
            String url = derive(application).getUrl();
            if (url != null) {
                return url.startsWith("jdbc:postgresql:")
                        ? new ToPostgres(application)
                        : new OwnConnections(application);
            }
        } catch (RuntimeException unknown) {
            logger.debug("No URL can be read from the data source", unknown);
        }
        logger.info("The limits use connections of the application's "
                + ClassUtils.getShortName(application.getClass())
                + ", since it doesn't show a URL to open others with: its pool needs"
                + " 'ratelimit.jdbc.pool-size' + 1 more");
        return application;
    }

    private static SimpleDriverDataSource derive(DataSource application) {
        SimpleDriverDataSource own = DataSourceBuilder.derivedFrom(application)
                .type(SimpleDriverDataSource.class)
                .build();
        BeanWrapper pool = PropertyAccessorFactory.forBeanPropertyAccess(application);
        if (pool.isReadableProperty(DRIVER_PROPERTIES)
                && pool.getPropertyValue(DRIVER_PROPERTIES) instanceof Properties properties) {
            own.setConnectionProperties(properties);
        }
        return own;
    }

    @Override
    public Connection getConnection() throws SQLException {
        return derive(application).getConnection();
    }

    @Override
    public Connection getConnection(String username, String password) throws SQLException {
        return derive(application).getConnection(username, password);
    }

    /** Connections by the driver of PostgreSQL, whose URL can have options of the session. */
    private static final class ToPostgres extends OwnConnections implements PostgresSource {

        private static final String OPTIONS = "options";

        private ToPostgres(DataSource application) {
            super(application);
        }

        @Override
        public Connection getConnection(String options) throws SQLException {
            SimpleDriverDataSource own = derive(application);
            String url = String.valueOf(own.getUrl());
            String all = (optionsOfUser(url, own.getConnectionProperties()) + " " + options).strip();
            own.setUrl(url + (url.contains("?") ? "&" : "?") + OPTIONS + "="
                    + URLEncoder.encode(all, StandardCharsets.UTF_8));
            return own.getConnection();
        }

        /** Returns the options that the driver would use: the last ones of the URL, or those of the properties. */
        private static String optionsOfUser(String url, @Nullable Properties properties) {
            String options = properties == null ? "" : properties.getProperty(OPTIONS, "");
            for (String argument : url.substring(url.indexOf('?') + 1).split("&")) {
                if (argument.startsWith(OPTIONS + "=")) {
                    options = URLDecoder.decode(argument.substring(OPTIONS.length() + 1), StandardCharsets.UTF_8);
                }
            }
            return options;
        }
    }
}
