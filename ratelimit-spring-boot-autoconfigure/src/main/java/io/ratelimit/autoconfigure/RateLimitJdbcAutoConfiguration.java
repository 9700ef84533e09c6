package io.ratelimit.autoconfigure;

import io.ratelimit.BackendException;
import io.ratelimit.BucketStore;
import io.ratelimit.autoconfigure.SharedBackend.BackendStart;
import io.ratelimit.autoconfigure.SharedBackend.OnBackendCondition;
import io.ratelimit.jdbc.JdbcStorage;
import io.ratelimit.jdbc.JdbcStorage.MissingTableException;
import io.ratelimit.policy.BackendProperties.BackendKind;
import io.ratelimit.policy.BackendProperties.Jdbc;
import io.ratelimit.policy.BackendProperties.Jdbc.InitializeSchema;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitEnabledCondition;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.jdbc.DataSourceBuilder;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;
import org.springframework.jdbc.datasource.SimpleDriverDataSource;

/** Auto-configuration for policies with their buckets in a database. */
@AutoConfiguration(
        before = RateLimitAutoConfiguration.class,
        afterName = "org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration")
@Conditional({RateLimitEnabledCondition.class, RateLimitJdbcAutoConfiguration.OnJdbcCondition.class})
@EnableConfigurationProperties(RateLimitProperties.class)
@Lazy(false)
public final class RateLimitJdbcAutoConfiguration {

    private static final Log logger = LogFactory.getLog(RateLimitJdbcAutoConfiguration.class);

    private static final String WITHOUT_NAME =
            "The application has no name: it would share limits with another application without a name that has a"
                    + " policy of the same name in the same table. Set 'spring.application.name' or"
                    + " 'ratelimit.jdbc.key-prefix'";

    /** What buckets in a database need: the module and one of its types. */
    private static final Map<String, String> NEEDED = Map.of(
            "ratelimit-jdbc", "io.ratelimit.jdbc.JdbcStorage",
            "spring-boot-jdbc", "org.springframework.boot.jdbc.DataSourceBuilder",
            "spring-jdbc", "org.springframework.jdbc.datasource.SimpleDriverDataSource");

    /** Stops the start if something that buckets in a database need isn't on the class path. Otherwise there is a store. */
    @Bean
    @ConditionalOnMissingBean
    BucketStore rateLimitBucketStore() {
        throw SharedBackend.lackingFailure(BackendKind.JDBC, NEEDED);
    }

    /** Buckets in a database, together with those in memory. */
    @Configuration(proxyBeanMethods = false)
    @Import(SharedBackend.class)
    @ConditionalOnClass({JdbcStorage.class, DataSourceBuilder.class, SimpleDriverDataSource.class})
    @ConditionalOnMissingBean(BucketStore.class)
    @Lazy(false)
    static class OnJdbc {

        @Bean
        JdbcStorage rateLimitJdbcStorage(
                ListableBeanFactory beans,
                ObjectProvider<DataSource> dataSources,
                RateLimitProperties properties,
                Deadline deadline,
                Environment environment) {
            Jdbc jdbc = properties.jdbc();
            DataSource application =
                    jdbc.dataSource() == null ? only(dataSources, beans) : named(jdbc.dataSource(), beans);
            return new JdbcStorage(
                    OwnConnections.beside(application),
                    new JdbcStorage.Settings(
                            jdbc.table(),
                            url -> creates(jdbc.initializeSchema(), url),
                            jdbc.poolSize(),
                            jdbc.longestWait(),
                            SharedBackend.keyPrefix(jdbc.keyPrefix(), environment, logger, WITHOUT_NAME),
                            Objects.requireNonNullElse(jdbc.keySecret(), "")),
                    deadline);
        }

        private static boolean creates(InitializeSchema mode, String url) {
            return mode == InitializeSchema.ALWAYS
                    || mode == InitializeSchema.EMBEDDED && url.startsWith("jdbc:h2:mem:");
        }

        private static DataSource only(ObjectProvider<DataSource> dataSources, ListableBeanFactory beans) {
            DataSource only = dataSources.getIfUnique();
            if (only == null) {
                throw new RateLimitConfigurationException(
                        "'backend: jdbc' is set, but there is not exactly one DataSource that leads to the database"
                                + names(" (there are: ", beans, ").", "."),
                        "Set 'spring.datasource.url', or name the bean to use by 'ratelimit.jdbc.data-source'.",
                        "ratelimit.backend");
            }
            return only;
        }

        private static DataSource named(String name, ListableBeanFactory beans) {
            if (!beans.containsBean(name) || !beans.isTypeMatch(name, DataSource.class)) {
                throw new RateLimitConfigurationException(
                        "'ratelimit.jdbc.data-source' is '" + name + "', but no DataSource has this name.",
                        names(
                                "Set it to one of: ",
                                beans,
                                ".",
                                "Declare a bean of the type DataSource with this name."),
                        "ratelimit.jdbc.data-source");
            }
            return beans.getBean(name, DataSource.class);
        }

        /** Returns the names of all data sources between two texts; another text if there are none. */
        private static String names(String before, ListableBeanFactory beans, String after, String none) {
            List<String> names = Stream.of(beans.getBeanNamesForType(DataSource.class))
                    .sorted()
                    .toList();
            return names.isEmpty() ? none : before + String.join(", ", names) + after;
        }

        @Bean
        @Lazy(false)
        @DependsOnDatabaseInitialization
        JdbcStart rateLimitJdbcStart(JdbcStorage storage, FailoverBucketStore database, ConfiguredPolicies policies) {
            if (policies.uses(BackendKind.REDIS)) {
                throw new RateLimitConfigurationException(
                        "Some policies set 'backend: redis' and others 'backend: jdbc', but an application shares"
                                + " limits in one place.",
                        "Set the same shared backend for all policies, beside 'local'.",
                        "ratelimit.backend");
            }
            return new JdbcStart(storage, database, policies.asksShared());
        }
    }

    /** The start of the database, after tools such as Flyway have created the table. A missing table stops the start. */
    static final class JdbcStart extends BackendStart {

        JdbcStart(JdbcStorage storage, FailoverBucketStore store, boolean enabled) {
            super(storage, store, enabled);
        }

        @Override
        void failed(BackendException failure) {
            if (failure instanceof MissingTableException missing) {
                throw new RateLimitConfigurationException(
                        "'backend: jdbc' is set, but " + missing.getMessage() + ".",
                        "Run the script, for example as a migration of Flyway, or "
                                + (missing.getCause() == null
                                        ? "set 'ratelimit.jdbc.initialize-schema: always'"
                                        : "let the data source lead to the primary server, by a user who may create"
                                                + " tables")
                                + ". If the table has another name or schema, set 'ratelimit.jdbc.table'.",
                        "ratelimit.jdbc.table");
            }
            super.failed(failure);
        }
    }

    /** A condition that matches if {@code backend: jdbc} is set for the application or for a policy. */
    static final class OnJdbcCondition extends OnBackendCondition {

        OnJdbcCondition() {
            super(BackendKind.JDBC);
        }
    }
}
