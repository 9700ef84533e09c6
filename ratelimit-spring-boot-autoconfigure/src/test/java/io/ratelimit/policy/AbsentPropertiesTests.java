package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.policy.RateLimitProperties.Policy;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

class AbsentPropertiesTests {

    private final Set<String> read = new HashSet<>();

    private final PropertySource<?> yaml =
            new MapPropertySource("yaml", Map.of("ratelimit.policies.per-ip.maxKeys", "7")) {
                @Override
                public @Nullable Object getProperty(String name) {
                    read.add(name);
                    return super.getProperty(name);
                }
            };

    @Test
    void aPropertyThatNoSourceContainsIsReadFromNone() {
        assertThat(bind(yaml).maxKeys()).isEqualTo(7);
        assertThat(read)
                .contains("ratelimit.policies.per-ip.maxKeys")
                .doesNotContain("ratelimit.policies.per-ip.queue-limit", "ratelimit.policies.per-ip.paths");
    }

    @Test
    void aPropertyOfAnotherSourceIsRead() {
        Policy policy = bind(
                new MapPropertySource("first", Map.of("ratelimit.policies.perIp.queue-limit", "3")),
                yaml,
                new MapPropertySource("last", Map.of("ratelimit.policies.per-ip.paths[0]", "/a")));

        assertThat(policy.maxKeys()).isEqualTo(7);
        assertThat(policy.queueLimit()).isEqualTo(3);
        assertThat(policy.paths()).containsExactly("/a");
    }

    @Test
    void anEnvironmentVariableIsReadByEachOfItsNames() {
        Policy policy = bind(
                new SystemEnvironmentPropertySource(
                        StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME,
                        Map.of("RATELIMIT_POLICIES_PER_IP_QUEUE_LIMIT", "3", "RATELIMIT_POLICIES_PERIP_STATUS", "503")),
                yaml);

        assertThat(policy.maxKeys()).isEqualTo(7);
        assertThat(policy.queueLimit()).isEqualTo(3);
        assertThat(policy.status()).isEqualTo(503);
    }

    private static Policy bind(PropertySource<?>... sources) {
        StandardEnvironment environment = new StandardEnvironment();
        environment
                .getPropertySources()
                .forEach(source -> environment.getPropertySources().remove(source.getName()));
        for (PropertySource<?> source : sources) {
            environment.getPropertySources().addLast(source);
        }
        RateLimitProperties properties = Binder.get(environment, new PropertyBinding().apply(BindHandler.DEFAULT))
                .bind(RateLimitProperties.PREFIX, RateLimitProperties.class)
                .get();
        return Objects.requireNonNull(properties.policies().get("per-ip"));
    }
}
