package io.ratelimit.autoconfigure;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.Properties;
import javax.sql.DataSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
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
final class OwnConnections extends AbstractDataSource {

    private static final Log logger = LogFactory.getLog(OwnConnections.class);

    /** The property of HikariCP with properties for the driver, such as those of TLS. */
    private static final String DRIVER_PROPERTIES = "dataSourceProperties";

    private final DataSource application;

    private OwnConnections(DataSource application) {
        this.application = application;
    }

    /** Returns connections beside a data source; the data source itself if it doesn't show where it leads to. */
    static DataSource beside(DataSource application) {
        try {
            if (derive(application).getUrl() != null) {
                return new OwnConnections(application);
            }
        } catch (RuntimeException unknown) {
            logger.debug("No URL can be read from the data source", unknown);
        }
        logger.info("The limits use connections of the application's "
                + ClassUtils.getShortName(application.getClass())
                + ", since it doesn't show a URL to open others with: its pool needs 'ratelimit.jdbc.pool-size' more");
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
}
