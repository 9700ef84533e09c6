package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.policy.BackendProperties.Jdbc;
import io.ratelimit.policy.BackendProperties.Redis;
import io.ratelimit.policy.RateLimitProperties.ClientAddress;
import io.ratelimit.policy.RateLimitProperties.Demand;
import io.ratelimit.policy.RateLimitProperties.Filter;
import io.ratelimit.policy.RateLimitProperties.GuaranteedShare;
import io.ratelimit.policy.RateLimitProperties.NamedShare;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.policy.RateLimitProperties.Tier;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.lang.reflect.RecordComponent;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.configurationmetadata.ConfigurationMetadataProperty;
import org.springframework.boot.configurationmetadata.ConfigurationMetadataRepository;
import org.springframework.boot.configurationmetadata.ConfigurationMetadataRepositoryJsonBuilder;
import org.springframework.boot.configurationmetadata.Hints;
import org.springframework.boot.configurationmetadata.ValueHint;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.bind.Name;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;
import org.springframework.boot.json.JsonParserFactory;
import org.springframework.core.ResolvableType;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;
import org.springframework.util.StringUtils;

/**
 * The metadata from which an editor completes and describes properties. The metadata contains the properties of the
 * application. Its format has no place for the values of maps, so it doesn't contain the properties of a policy: an editor
 * reads them, and their descriptions, from the source of the record that is the type of the values, or from
 * {@link PolicyDescription}.
 */
class ConfigurationMetadataTests {

    private static final Map<String, Function<RateLimitProperties, Object>> ENUMS = Map.of(
            "mode", RateLimitProperties::mode,
            "headers", RateLimitProperties::headers,
            "backend", RateLimitProperties::backend,
            "on-backend-failure", RateLimitProperties::onBackendFailure,
            "redis.strategy", properties -> properties.redis().strategy(),
            "jdbc.initialize-schema", properties -> properties.jdbc().initializeSchema());

    private static final Path FILE = Path.of(URI.create(RateLimitProperties.class
                    .getProtectionDomain()
                    .getCodeSource()
                    .getLocation()
                    .toString()))
            .resolve("META-INF/spring-configuration-metadata.json");

    private final Map<String, Object> metadata =
            JsonParserFactory.getJsonParser().parseMap(text(FILE));

