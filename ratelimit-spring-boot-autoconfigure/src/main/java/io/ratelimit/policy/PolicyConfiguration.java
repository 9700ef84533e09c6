package io.ratelimit.policy;

import io.ratelimit.Rate;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.KeyPart;
import io.ratelimit.policy.BackendProperties.Jdbc;
import io.ratelimit.policy.ConfiguredPolicies.ConfiguredPolicy;
import io.ratelimit.policy.RateLimitProperties.ClientAddress;
import java.time.Duration;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.boot.context.properties.ConfigurationPropertiesBinding;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.ConfigurableEnvironment;

/** Configuration of the policies below {@code ratelimit}, imported by the auto-configuration of the throttlers. */
@Configuration(proxyBeanMethods = false)
@EnableConfigurationProperties(RateLimitProperties.class)
@Lazy(false)
public class PolicyConfiguration {

    /** The name of the bean that wraps the application's own bucket store. It is injected by its name only. */
    public static final String OWN_STORE = "rateLimitCustomStore";

    private static final int MAX_CONNECTIONS = 100;

    /** A name that needs no quotes in any database: it becomes a part of statements. */
    private static final Pattern TABLE = Pattern.compile("([A-Za-z_][A-Za-z0-9_]*\\.)?[A-Za-z_][A-Za-z0-9_]*");

    private final RateLimitProperties properties;
    private final List<ConfiguredPolicy> policies;

    /** Checks and reads all policies here, so that a mistake stops every application, also one with its own beans. */
    PolicyConfiguration(
            RateLimitProperties properties, ConfigurableEnvironment environment, ListableBeanFactory beans) {
        PolicyNames.check(properties.policies().keySet(), environment);
        check(properties.clientIp());
        check("redis", properties.redis());
        check(properties.jdbc());
        this.properties = properties;
        this.policies = PolicyReader.read(properties, beans.containsBean(OWN_STORE));
    }

    @Bean
    @ConfigurationPropertiesBinding
    static PropertyBinding rateLimitPropertyBinding() {
        return new PropertyBinding();
    }

    @Bean(ConfiguredPolicies.BEAN_NAME)
    ConfiguredPolicies rateLimitConfiguredPolicies(ListableBeanFactory beans, FailureListener failures) {
        return new ConfiguredPolicies(properties, policies, beans, failures);
    }

    static void check(ClientAddress clientIp) {
        int prefix = clientIp.ipv6Prefix();
        check(
                prefix >= 32 && prefix <= 128,
                "client-ip.ipv6-prefix",
                prefix,
                "must be between 32 and 128, but was " + prefix);
        check(
                KeyPart.isToken(clientIp.header()),
                "client-ip.header",
                clientIp.header(),
                "must be the name of a header, such as 'x-forwarded-for'");
    }

    /** @throws InvalidConfigurationPropertyValueException if a value can't be used */
    static void check(Jdbc jdbc) {
        check("jdbc", jdbc);
        check(
                jdbc.poolSize() >= 1 && jdbc.poolSize() <= MAX_CONNECTIONS,
                "jdbc.pool-size",
                jdbc.poolSize(),
                "must be between 1 and " + MAX_CONNECTIONS + ", but was " + jdbc.poolSize());
        check(
                TABLE.matcher(jdbc.table()).matches(),
                "jdbc.table",
                jdbc.table(),
                "must be a name of letters, digits and underscores, with a schema before a dot if it has one");
    }

    private static void check(String backend, BackendProperties properties) {
        Duration timeout = PolicyReader.valid(
                RateLimitProperties.PREFIX + "." + backend + ".timeout", properties.timeout(), properties::longestWait);
        check(
                timeout.compareTo(Duration.ofMillis(1)) >= 0 && timeout.compareTo(Duration.ofSeconds(10)) <= 0,
                backend + ".timeout",
                properties.timeout(),
                "must be between 1ms and 10s, but was " + Rate.format(timeout)
                        + ": it is the longest time that a request waits for the backend");
        double localShare = properties.localShare();
        check(
                localShare > 0 && localShare <= 1,
                backend + ".local-share",
                localShare,
                "must be above 0 and at most 1, but was " + localShare + ": set 0.25 for four instances");
        checkText(
                backend + ".key-prefix",
                properties.keyPrefix(),
                "must not be blank: remove it to use the name of the application");
        checkText(
                backend + ".key-secret",
                properties.keySecret(),
                "must not be blank, because it would hide nothing: remove it to use none");
    }

    /** Checks a text that isn't converted: a placeholder without a value would be the same text in all applications. */
    private static void checkText(String property, @Nullable String text, String requirement) {
        check(text == null || !text.isBlank(), property, text, requirement);
        String placeholder = BadValue.placeholder(text);
        check(placeholder == null, property, placeholder, "must not have a placeholder without a value");
    }

    private static void check(boolean valid, String property, @Nullable Object value, String requirement) {
        if (!valid) {
            throw new InvalidConfigurationPropertyValueException(
                    RateLimitProperties.PREFIX + "." + property,
                    value,
                    property.substring(property.indexOf('.') + 1) + " " + requirement);
        }
    }
}
