package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.autoconfigure.RateLimitProperties.ClientAddress;
import io.ratelimit.autoconfigure.RateLimitProperties.Filter;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.autoconfigure.RateLimitProperties.Redis;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;
import org.springframework.boot.json.JsonParserFactory;

/**
 * The metadata from which an IDE completes and describes properties. The metadata contains the properties of the
 * application. Its format has no place for the values of maps, so it doesn't contain the properties of a policy: an IDE reads
 * them from the record that is the type of the values, and their descriptions from its Javadoc.
 */
class ConfigurationMetadataTests {

    private static final Map<String, Function<RateLimitProperties, Object>> ENUMS = Map.of(
            "mode", RateLimitProperties::mode,
            "headers", RateLimitProperties::headers,
            "backend", RateLimitProperties::backend,
            "on-backend-failure", RateLimitProperties::onBackendFailure,
            "redis.strategy", properties -> properties.redis().strategy());

    private final Map<String, Object> metadata = read();

    @Test
    void everyPropertyIsThere() {
        assertThat(items("properties").keySet())
                .filteredOn(name -> name.startsWith("ratelimit."))
                .containsExactlyInAnyOrderElementsOf(Stream.concat(
                                RateLimitProperties.namesOf(RateLimitProperties.class).stream()
                                        .filter(name -> !List.of("client-ip", "filter", "redis")
                                                .contains(name)),
                                Map.of(
                                                "client-ip.", ClientAddress.class,
                                                "filter.", Filter.class,
                                                "redis.", Redis.class)
                                        .entrySet()
                                        .stream()
                                        .flatMap(nested -> RateLimitProperties.namesOf(nested.getValue()).stream()
                                                .map(nested.getKey()::concat)))
                        .map("ratelimit."::concat)
                        .toList());
    }

    @Test
    void thePropertiesOfTheActuatorAreDescribed() {
        assertThat(items("properties"))
                .hasEntrySatisfying("management.endpoint.ratelimits.access", property -> assertThat(property)
                        .containsEntry("defaultValue", "read_only"))
                .hasEntrySatisfying("management.endpoint.ratelimits.show-values", property -> assertThat(property)
                        .containsEntry("defaultValue", "never"))
                .containsKey("management.endpoint.ratelimits.roles")
                .hasEntrySatisfying("management.health.ratelimit.enabled", property -> assertThat(property)
                        .containsEntry("defaultValue", true));
    }

    @Test
    void everyPropertyHasADescription() {
        assertThat(items("properties").values()).allSatisfy(property -> assertThat((String) property.get("description"))
                .isNotBlank());
    }

    @Test
    void descriptionsAreSentences() {
        assertThat(items("properties")).allSatisfy((name, property) -> {
            if (name.startsWith("ratelimit.")) {
                assertThat((String) property.get("description")).as(name).matches("(?s)[A-Z].*\\.");
            }
        });
    }

    @Test
    void everyPropertyHasItsDefault() {
        Map<String, Object> defaults = new HashMap<>();
        items("properties").forEach((name, property) -> defaults.put(name, property.get("defaultValue")));

        assertThat(defaults)
                .containsEntry("ratelimit.enabled", true)
                .containsEntry("ratelimit.mode", "enforce")
                .containsEntry("ratelimit.backend", "local")
                .containsEntry("ratelimit.on-backend-failure", "local")
                .containsEntry("ratelimit.redis.timeout", "100ms")
                .containsEntry("ratelimit.redis.strategy", "script")
                .containsEntry("ratelimit.redis.local-share", 1)
                .containsEntry("ratelimit.headers", "draft-11")
                .containsEntry("ratelimit.exclude-paths", List.of())
                .containsEntry("ratelimit.client-ip.trusted-proxies", List.of())
                .containsEntry("ratelimit.client-ip.header", "x-forwarded-for")
                .containsEntry("ratelimit.client-ip.ipv6-prefix", 64)
                .containsEntry("ratelimit.filter.after-authentication-order", null)
                .containsEntry("ratelimit.policies", null);
    }

    /** An IDE finds the properties of a policy by this type. */
    @Test
    void theMapNamesTheRecordOfItsValues() {
        assertThat(items("properties").get("ratelimit.policies"))
                .containsEntry("type", "java.util.Map<java.lang.String," + Policy.class.getName() + ">");
    }

    @Test
    void everyHintIsForAProperty() {
        assertThat(items("hints").keySet())
                .containsExactlyInAnyOrder(
                        "ratelimit.mode",
                        "ratelimit.backend",
                        "ratelimit.on-backend-failure",
                        "ratelimit.redis.strategy",
                        "ratelimit.headers",
                        "ratelimit.client-ip.header",
                        "ratelimit.policies.keys");
    }

    @Test
    void everyValueHintedAtIsRead() {
        Map<String, Map<String, Object>> hints = items("hints");
        ENUMS.forEach((property, read) -> {
            for (Object value : values(hints.get("ratelimit." + property))) {
                assertThat(read.apply(bind("ratelimit." + property, value)))
                        .hasToString(value.toString().toUpperCase(Locale.ROOT).replace('-', '_'));
            }
        });
        for (Object value : values(hints.get("ratelimit.client-ip.header"))) {
            assertThat(bind("ratelimit.client-ip.header", value)
                            .clientIp()
                            .toClientIp()
                            .trusts("203.0.113.7"))
                    .isFalse();
        }
        for (Object name : values(hints.get("ratelimit.policies.keys"))) {
            assertThat(bind("ratelimit.policies." + name + ".rate", "5/s").policies())
                    .containsOnlyKeys(name.toString());
        }
    }

    @Test
    void everyPropertyOfAPolicyHasAText() throws IOException {
        Path file = Path.of("src/main/java", RateLimitProperties.class.getName().replace('.', '/') + ".java");
        String before = Files.readString(file).split("public record Policy\\(")[0];
        String javadoc = before.substring(before.lastIndexOf("/**"));

        assertThat(Policy.class.getRecordComponents()).allSatisfy(component -> assertThat(javadoc)
                .containsPattern("@param " + component.getName() + " [A-Z1]\\w*"));
    }

    private static RateLimitProperties bind(String property, Object value) {
        return new Binder(new MapConfigurationPropertySource(Map.of(property, value)))
                .bindOrCreate("ratelimit", RateLimitProperties.class);
    }

    private static List<Object> values(Map<String, Object> hint) {
        return maps(hint.get("values")).map(value -> value.get("value")).toList();
    }

    private Map<String, Map<String, Object>> items(String kind) {
        Map<String, Map<String, Object>> items = new HashMap<>();
        maps(metadata.get(kind)).forEach(item -> items.put((String) item.get("name"), item));
        return items;
    }

    @SuppressWarnings("unchecked")
    private static Stream<Map<String, Object>> maps(Object list) {
        return ((List<Map<String, Object>>) list).stream();
    }

    private static Map<String, Object> read() {
        try {
            Path file = Path.of("target/classes/META-INF/spring-configuration-metadata.json");
            return JsonParserFactory.getJsonParser().parseMap(Files.readString(file));
        } catch (IOException missing) {
            throw new UncheckedIOException(missing);
        }
    }
}
