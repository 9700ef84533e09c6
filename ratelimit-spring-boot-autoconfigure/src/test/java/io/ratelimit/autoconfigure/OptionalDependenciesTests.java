package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Throttlers;
import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.util.ClassUtils;

/** Starts applications in JVMs of their own, whose class path really lacks what is optional. */
@Tag("slow")
class OptionalDependenciesTests {

    private static final String TEST_TOOLS =
            "junit.*|assertj.*|archunit.*|spring-test|spring-boot-.*test.*|byte-buddy.*"
                    + "|hamcrest|awaitility|jsonassert|json-path|json-smart|xmlunit.*|opentest4j|apiguardian.*|accessors-smart|asm";
    private static final String SECURITY = "spring-security-.*|spring-boot-(starter-)?security.*";
    private static final String ACTUATOR =
            "spring-boot-(starter-)?(actuator|micrometer).*|spring-boot-health|micrometer-(core|jakarta9|registry-.*)"
                    + "|prometheus-.*";
    private static final String REDIS = "lettuce-core|spring-data-redis|spring-boot-(starter-)?data-redis|netty-.*";
    private static final String JACKSON = "jackson-.*|spring-boot-(starter-)?jackson";

    @TempDir
    private Path directory;

    @Test
    void aWebApplicationNeedsNeitherSpringSecurityNorActuatorNorJacksonNorRedis() throws Exception {
        String output = run(WebApplication.class, without(TEST_TOOLS, SECURITY, ACTUATOR, JACKSON, REDIS));

        assertThat(output)
                .contains("SEES [jakarta.servlet.Filter, org.springframework.web.context.WebApplicationContext,"
                        + " org.springframework.web.servlet.DispatcherServlet]")
                .contains("site: 1/1d, capacity 1, one bucket; all requests; before authentication")
                .contains(
                        "Throttle policy 'tenants' is keyed by claim:tenant, but Spring Security's OAuth2 is not on the"
                                + " class path: 'on-missing-key' decides for all requests")
                .contains("Throttle policy 'roles' selects tiers by role, but Spring Security is not on the class path:"
                        + " no request has one")
                .contains("Throttle policy 'shared' guarantees shares by user, but Spring Security is not on the class"
                        + " path: unless something else authenticates, no request has one")
                .contains("ANSWERS 404 429 application/problem+json");
    }

    /** Authenticates without OAuth2, and with the part of it that applications with an OAuth2 login have. */
    @ParameterizedTest
    @ValueSource(strings = {"spring-security-oauth2-.*", "spring-security-oauth2-(resource-server|jose)"})
    void claimsNeedNoResourceServer(String lacking) throws Exception {
        String output = run(
                WebApplication.class,
                without(TEST_TOOLS, ACTUATOR, REDIS, lacking, "spring-boot-(starter-)?security-oauth2-.*|nimbus-.*"),
                "--spring.security.user.name=user",
                "--spring.security.user.password=secret");

        assertThat(output).contains("ANSWERS 404 429 application/problem+json");
        assertThat(output.contains("OAuth2 is not on the class path")).isEqualTo(lacking.endsWith("oauth2-.*"));
    }

    /** Micrometer is there in many an application that has no use for it, and without what Spring Boot has for it. */
    @Test
    void metersNeedNoActuator() throws Exception {
        String output = run(
                WebApplication.class,
                without(
                        TEST_TOOLS,
                        SECURITY,
                        JACKSON,
                        REDIS,
                        "spring-boot-.*(actuator|micrometer).*|spring-boot-health"));

        assertThat(output)
                .contains("SEES [io.micrometer.core.instrument.MeterRegistry, jakarta.servlet.Filter")
                .contains("ANSWERS 404 429 application/problem+json");
    }

    @Test
    void anApplicationWithoutWebNeedsNoWebJar() throws Exception {
        String output = run(
                PlainApplication.class,
                jars("spring-(boot|boot-autoconfigure|core|beans|context|aop|expression)|commons-logging|caffeine"
                        + "|ratelimit-(core|demand|remote)|micrometer-(commons|observation)"));

        assertThat(output).contains("SEES []").contains("DECISIONS true false");
    }

