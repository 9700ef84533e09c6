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
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

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

    @Test
    void anIndexInAnotherFormIsReportedByTheBinder() {
        for (String index : List.of("[99999999999]", "[01]")) {
            assertThatThrownBy(() -> bind(Map.of("[0].keys[0]", "alice", "[0].mode", "off", index + ".keys[0]", "bob")))
                    .rootCause()
                    .isInstanceOf(UnboundConfigurationPropertiesException.class)
                    .hasMessageContaining(OVERRIDES + index + ".keys[0]");
        }
    }

    @Test
    void keysEndBeforeANameWithoutAValue() {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("[0].rate", "1/1m");
        map.put("[0].keys[0]", "alice");
        map.put("[0].keys[1]", null);
        map.put("[0].keys[2]", "bob");

        assertThat(bind(map)).containsExactly(entry("1/1m", null, "alice"));

        map.keySet().removeIf(name -> name.contains("keys"));
        map.put("[0].keys[0][0]", "alice");
        map.put("[0].keys[0][1]", null);

        assertThat(bind(map)).containsExactly(entry("1/1m", null, "alice"));
    }

    @Test
    void aShorterListReplacesALongerOne() {
        Map<String, Object> profile = Map.of("[0].keys[0]", "alice", "[0].rate", "1/1m");
        Map<String, Object> file = new LinkedHashMap<>();
        file.put("[0].keys[0]", "bob");
        file.put("[0].rate", "2/1m");
        file.put("[1].keys[0]", "carol");
        file.put("[1].keys[1][0]", "dave");
        file.put("[1].rate", "3/1m");

        assertThat(bind(profile, file)).containsExactly(entry("1/1m", null, "alice"));
    }

    @Test
    void anEmptyListReplacesAFilledOne() {
        Map<String, Object> file = Map.of("[0].keys[0]", "bob", "[0].rate", "2/1m", "[1].keys[0][0]", "carol");

        assertThat(bind(Map.of("", ""), file)).isEmpty();
    }

    @Test
    void theListOfEnvironmentVariablesReplacesALongerOne() {
        String prefix = "RATELIMIT_POLICIES_API_OVERRIDES_0_";
        SystemEnvironmentPropertySource variables = new SystemEnvironmentPropertySource(
                StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME,
                Map.of(prefix + "KEYS_0", "alice", prefix + "RATE", "1/1m"));
        Map<String, Object> file = new LinkedHashMap<>();
        file.put("[0].keys[0]", "bob");
        file.put("[0].keys[1]", "carol");
        file.put("[0].rate", "2/1m");
        file.put("[1].keys[0]", "dave");
        file.put("[1].rate", "3/1m");

        assertThat(bind(variables, file)).containsExactly(entry("1/1m", null, "alice"));
    }

    @Test
    void anUnknownNameInAReplacedListIsReported() {
        Map<String, Object> profile = Map.of("[0].keys[0]", "alice", "[0].rate", "1/1m");
        for (String unknown : List.of("[1].raet", "[1].keyz[0]", "[x].keys[0]")) {
            assertThatThrownBy(() -> bind(profile, Map.of("[1].keys[0]", "bob", unknown, "1/1m")))
                    .rootCause()
                    .isInstanceOfSatisfying(UnboundConfigurationPropertiesException.class, report -> assertThat(
                                    report.getUnboundProperties())
                            .extracting(property -> property.getName().toString())
                            .containsExactly(OVERRIDES + unknown));
        }
    }

    @Test
    void aSourceThatDoesNotListItsNamesIsAskedForTheFirstOverride() {
        bind(new Unlisted(Map.of()), Map.of("[0].keys[0]", "alice", "[0].rate", "1/1m"));

        assertThat(read).hasSize(2).doesNotHaveDuplicates();

        for (String key : List.of("[0].keys", "[0].keys[0]", "[0].keys[0][0]")) {
            Unlisted unlisted = new Unlisted(Map.of(OVERRIDES + key, "bob", OVERRIDES + "[0].mode", "off"));
            assertThat(bind(unlisted, Map.of("[0].keys[0]", "alice", "[0].rate", "1/1m")))
                    .containsExactly(new OverrideEntry(List.of(List.of(new Text("bob"))), null, null, null, Mode.OFF));
        }
    }

    private static OverrideEntry entry(String rate, @Nullable Mode mode, String key) {
        return new OverrideEntry(List.of(List.of(new Text(key))), Rate.of(rate), null, null, mode);
    }

    @SafeVarargs
    private List<OverrideEntry> bind(Map<String, Object>... sources) {
        return bind(new MapPropertySource("first", Map.of()), sources);
    }

    @SafeVarargs
    private List<OverrideEntry> bind(PropertySource<?> first, Map<String, Object>... sources) {
        StandardEnvironment environment = new StandardEnvironment();
        environment.getPropertySources().remove(StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME);
        environment.getPropertySources().addFirst(new MapPropertySource("rate", Map.of("rate", "9/1s")));
        environment.getPropertySources().addFirst(first);
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
        RateLimitProperties properties = Binder.get(environment, new PropertyBinding().apply(unknown))
                .bind(RateLimitProperties.PREFIX, RateLimitProperties.class)
                .get();
        return Objects.requireNonNull(properties.policies().get("api")).overrides();
    }

    /** A source that doesn't list its names, such as JNDI. */
    private static final class Unlisted extends PropertySource<Map<String, Object>> {

        Unlisted(Map<String, Object> properties) {
            super("unlisted", properties);
        }

        @Override
        public @Nullable Object getProperty(String name) {
            return getSource().get(name);
        }
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
