package io.ratelimit.autoconfigure;

import io.ratelimit.BackendException;
import io.ratelimit.BucketStore;
import io.ratelimit.TimeSource;
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
import java.util.Map;
import java.util.Objects;
import javax.sql.DataSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.NoSuchBeanDefinitionException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.jdbc.DataSourceBuilder;
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

    private static final String PLACE = Objects.requireNonNull(BackendKind.JDBC.place());

    private static final String WITHOUT_NAME =
            "The application has no name: it would share limits with another application without a name that has a policy of"
                    + " the same name in the same table. Set 'spring.application.name' or 'ratelimit.jdbc.key-prefix'";

    /** What buckets in a database need: the module and one of its types. */
    private static final Map<String, String> NEEDED = Map.of(
            "ratelimit-jdbc", "io.ratelimit.jdbc.JdbcStorage",
            "spring-boot-jdbc", "org.springframework.boot.jdbc.DataSourceBuilder",
            "spring-jdbc", "org.springframework.jdbc.datasource.SimpleDriverDataSource");

    /** Stops the start if something that buckets in a database need isn't on the class path. Otherwise there is a store. */
    @Bean
    @ConditionalOnMissingBean
    BucketStore rateLimitBucketStore() {
        throw SharedBackend.lackingFailure(BackendKind.JDBC, SharedBackend.lacking(NEEDED), "");
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
            DataSource application = jdbc.dataSource() == null ? only(dataSources) : named(jdbc.dataSource(), beans);
            return new JdbcStorage(
                    OwnConnections.beside(application),
                    new JdbcStorage.Settings(
                            jdbc.table(),
                            url -> creates(jdbc.initializeSchema(), url),
                            jdbc.poolSize(),
                            jdbc.timeout(),
                            SharedBackend.keyPrefix(jdbc.keyPrefix(), environment, logger, WITHOUT_NAME),
                            Objects.requireNonNullElse(jdbc.keySecret(), "")),
                    deadline);
        }

        private static boolean creates(InitializeSchema mode, String url) {
            return mode == InitializeSchema.ALWAYS
                    || mode == InitializeSchema.EMBEDDED && url.startsWith("jdbc:h2:mem:");
        }

        private static DataSource only(ObjectProvider<DataSource> dataSources) {
            DataSource only = dataSources.getIfUnique();
            if (only == null) {
                throw new RateLimitConfigurationException(
                        "'backend: jdbc' is set, but there is not exactly one DataSource that leads to the database.",
                        "Set 'spring.datasource.url', or name the bean to use by 'ratelimit.jdbc.data-source'.",
                        "ratelimit.backend");
            }
            return only;
        }

        private static DataSource named(String name, ListableBeanFactory beans) {
            try {
                return beans.getBean(name, DataSource.class);
            } catch (NoSuchBeanDefinitionException unknown) {
                throw new RateLimitConfigurationException(
                        "'ratelimit.jdbc.data-source' is '" + name + "', but no DataSource has this name.",
                        "Set it to one of: " + String.join(", ", beans.getBeanNamesForType(DataSource.class)) + ".",
                        "ratelimit.jdbc.data-source");
            }
        }

        @Bean
        FailoverBucketStore rateLimitJdbcStore(
                JdbcStorage storage, ConfiguredPolicies policies, TimeSource time, Deadline deadline) {
            return SharedBackend.failover(PLACE, storage.store(), policies, time, deadline);
        }

        @Bean
        @Lazy(false)
        JdbcStart rateLimitJdbcStart(JdbcStorage storage, FailoverBucketStore database, ConfiguredPolicies policies) {
            if (policies.uses(BackendKind.REDIS)) {
                throw new RateLimitConfigurationException(
                        "Some policies set 'backend: redis' and others 'backend: jdbc', but an application shares limits in one"
                                + " place.",
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

    /** A condition that matches if {@code backend: jdbc} is set for the application or for a policy. */
    static final class OnJdbcCondition extends OnBackendCondition {

        OnJdbcCondition() {
            super(BackendKind.JDBC);
        }
    }
}