    @Test
    void limitsOnRedisNeedWhatConnectsToIt() throws Exception {
        assertThat(run(
                        PlainApplication.class,
                        without(TEST_TOOLS, REDIS, "ratelimit-redis"),
                        "--ratelimit.backend=redis"))
                .contains("""
                        Description:

                        'backend: redis' is set, but these are not on the class path: lettuce-core, ratelimit-redis, \
                        spring-boot-data-redis.
                        """)
                .contains("Add the dependency 'io.ratelimit:ratelimit-spring-boot-starter-redis', or keep limits in the"
                        + " memory of each instance: set 'ratelimit.backend: local', and remove 'backend: redis' from each"
                        + " policy.");
        assertThat(run(PlainApplication.class, without(TEST_TOOLS, REDIS), "--ratelimit.backend=redis"))
                .contains(
                        "'backend: redis' is set, but these are not on the class path: lettuce-core, spring-boot-data-redis.");
        assertThat(run(
                        PlainApplication.class,
                        without(TEST_TOOLS, "lettuce-core"),
                        "--ratelimit.policies.site.backend=redis"))
                .contains(
                        "'backend: redis' is set, but these are not on the class path: lettuce-core. Jedis can't be used.");
    }

    @Test
    void limitsInADatabaseNeedWhatConnectsToIt() throws Exception {
        assertThat(run(
                        PlainApplication.class,
                        without(TEST_TOOLS, REDIS, "ratelimit-jdbc|spring-(boot-)?jdbc"),
                        "--ratelimit.backend=jdbc"))
                .contains("""
                        Description:

                        'backend: jdbc' is set, but these are not on the class path: ratelimit-jdbc, spring-boot-jdbc, \
                        spring-jdbc.
                        """)
                .contains("Add the dependency 'io.ratelimit:ratelimit-spring-boot-starter-jdbc', or keep limits in the"
                        + " memory of each instance: set 'ratelimit.backend: local', and remove 'backend: jdbc' from each"
                        + " policy.");
    }

    /** Starts with the whole actuator, with its endpoints alone, and with its health indicators alone. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "none",
                "spring-boot-health|spring-boot-(starter-)?micrometer.*|micrometer-(core|jakarta9)|" + JACKSON,
                "spring-boot-(starter-)?actuator.*"
            })
    void theActuatorHasTheBeansThatItsClassPathAllows(String lacking) throws Exception {
        String output = run(
                WebApplication.class,
                without(TEST_TOOLS, SECURITY, REDIS, lacking),
                "--management.endpoints.web.exposure.include=*",
                "--management.endpoint.ratelimits.access=unrestricted");

        String beans = lacking.equals("none")
                ? "[RateLimitHealthIndicator, RateLimitsEndpoint]"
                : lacking.startsWith("spring-boot-health") ? "[RateLimitsEndpoint]" : "[RateLimitHealthIndicator]";
        assertThat(output).contains("ACTUATOR " + beans).contains("ANSWERS 404 429 application/problem+json");
    }

    @Test
    void anApplicationWithoutWebHasNoEndpointWhateverIsExposed() throws Exception {
        String output = run(
                PlainApplication.class,
                without(
                        TEST_TOOLS,
                        SECURITY,
                        "tomcat-.*|spring-boot-(starter-)?tomcat|spring-webmvc|spring-boot-webmvc"),
                "--spring.main.web-application-type=none",
                "--management.endpoints.web.exposure.include=*");

        assertThat(output).contains("ACTUATOR [RateLimitHealthIndicator]").contains("DECISIONS true false");
    }

    /** Stops the start also if Spring MVC is on the class path without its Spring Boot module. */
    @ParameterizedTest
    @ValueSource(strings = {"spring-boot-(starter-)?webmvc|spring-webmvc", "spring-boot-(starter-)?webmvc"})
    void aServletApplicationWithoutSpringMvcDoesNotStart(String lacking) throws Exception {
        String output = run(PlainApplication.class, without(TEST_TOOLS, SECURITY, ACTUATOR, JACKSON, lacking));

        assertThat(output)
                .contains("SEES [jakarta.servlet.Filter, org.springframework.web.context.WebApplicationContext")
                .contains("""
                        Description:

                        ratelimit needs Spring MVC to limit the requests of a servlet application, but \
                        'spring-boot-webmvc' is not on the class path: no request would be limited.

                        Action:

                        Add 'spring-boot-starter-webmvc', or set 'ratelimit.enabled: false'.
                        """);
    }

