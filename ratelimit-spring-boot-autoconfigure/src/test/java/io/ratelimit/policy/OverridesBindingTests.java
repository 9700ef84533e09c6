package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry.Text;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.bind.handler.NoUnboundElementsBindHandler;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.convert.ApplicationConversionService;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.StandardEnvironment;

class OverridesBindingTests {

    private static final String OVERRIDES = "ratelimit.policies.api.overrides";

    private final List<String> read = new ArrayList<>();

    @Test
    void aTextIsReadOnceFromItsSource() {
        Map<String, Object> yaml = new LinkedHashMap<>();
        for (int i = 0; i < 100; i++) {
            yaml.put("[" + i + "].keys[0]", "user-" + i);
            yaml.put("[" + i + "].rate", i + 1 + "/1m");
        }

        List<OverrideEntry> overrides = bind(yaml);

        assertThat(overrides).hasSize(100);
        assertThat(overrides.get(99)).isEqualTo(entry("100/1m", null, "user-99"));
        assertThat(read).doesNotHaveDuplicates();
    }

    @Test
    void allPropertiesAreReadInAnyOrder() {
        Map<String, Object> yaml = new LinkedHashMap<>();
        yaml.put("[1].mode", "shadow");
        yaml.put("[1].keys[1]", "carol");
        yaml.put("[1].keys[0][1]", "GET /b");
        yaml.put("[1].keys[0][0]", "bob");
        yaml.put("[0].in-flight", 4);
        yaml.put("[0].capacity", 8);
        yaml.put("[0].rate", "${rate}");
        yaml.put("[0].keys", "alice");

        List<OverrideEntry> overrides = bind(yaml);

        List<Text> parts = List.of(new Text("bob"), new Text("GET /b"));
        assertThat(overrides)
                .containsExactly(
                        new OverrideEntry(List.of(List.of(new Text("alice"))), Rate.of("9/1s"), 8L, 4, null),
                        new OverrideEntry(List.of(parts, List.of(new Text("carol"))), null, null, null, Mode.SHADOW));
    }

    @Test
    void theFirstSourceHasTheWholeList() {
        Map<String, Object> first = Map.of("[0].keys[0]", "alice", "[0].rate", "1/1m");
        Map<String, Object> second = Map.of("[0].keys[0]", "bob", "[0].mode", "off", "[1].mode", "off");

        assertThat(bind(first, second)).containsExactly(entry("1/1m", null, "alice"));
    }

    @Test
    void aListWithAGapIsReportedByTheBinder() {
        assertThatThrownBy(() -> bind(
                        Map.of("[0].keys[0]", "alice", "[0].mode", "off", "[2].keys[0]", "bob", "[2].mode", "off")))
                .rootCause()
                .isInstanceOf(UnboundConfigurationPropertiesException.class)
                .hasMessageContaining(OVERRIDES + "[2].keys[0]");
        assertThatThrownBy(() -> bind(Map.of("[0].mode", "off", "[0].keys[0]", "alice", "[0].keys[2]", "bob")))
                .rootCause()
                .isInstanceOf(UnboundConfigurationPropertiesException.class)
                .hasMessageContaining(OVERRIDES + "[0].keys[2]");
    }

    @Test
    void anUnknownNameIsReported() {
        Map<String, Object> yaml = new LinkedHashMap<>();
        yaml.put("[0].keys[0]", "alice");
        yaml.put("[0].mode", "off");
        yaml.put("[1].keys[0]", "bob");
        yaml.put("[1].mode", "off");
        yaml.put("[1].raet", "1/1m");

        assertThatThrownBy(() -> bind(yaml))
                .rootCause()
                .isInstanceOfSatisfying(UnboundConfigurationPropertiesException.class, unknown -> assertThat(
                                unknown.getUnboundProperties())
                        .extracting(property -> property.getName().toString())
                        .containsExactly(OVERRIDES + "[1].raet"));
    }

    private static OverrideEntry entry(String rate, @Nullable Mode mode, String key) {
        return new OverrideEntry(List.of(List.of(new Text(key))), Rate.of(rate), null, null, mode);
    }

    @SafeVarargs
    private List<OverrideEntry> bind(Map<String, Object>... sources) {
        StandardEnvironment environment = new StandardEnvironment();
        environment.getPropertySources().remove(StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME);
        environment.getPropertySources().addFirst(new MapPropertySource("rate", Map.of("rate", "9/1s")));
        for (Map<String, Object> source : sources) {
            Map<String, Object> properties = new LinkedHashMap<>();
            source.forEach((name, value) -> properties.put(OVERRIDES + name, value));
            environment
                    .getPropertySources()
                    .addLast(new Recorded("source" + environment.hashCode() + properties, properties));
        }
        ConfigurationPropertySources.attach(environment);
        ApplicationConversionService conversion = new ApplicationConversionService();
        conversion.addConverter(new PropertyBinding());
        environment.setConversionService(conversion);
        BindHandler unknown = new NoUnboundElementsBindHandler(BindHandler.DEFAULT);
        RateLimitProperties properties = Binder.get(environment, new PolicyBindHandler(unknown))
                .bind(RateLimitProperties.PREFIX, RateLimitProperties.class)
                .get();
        return Objects.requireNonNull(properties.policies().get("api")).overrides();
    }

    /** Records the properties that are read. */
    private final class Recorded extends MapPropertySource {

        Recorded(String name, Map<String, Object> properties) {
            super(name, properties);
        }

        @Override
        public @Nullable Object getProperty(String name) {
            Object value = super.getProperty(name);
            if (value != null) {
                read.add(name);
            }
            return value;
        }
    }
}
