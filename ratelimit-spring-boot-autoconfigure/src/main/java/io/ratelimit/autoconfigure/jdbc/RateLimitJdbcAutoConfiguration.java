package io.ratelimit.autoconfigure.jdbc;

import io.ratelimit.Backend;
import io.ratelimit.BucketStore;
import io.ratelimit.ChangeBoard;
import io.ratelimit.TimeSource;
import io.ratelimit.actuate.RateLimitsEndpoint;
import io.ratelimit.autoconfigure.OnBackendCondition;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.jdbc.JdbcStorage;
import io.ratelimit.jdbc.JdbcStorage.CreateTable;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitEnabledCondition;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.BackendKind;
import io.ratelimit.policy.RateLimitProperties.Jdbc;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.RoutingBucketStore;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import javax.sql.DataSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.NoSuchBeanDefinitionException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.jdbc.DataSourceBuilder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Condition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Primary;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;
import org.springframework.jdbc.datasource.SimpleDriverDataSource;
import org.springframework.util.ClassUtils;

/** Auto-configuration for policies with their buckets in a database. */
@AutoConfiguration(
        before = RateLimitAutoConfiguration.class,
        afterName = "org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration")
@Conditional({RateLimitEnabledCondition.class, RateLimitJdbcAutoConfiguration.OnJdbcCondition.class})
@EnableConfigurationProperties(RateLimitProperties.class)
@Lazy(false)
public final class RateLimitJdbcAutoConfiguration {

    private static final Log logger = LogFactory.getLog(RateLimitJdbcAutoConfiguration.class);

    /** Buckets in a database, together with those in memory. */
    @Configuration(proxyBeanMethods = false)
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
                            CreateTable.valueOf(jdbc.initializeSchema().name()),
                            jdbc.poolSize(),
                            jdbc.timeout(),
                            jdbc.keyPrefix() == null ? prefix(environment) : jdbc.keyPrefix(),
                            Objects.requireNonNullElse(jdbc.keySecret(), "")),
                    deadline);
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

        private static String prefix(Environment environment) {
            String application = environment.getProperty("spring.application.name", "");
            if (!application.isBlank()) {
                return "ratelimit:" + application;
            }
            logger.warn(
                    "The application has no name: it would share limits with another application without a name that has a"
                            + " policy of the same name in the same table. Set 'spring.application.name' or"
                            + " 'ratelimit.jdbc.key-prefix'");
            return "ratelimit";
        }

        @Bean
        FailoverBucketStore rateLimitJdbcStore(
                JdbcStorage storage, ConfiguredPolicies policies, TimeSource time, Deadline deadline) {
            return new FailoverBucketStore(
                    Objects.requireNonNull(BackendKind.JDBC.place()),
                    storage.store(),
                    BucketStore.local(time),
                    policies.localShare(),
                    policies::failureRule,
                    deadline);
        }

        @Bean
        @Primary
        RoutingBucketStore rateLimitBucketStore(
                FailoverBucketStore database, ConfiguredPolicies policies, TimeSource time) {
            return new RoutingBucketStore(BucketStore.local(time), database, policies::isShared);
        }

        @Bean
        Backend rateLimitBackend(FailoverBucketStore database) {
            return database.backend();
        }

        /** Returns null if all policies in the database are off, since no connection is opened then. */
        @Bean
        @Nullable
        ChangeBoard rateLimitChangeBoard(
                JdbcStorage storage,
                RateLimitProperties properties,
                ConfiguredPolicies policies,
                ListableBeanFactory beans) {
            Boolean wanted = properties.jdbc().changes();
            boolean follows = wanted != null
                    ? wanted
                    : beans.getBeanNamesForType(RateLimitsEndpoint.class, true, false).length > 0;
            return follows && policies.asksShared() ? storage.changes() : null;
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

    /** Something that buckets in a database need isn't on the class path. */
    @Configuration(proxyBeanMethods = false)
    @Conditional(WithoutJdbc.Lacking.class)
    @ConditionalOnMissingBean(BucketStore.class)
    static class WithoutJdbc {

        /** What buckets in a database need: the module and one of its types. */
        private static final Map<String, String> NEEDED = new TreeMap<>(Map.of(
                "ratelimit-jdbc", "io.ratelimit.jdbc.JdbcStorage",
                "spring-boot-jdbc", "org.springframework.boot.jdbc.DataSourceBuilder",
                "spring-jdbc", "org.springframework.jdbc.datasource.SimpleDriverDataSource"));

        @Bean
        BucketStore rateLimitBucketStore() {
            throw new RateLimitConfigurationException(
                    "'backend: jdbc' is set, but these are not on the class path: " + String.join(", ", lacking())
                            + ".",
                    "Add the dependency 'io.ratelimit:ratelimit-spring-boot-starter-jdbc', or keep limits in the memory of"
                            + " each instance: set 'ratelimit.backend: local', and remove 'backend: jdbc' from each"
                            + " policy.",
                    "ratelimit.backend");
        }

        private static List<String> lacking() {
            ClassLoader loader = RateLimitJdbcAutoConfiguration.class.getClassLoader();
            return NEEDED.entrySet().stream()
                    .filter(needed -> !ClassUtils.isPresent(needed.getValue(), loader))
                    .map(Map.Entry::getKey)
                    .toList();
        }

        /** A condition that matches if something is lacking. */
        static final class Lacking implements Condition {

            @Override
            public boolean matches(ConditionContext context, AnnotatedTypeMetadata metadata) {
                return !lacking().isEmpty();
            }
        }
    }

    /** A condition that matches if {@code backend: jdbc} is set for the application or for a policy. */
    static final class OnJdbcCondition extends OnBackendCondition {

        OnJdbcCondition() {
            super(BackendKind.JDBC);
        }
    }
}