    @Test
    void everyPropertyIsThere() {
        assertThat(items("properties").keySet())
                .filteredOn(name -> name.startsWith("ratelimit."))
                .containsExactlyInAnyOrderElementsOf(Stream.concat(
                                PolicyNames.namesOf(RateLimitProperties.class).stream()
                                        .filter(name -> !List.of("client-ip", "filter", "redis", "jdbc", "demand")
                                                .contains(name)),
                                Map.of(
                                                "client-ip.", ClientAddress.class,
                                                "filter.", Filter.class,
                                                "redis.", Redis.class,
                                                "jdbc.", Jdbc.class,
                                                "demand.", Demand.class)
                                        .entrySet()
                                        .stream()
                                        .flatMap(nested -> PolicyNames.namesOf(nested.getValue()).stream()
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
    void everyGroupHasADescription() {
        assertThat(items("groups"))
                .isNotEmpty()
                .allSatisfy((name, group) ->
                        assertThat((String) group.get("description")).as(name).matches("[A-Z].*\\."));
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
                .containsEntry("ratelimit.jdbc.table", "ratelimit_bucket")
                .containsEntry("ratelimit.jdbc.timeout", "100ms")
                .containsEntry("ratelimit.jdbc.pool-size", 8)
                .containsEntry("ratelimit.jdbc.initialize-schema", "embedded")
                .containsEntry("ratelimit.headers", "draft-11")
                .containsEntry("ratelimit.exclude-paths", List.of())
                .containsEntry("ratelimit.client-ip.trusted-proxies", List.of())
                .containsEntry("ratelimit.client-ip.header", "x-forwarded-for")
                .containsEntry("ratelimit.client-ip.ipv6-prefix", 64)
                .containsEntry("ratelimit.filter.after-authentication-order", null)
                .containsEntry("ratelimit.policies", null);
    }

    /** A value hint of the map would be completed instead of the names of a policy's properties. */
    @Test
    void aReaderFindsTheTypesOfAPolicy() throws IOException {
        ConfigurationMetadataRepository repository;
        try (InputStream file = Files.newInputStream(FILE)) {
            repository = ConfigurationMetadataRepositoryJsonBuilder.create(file).build();
        }
        ConfigurationMetadataProperty policies = repository.getAllProperties().get("ratelimit.policies");
        Hints hints = policies.getHints();

        assertThat(policies.getType()).isEqualTo("java.util.Map<java.lang.String," + Policy.class.getName() + ">");
        assertThat(hints.getKeyHints()).extracting(ValueHint::getValue).contains("per-user");
        assertThat(hints.getValueHints()).isEmpty();
        assertThat(hints.getValueProviders()).singleElement().satisfies(provider -> {
            assertThat(provider.getName()).isEqualTo("handle-as");
            assertThat(provider.getParameters())
                    .containsOnly(Map.entry(
                            "target", "java.util.Map<java.lang.String," + PolicyDescription.class.getName() + ">"));
        });
    }

    /** Spring Tools would read a name such as {@code ratelimit.policies.*.rate} instead of the types, in YAML. */
    @Test
    void noPropertyIsBelowTheMap() {
        assertThat(items("properties").keySet()).noneMatch(name -> name.startsWith("ratelimit.policies."));
    }

    @Test
    void everyHintIsForAProperty() {
        assertThat(items("hints").keySet())
                .containsExactlyInAnyOrder(
                        "ratelimit.mode",
                        "ratelimit.backend",
                        "ratelimit.on-backend-failure",
                        "ratelimit.redis.strategy",
                        "ratelimit.jdbc.initialize-schema",
                        "ratelimit.headers",
                        "ratelimit.client-ip.header",
                        "ratelimit.policies",
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
        Map<Object, String> lines = Map.of(
                "x-forwarded-for", "198.51.100.1, 203.0.113.7, 10.0.0.2",
                "forwarded", "for=198.51.100.1, for=203.0.113.7",
                "x-real-ip", "203.0.113.7",
                "cf-connecting-ip", "203.0.113.7");
        assertThat(values(hints.get("ratelimit.client-ip.header"))).containsExactlyInAnyOrderElementsOf(lines.keySet());
        lines.forEach((header, line) -> assertThat(bind(Map.of(
                                "ratelimit.client-ip.header",
                                header,
                                "ratelimit.client-ip.trusted-proxies",
                                "10.0.0.0/8"))
                        .clientIp()
                        .toClientIp()
                        .resolve(
                                "10.0.0.1",
                                name -> Collections.enumeration(name.equals(header) ? List.of(line) : List.of())))
                .isEqualTo("203.0.113.7"));
        for (Object name : values(hints.get("ratelimit.policies.keys"))) {
            assertThat(bind("ratelimit.policies." + name + ".rate", "5/s").policies())
                    .containsOnlyKeys(name.toString());
        }
    }

    @ParameterizedTest
    @MethodSource("records")
    void everyPropertyOfAPolicyHasTheSameTextForEachEditor(Class<? extends Record> type, Class<?> description) {
        assertThat(textsOfComponents(type))
                .containsOnlyKeys(names(type))
                .isEqualTo(textsOfGetters(description))
                .allSatisfy((name, text) -> assertThat(text)
                        .as(name)
                        .matches("[A-Z][^.].*")
                        .containsPattern("\\. (Required|Default: .+)[^.]*\\.$"));
        assertThat(description.getDeclaredMethods())
                .allSatisfy(getter -> assertThat(getter.getModifiers()).matches(Modifier::isPublic, "public"));
    }

    /** The editors of Spring Tools take any other type for a nested bean, and complete a line break after the name. */
    @ParameterizedTest
    @MethodSource("records")
    void everyPropertyOfAPolicyHasATypeThatEditorsComplete(Class<? extends Record> type, Class<?> description) {
        for (RecordComponent component : type.getRecordComponents()) {
            ResolvableType shown =
                    ResolvableType.forMethodReturnType(getter(description, name(type, component.getName())));
            Class<?> bound = ClassUtils.resolvePrimitiveIfNecessary(component.getType());
            if (bound.isEnum() || bound.getName().startsWith("java.lang.")) {
                assertThat(shown.resolve()).as(component.getName()).isEqualTo(bound);
            } else if (Collection.class.isAssignableFrom(bound) || Map.class.isAssignableFrom(bound)) {
                assertThat(shown.resolve()).as(component.getName()).isEqualTo(bound);
                assertThat(shown.getGenerics()[shown.getGenerics().length - 1].toString())
                        .as(component.getName())
                        .matches("java\\.lang\\.String|java\\.util\\.List<java\\.lang\\.String>|"
                                + Pattern.quote(PolicyDescription.class.getName()) + "\\$.*");
            } else {
                assertThat(shown.resolve())
                        .as(component.getName())
                        .isIn(String.class, Duration.class, PolicyDescription.GuaranteedShare.class);
            }
        }
    }

    @Test
    void everyDefaultOfAPolicyIsInItsText() {
        Policy policy = bind("ratelimit.policies.api.rate", "5/s").policies().get("api");

        Map<String, String> texts = textsOfComponents(Policy.class);
        assertThat(Policy.class.getRecordComponents())
                .filteredOn(component -> !component.getName().equals("rate"))
                .allSatisfy(component -> {
                    Object value = ReflectionUtils.invokeMethod(component.getAccessor(), policy);
                    String text = value == null || value instanceof Collection || value instanceof Map
                            ? ""
                            : Pattern.quote(value.toString()
                                            .toLowerCase(Locale.ROOT)
                                            .replace('_', '-')) + "[.,]";
                    assertThat(texts.get(component.getName())).containsPattern("\\. Default: " + text);
                });
        assertThat(texts.get("queueLimit")).endsWith(" Default: " + ThrottlePolicy.DEFAULT_QUEUE_LIMIT + ".");
        assertThat(texts.get("rate")).endsWith(" Required, unless in-flight is set.");
    }

    @ParameterizedTest
    @MethodSource("records")
    void everyValueOfAnEnumIsInTheTextAndHasOneOfItsOwn(Class<? extends Record> type) {
        Map<String, String> texts = textsOfComponents(type);
        for (RecordComponent component : type.getRecordComponents()) {
            for (Object constant :
                    component.getType().isEnum() ? component.getType().getEnumConstants() : new Object[0]) {
                String name = constant.toString().toLowerCase(Locale.ROOT).replace('_', '-');
                assertThat(texts.get(component.getName())).containsPattern("\\b" + name + "\\b");
                assertThat(source(component.getType())).containsPattern("\\*/\\s+" + constant + "\\b");
            }
        }
    }

    /** The editors have no other hints for values that are no constants. */
    @Test
    void everyOtherValueOfAPolicyHasExamplesInItsText() {
        Map<String, List<String>> examples = Map.ofEntries(
                Map.entry("rate", List.of("600/1m", "10/s", "600/minute", "1/2s")),
                Map.entry("capacity", List.of("800")),
                Map.entry("inFlight", List.of("4")),
                Map.entry("cost", List.of("5", "query('limit') ?: 20")),
                Map.entry("maxCost", List.of("50")),
                Map.entry("limit", List.of("bean:NAME")),
                Map.entry("zone", List.of("Europe/Berlin")),
                Map.entry("settle", List.of("attribute:NAME", "response-header:NAME", "code")),
                Map.entry("tier", List.of("role", "header:X-Plan", "bean:NAME", "expression:SPEL")),
                Map.entry(
                        "key",
                        List.of(
                                "ip",
                                "user",
                                "endpoint",
                                "method",
                                "session",
                                "header:NAME",
                                "cookie:NAME",
                                "query:NAME",
                                "path-variable:NAME",
                                "claim:NAME",
                                "bean:NAME",
                                "expression:SPEL")),
                Map.entry("maxKeys", List.of("1000000")),
                Map.entry("paths", List.of("/orders/**")),
                Map.entry("excludePaths", List.of("/orders/{id}/paid")),
                Map.entry("methods", List.of("POST")),
                Map.entry("condition", List.of("!roles.contains('ADMIN')")),
                Map.entry("maxWait", List.of("2s", "500ms")),
                Map.entry("queueLimit", List.of("50")),
                Map.entry("refundOn", List.of("authenticated", "404", "5xx", "!401")),
                Map.entry("rejectionDelay", List.of("2s")),
                Map.entry("retryJitter", List.of("1ms-5ms")),
                Map.entry("status", List.of("503")),
                Map.entry("lease", List.of("50ms")));
        Map<String, String> texts = textsOfComponents(Policy.class);

        assertThat(Stream.of(Policy.class.getRecordComponents())
                        .filter(component -> !component.getType().isEnum() && component.getType() != boolean.class)
                        .map(RecordComponent::getName))
                .as("the others are lists and maps of records")
                .containsExactlyInAnyOrderElementsOf(Stream.concat(
                                examples.keySet().stream(), Stream.of("tiers", "guaranteed", "shares", "overrides"))
                        .toList());
        examples.forEach((name, values) -> {
            String property = "ratelimit.policies.api." + DataObjectPropertyName.toDashedForm(name);
            assertThat(texts.get(name)).contains(values);
            assertThat(values).allSatisfy(value -> assertThat(bind(property, value.replace("SPEL", "user"))
                            .policies()
                            .get("api"))
                    .extracting(name)
                    .isNotNull());
        });
    }

    @ParameterizedTest
    @CsvSource({
        "configuration.md, ratelimit.,               RateLimitProperties",
        "configuration.md, ratelimit.policies.NAME., RateLimitProperties$Policy",
        "configuration.md, ….tiers.NAME.,            RateLimitProperties$Tier",
        "configuration.md, ….overrides[0].,          RateLimitProperties$OverrideEntry",
        "shares.md,        ….guaranteed.,            RateLimitProperties$GuaranteedShare",
        "shares.md,        ….shares.NAME.,           RateLimitProperties$NamedShare",
        "proxy.md,         ratelimit.client-ip.,     RateLimitProperties$ClientAddress",
        "redis.md,         ratelimit.redis.,         BackendProperties$Redis",
        "database.md,      ratelimit.jdbc.,          BackendProperties$Jdbc"
    })
    void theTablesOfTheDocumentationHaveTheTextsOfTheEditors(String page, String prefix, String type)
            throws ClassNotFoundException {
        String text = text(Path.of("../docs", page));
        String head = "| property (`" + prefix + "…`) | meaning |\n|---|---|\n";
        assertThat(text).contains(head);
        String table = text.substring(text.indexOf(head) + head.length()).split("\n\n")[0];
        Map<String, String> expected = new HashMap<>();
        Class<?> owner = Class.forName(getClass().getPackageName() + "." + type);
        textsOfComponents(owner)
                .forEach((name, meaning) -> expected.put(DataObjectPropertyName.toDashedForm(name), meaning));

        assertThat(table.lines()
                        .map(row -> row.replace("`", "").split(" *\\| *"))
                        .filter(cells -> !cells[1].contains("."))
                        .collect(Collectors.toMap(cells -> cells[1], cells -> cells[2])))
                .isEqualTo(expected);
    }

    private static Stream<Arguments> records() {
        return Stream.of(
                Arguments.of(Policy.class, PolicyDescription.class),
                Arguments.of(Tier.class, PolicyDescription.Tier.class),
                Arguments.of(GuaranteedShare.class, PolicyDescription.GuaranteedShare.class),
                Arguments.of(NamedShare.class, PolicyDescription.NamedShare.class),
                Arguments.of(OverrideEntry.class, PolicyDescription.OverrideEntry.class));
    }

    private static String[] names(Class<? extends Record> type) {
        return Stream.of(type.getRecordComponents())
                .map(component -> name(type, component.getName()))
                .toArray(String[]::new);
    }

    /** Returns the name of a component, or the one that it is bound by instead. */
    private static String name(Class<?> type, String component) {
        Parameter parameter = Stream.of(type.getDeclaredConstructors()[0].getParameters())
                .filter(candidate -> candidate.getName().equals(component))
                .findFirst()
                .orElseThrow();
        Name name = parameter.getAnnotation(Name.class);
        return name == null ? component : name.value();
    }

    private static Method getter(Class<?> description, String property) {
        Method getter = ReflectionUtils.findMethod(description, "get" + StringUtils.capitalize(property));
        assertThat(getter).as(property).isNotNull();
        return getter;
    }

    /** Returns the texts of the components by their names, from the Javadoc of the record. */
    private static Map<String, String> textsOfComponents(Class<?> type) {
        String before = source(type).split(" record " + type.getSimpleName() + "\\(")[0];
        Map<String, String> texts = new HashMap<>();
        texts("@param (?<name>\\w+)\\s(?<text>.*?)(?=@param|\\*/)", before.substring(before.lastIndexOf("/**\n")))
                .forEach((component, text) -> texts.put(name(type, component), text));
        return texts;
    }

    /** Returns the texts of the getters by the names of the properties, from their Javadoc. */
    private static Map<String, String> textsOfGetters(Class<?> type) {
        String body =
                source(type).split("class " + type.getSimpleName() + " ")[1].split("\\bclass ")[0];
        return texts("/\\*\\*(?<text>(?:(?!\\*/).)*)\\*/\\s+public abstract [^;]* get(?<name>\\w+)\\(", body);
    }

    private static Map<String, String> texts(String pattern, String source) {
        Map<String, String> texts = new HashMap<>();
        Matcher found = Pattern.compile(pattern, Pattern.DOTALL).matcher(source);
        while (found.find()) {
            String text = found.group("text").replaceAll("\\R\\s+\\*", " ").replaceAll("\\s+", " ");
            texts.put(StringUtils.uncapitalize(found.group("name")), text.strip());
        }
        return texts;
    }

    /** Returns the source of the file that has the type. */
    private static String source(Class<?> type) {
        String file = type.getName().replaceFirst("\\$.*", "").replace('.', '/') + ".java";
        return Stream.of(
                        "src/main/java",
                        "target/generated-sources/policy",
                        "../ratelimit-core/src/main/java",
                        "../ratelimit-remote/src/main/java")
                .map(folder -> Path.of(folder, file))
                .filter(Files::exists)
                .findFirst()
                .map(ConfigurationMetadataTests::text)
                .orElseThrow(() -> new AssertionError("no " + file));
    }

    private static String text(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private static RateLimitProperties bind(String property, Object value) {
        return bind(Map.of(property, value));
    }

    private static RateLimitProperties bind(Map<String, Object> properties) {
        return new Binder(new MapConfigurationPropertySource(properties))
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
}
