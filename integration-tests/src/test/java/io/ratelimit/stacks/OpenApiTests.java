package io.ratelimit.stacks;

import static io.ratelimit.migration.RunningApplication.ALL_LIBRARIES;
import static io.ratelimit.migration.RunningApplication.SPRINGDOC;
import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.migration.RunningApplication;
import io.ratelimit.web.servlet.rejection.RejectionHandler;
import io.swagger.v3.oas.annotations.responses.ApiResponse;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** The responses to rejected requests in the OpenAPI document of springdoc. */
@Tag("slow")
class OpenApiTests {

    private static final String YAML = """
            springdoc.api-docs.enabled: true
            ratelimit:
              policies:
                items:   { key: ip, rate: 10/1m, paths: /items/**, methods: GET }
                special: { key: ip, rate: 10/1m, paths: /items/special }
                orders:  { rate: 10/1m, guaranteed: { key: ip, rate: 1/1m, for: 5 }, paths: /orders, status: 503 }
                trial:   { key: ip, rate: 10/1m, mode: shadow }
                exports: { rate: 10/1m, applies-to: annotated }
            """;

    private static Map<String, Object> document(Class<?> configuration, String... properties) {
        String[] all =
                Stream.concat(Stream.of(SPRINGDOC), Stream.of(properties)).toArray(String[]::new);
        try (RunningApplication application = RunningApplication.start(configuration, YAML, all)) {
            return JsonPath.parse(application.client().get("/v3/api-docs").body())
                    .json();
        }
    }

    private static <T> T read(Map<String, Object> document, String path) {
        return JsonPath.read(document, path);
    }

    @Test
    void anOperationHasTheRejectionsOfThePoliciesThatLimitIt() {
        Map<String, Object> paths = read(document(Application.class), "$.paths");

        assertThat(paths.toString()).doesNotContain("x-ratelimit", "trial");
        assertThat(description(paths, "/items/{id}", "get", 429))
                .isEqualTo("The request is throttled by 'items' or 'special' policy.");
        assertThat(description(paths, "/items/{id}", "delete", 429))
                .isEqualTo("The request is throttled by 'special' policy.");
        assertThat(description(paths, "/orders", "post", 503))
                .isEqualTo("The request is throttled by 'orders' policy.");
        assertThat(description(paths, "/exports", "get", 429))
                .isEqualTo("The request is throttled by 'exports' policy.");
        assertThat(JsonPath.<Map<String, Object>>read(paths, "$['/orders'].post.responses"))
                .containsOnlyKeys("200", "503");
        for (String free : new String[] {"/other", "/cached"}) {
            assertThat(JsonPath.<Map<String, Object>>read(paths, "$['" + free + "'].get.responses"))
                    .as(free)
                    .containsOnlyKeys("200");
        }
        assertThat(description(paths, "/items", "get", 429)).isEqualTo("slow down");
    }

    private static String description(Map<String, Object> paths, String path, String method, int status) {
        return JsonPath.read(paths, "$['%s'].%s.responses.%d.description".formatted(path, method, status));
    }

    @ParameterizedTest
    @CsvSource({"openapi_3_0", "openapi_3_1"})
    void headersAndBodyAreDescribed(String version) {
        Map<String, Object> document = document(Application.class, "springdoc.api-docs.version=" + version);

        Map<String, Object> response = read(document, "$.paths['/exports'].get.responses.429");
        assertThat(response).containsOnlyKeys("description", "headers", "content");
        assertThat(JsonPath.<String>read(response, "$.headers['Retry-After'].schema.type"))
                .isEqualTo("integer");
        assertThat(JsonPath.<String>read(response, "$.headers['X-RetryAfterMs'].schema.type"))
                .isEqualTo("integer");
        assertThat(JsonPath.<String>read(response, "$.content['application/problem+json'].schema['$ref']"))
                .isEqualTo("#/components/schemas/RateLimitProblem");
        assertThat(JsonPath.<String>read(
                        document, "$.components.schemas.RateLimitProblem.properties.retryAfterMs.type"))
                .isEqualTo("integer");
        assertThat(JsonPath.<String>read(
                        document, "$.components.schemas.RateLimitProblem.properties['violated-policies'].items.type"))
                .isEqualTo("string");
    }

    @Test
    void aResponseOfTheApplicationsOwnHasNoBodyOfOurs() {
        Map<String, Object> document = document(OwnResponse.class);

        assertThat(JsonPath.<Map<String, Object>>read(document, "$.paths['/exports'].get.responses.429"))
                .containsOnlyKeys("description");
        assertThat(document.toString()).doesNotContain("RateLimitProblem");
    }

    @Test
    void pathsOfPoliciesContainThePathOfTheServlet() {
        try (RunningApplication application = RunningApplication.start(
                Application.class,
                YAML.replace("paths: /orders", "paths: /app/orders"),
                ALL_LIBRARIES,
                "spring.mvc.servlet.path=/app")) {
            String document = application.client().get("/app/v3/api-docs").body();

            assertThat(document).contains("The request is throttled by 'orders' policy.");
            assertThat(document).doesNotContain("'items'");
        }
    }

    @SpringBootConfiguration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class Application {}

    static class OwnResponse extends Application {

        @Bean
        RejectionHandler own() {
            return (request, response, decision) -> response.setStatus(429);
        }
    }

    @RestController
    static class Api {

        @GetMapping("/items")
        @ApiResponse(responseCode = "429", description = "slow down")
        String items() {
            return "items";
        }

        @GetMapping("/items/{id}")
        String item(@PathVariable String id) {
            return id;
        }

        @DeleteMapping("/items/{id}")
        void delete(@PathVariable String id) {}

        @PostMapping("/orders")
        String order() {
            return "ordered";
        }

        @GetMapping("/exports")
        @RateLimited("exports")
        public String export() {
            return "export";
        }

        @GetMapping("/cached")
        @RateLimited(policy = "exports", fallback = "stale")
        public String cached() {
            return "fresh";
        }

        public String stale() {
            return "stale";
        }

        @GetMapping("/other")
        String other() {
            return "other";
        }
    }
}