    /** Runs a main class on the classes of this module and on the jars of this class path that are wanted. */
    private String run(Class<?> main, Predicate<String> wanted, String... arguments) throws Exception {
        String classPath = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry -> isOwn(entry) || wanted.test(jarName(entry)))
                .collect(Collectors.joining(File.pathSeparator));
        Path output = directory.resolve("output");
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        List<String> command = new ArrayList<>(List.of(
                java,
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                classPath,
                main.getName(),
                "--server.port=0",
                "--ratelimit.policies.site.rate=1/1d",
                "--ratelimit.policies.roles.rate=1/1d",
                "--ratelimit.policies.roles.condition=roles.contains('ADMIN')",
                "--ratelimit.policies.roles.tier=role",
                "--ratelimit.policies.roles.tiers.pro.rate=1/1d",
                "--ratelimit.policies.shared.rate=100/1d",
                "--ratelimit.policies.shared.guaranteed.key=user",
                "--ratelimit.policies.shared.guaranteed.rate=1/1d",
                "--ratelimit.policies.shared.guaranteed.for=2",
                "--ratelimit.policies.tenants.rate=100/1d",
                "--ratelimit.policies.tenants.key=claim:tenant"));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        try {
            assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        } finally {
            process.destroyForcibly();
        }
        String printed = Files.readString(output);
        assertThat(printed).doesNotContain("Failed to introspect");
        return printed;
    }

    private static boolean isOwn(String entry) {
        return Path.of(entry).toAbsolutePath().startsWith(Path.of("").toAbsolutePath());
    }

    /** Returns the name of a jar. A module that isn't packaged yet is the directory of its classes. */
    private static String jarName(String entry) {
        Path path = Path.of(entry);
        return entry.endsWith(".jar")
                ? path.getFileName().toString()
                : path.getParent().getParent().getFileName() + "-0.jar";
    }

    private static Predicate<String> without(String... names) {
        return jars(String.join("|", names)).negate();
    }

    /** Jars by their names without the version. */
    private static Predicate<String> jars(String names) {
        return Pattern.compile("(" + names + ")-\\d.*").asMatchPredicate();
    }

    private static void printActuatorBeans(ConfigurableApplicationContext context) {
        System.out.println("ACTUATOR "
                + Stream.of(context.getBeanDefinitionNames())
                        .map(name -> context.getType(name))
                        .filter(type -> type != null && type.getPackageName().equals("io.ratelimit.actuate"))
                        .map(Class::getSimpleName)
                        .filter(name -> name.endsWith("Indicator") || name.endsWith("Endpoint"))
                        .sorted()
                        .toList());
    }

    private static void printOptionalTypes() {
        List<String> optional = List.of(
                "org.springframework.security.web.SecurityFilterChain",
                "org.springframework.boot.actuate.endpoint.annotation.Endpoint",
                "org.springframework.boot.health.contributor.HealthIndicator",
                "io.micrometer.core.instrument.MeterRegistry",
                "tools.jackson.databind.json.JsonMapper",
                "jakarta.servlet.Filter",
                "org.springframework.web.context.WebApplicationContext",
                "org.springframework.web.servlet.DispatcherServlet");
        System.out.println("SEES "
                + optional.stream()
                        .filter(type -> ClassUtils.isPresent(type, null))
                        .toList());
    }

    @EnableAutoConfiguration
    static class PlainApplication {

        public static void main(String[] args) {
            printOptionalTypes();
            try (ConfigurableApplicationContext context = SpringApplication.run(PlainApplication.class, args)) {
                printActuatorBeans(context);
                Throttlers throttlers = context.getBean(Throttlers.class);
                boolean first = throttlers.global("site").decide(1).allowed();
                boolean second = throttlers.global("site").decide(1).allowed();
                System.out.println("DECISIONS " + first + " " + second);
            }
        }
    }

    @EnableAutoConfiguration
    static class WebApplication {

        public static void main(String[] args) throws Exception {
            printOptionalTypes();
            try (ConfigurableApplicationContext context = SpringApplication.run(WebApplication.class, args)) {
                printActuatorBeans(context);
                HttpRequest request = HttpRequest.newBuilder(URI.create(
                                "http://localhost:" + context.getEnvironment().getProperty("local.server.port")))
                        .header("Authorization", "Basic dXNlcjpzZWNyZXQ=") // user:secret
                        .build();
                HttpResponse<?> first = HttpClient.newHttpClient().send(request, BodyHandlers.discarding());
                HttpResponse<?> second = HttpClient.newHttpClient().send(request, BodyHandlers.discarding());
                System.out.println("ANSWERS " + first.statusCode() + " " + second.statusCode() + " "
                        + second.headers().firstValue("Content-Type").orElse(""));
            }
        }
    }
}
