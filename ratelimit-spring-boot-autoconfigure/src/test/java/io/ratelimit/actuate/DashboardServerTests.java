package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.Decision;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import io.ratelimit.UpkeepTimeSource;
import io.ratelimit.autoconfigure.WithoutSecurity;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.Banner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** The dashboard on a real server: its paths, its access rules and its data. */
@Tag("slow")
class DashboardServerTests {

    private static final String PAGE = "/actuator/ratelimitdashboard";
    private static final String NO_SECURITY =
            "--spring.autoconfigure.exclude=" + String.join(",", WithoutSecurity.EXCLUDED);
    private static final String EXPOSED = "--management.endpoints.web.exposure.include=ratelimitdashboard";

    private final HttpClient client = HttpClient.newHttpClient();

    @AutoClose
    private ConfigurableApplicationContext context;

    @Test
    void thePageAndItsFilesAreServed() throws Exception {
        start(NO_SECURITY, EXPOSED);

        HttpResponse<String> page = get(PAGE);
        assertThat(page.statusCode()).isEqualTo(200);
        assertThat(page.headers().firstValue("Content-Type")).hasValue("text/html;charset=UTF-8");
        String docs = Pattern.compile("<repository.url>(.*)</repository.url>")
                        .matcher(Files.readString(Path.of("../pom.xml")))
                        .results()
                        .findFirst()
                        .orElseThrow()
                        .group(1)
                + "/blob/main/docs/dashboard.md";
        assertThat(Path.of("../docs/dashboard.md")).exists();
        assertThat(page.body()).containsOnlyOnce("href=\"" + docs + "\"");
        assertThat(page.body().replace("href=\"" + docs + "\"", ""))
                .contains(
                        "data-root=\"ratelimitdashboard\"",
                        "<script src=\"ratelimitdashboard/dashboard.js\" defer>",
                        "<link rel=\"stylesheet\" href=\"ratelimitdashboard/uplot.css\">")
                .doesNotContain("{root}", "{name}", "onclick", "<style", "style=", "=\"http", "=\"//")
                .doesNotContainPattern("<script(?! src)");
        assertThat(get(PAGE + "/dashboard.js").headers().firstValue("Content-Type"))
                .hasValue("text/javascript;charset=UTF-8");
        assertThat(get(PAGE + "/uplot.js").body()).startsWith("/*! https://github.com/leeoniya/uPlot");
        assertThat(get(PAGE + "/dashboard.css").headers().firstValue("Content-Type"))
                .hasValue("text/css;charset=UTF-8");
        assertThat(get(PAGE + "/uplot.css").statusCode()).isEqualTo(200);
    }

    @Test
    void noOtherFileIsServed() throws Exception {
        start(NO_SECURITY, EXPOSED);

        for (String path : List.of(
                "/dashboard.html",
                "/uplot-LICENSE.txt",
                "/..",
                "/%2e%2e",
                "/..%5cRateLimitDashboard.class",
                "/Data",
                "/",
                "/data/x",
                "/%F0%9F%92%A9",
                "/x%00")) {
            assertThat(get(PAGE + path).statusCode()).as(path).isIn(400, 404);
        }
        assertThat(get("/dashboard.html").statusCode()).isEqualTo(404);
        assertThat(get("/uplot.js").statusCode()).isEqualTo(404);
    }

    @Test
    void theDataContainsTheDecisionsOfEachSecond() throws Exception {
        start(NO_SECURITY, EXPOSED);
        Throttlers throttlers = context.getBean(Throttlers.class);
        for (int i = 0; i < 3; i++) {
            throttlers.global("site").decide(1);
        }
        context.getBean(ManualTimeSource.class).advance(Duration.ofSeconds(2));

        JsonNode data = data("");
        assertThat(data.get("second").asLong()).isEqualTo(2);
        JsonNode site = policy(data, "site");
        assertThat(site.get("available").asLong()).isZero();
        assertThat(site.get("allowed").toString()).isEqualTo("[2,0]");
        assertThat(site.get("denied").toString()).isEqualTo("[1,0]");
        assertThat(policy(data("?since=1"), "site").get("denied").toString()).isEqualTo("[0]");
        assertThat(data("?since=-5").get("from").asLong()).isZero();
        assertThat(data("?span=hour").get("step").asInt()).isEqualTo(60);
        assertThat(data("?span=minutes").get("step").asInt()).isEqualTo(1);
        assertThat(get(PAGE + "/data?since=x").statusCode()).isEqualTo(400);
    }

    @Test
    void anExposedDashboardCountsDecisionsAndSamplesThem() {
        start(NO_SECURITY, EXPOSED);

        assertThat(context.containsBean("rateLimitDecisionHistory")).isTrue();
        assertThat(context.getBeanNamesForType(DeniedKeys.class)).hasSize(1);
        assertThat(context.getBean(ManualTimeSource.class).waiting())
                .as("the next sample, the next hour of demand, and the next day of shadow policies")
                .isEqualTo(3);
    }

    @Test
    void aDashboardThatIsNotExposedCountsAndSamplesNothing() throws Exception {
        start(NO_SECURITY);

        assertThat(get(PAGE).statusCode()).isEqualTo(404);
        assertThat(context.containsBean("rateLimitDashboard")).isFalse();
        assertThat(context.getBeansOfType(ThrottleListener.class).values())
                .isNotEmpty()
                .doesNotHaveAnyElementsOfTypes(DeniedKeys.class);
        assertThat(context.getBean(ManualTimeSource.class).waiting())
                .as("scheduled calls, including the library's own")
                .isZero();
    }

    @Test
    void accessNoneRemovesTheDashboard() throws Exception {
        start(NO_SECURITY, EXPOSED, "--management.endpoint.ratelimitdashboard.access=none");

        assertThat(get(PAGE).statusCode()).isEqualTo(404);
        assertThat(context.containsBean("rateLimitDecisionHistory")).isFalse();
    }

    @Test
    void disabledLimitsRemoveTheDashboard() throws Exception {
        start(NO_SECURITY, EXPOSED, "--ratelimit.enabled=false");

        assertThat(get(PAGE).statusCode()).isEqualTo(404);
    }

    @Test
    void theAccessRulesOfTheApplicationApply() throws Exception {
        start(EXPOSED, "--spring.security.user.name=admin", "--spring.security.user.password=secret");
        for (String path : List.of("", "/data", "/dashboard.js", "/nothing")) {
            assertThat(get(PAGE + path, "Accept", "application/json").statusCode())
                    .as(path)
                    .isEqualTo(401);
        }

        HttpResponse<String> page = get(PAGE, "Authorization", "Basic YWRtaW46c2VjcmV0");
        assertThat(page.statusCode()).isEqualTo(200);
        assertThat(page.headers().firstValue("X-Content-Type-Options")).hasValue("nosniff");
        assertThat(get(PAGE + "/dashboard.js", "Authorization", "Basic YWRtaW46c2VjcmV0")
                        .headers()
                        .firstValue("Content-Type"))
                .hasValue("text/javascript;charset=UTF-8");
        HttpResponse<String> data = get(PAGE + "/data", "Authorization", "Basic YWRtaW46c2VjcmV0");
        assertThat(JsonMapper.shared()
                        .readTree(data.body())
                        .get("change")
                        .get("authenticated")
                        .asBoolean())
                .isTrue();
    }

    @Test
    void keysAreShownIfTheEndpointShowsThem() throws Exception {
        start(
                NO_SECURITY,
                EXPOSED,
                "--management.endpoint.ratelimits.show-values=always",
                "--ratelimit.policies.users.rate=1/1d",
                "--ratelimit.policies.users.key=user",
                "--ratelimit.policies.users.applies-to=annotated");
        Throttlers throttlers = context.getBean(Throttlers.class);
        throttlers.get("users").forKey("alice").decide(1);
        throttlers.get("users").forKey("alice").decide(1);

        await().untilAsserted(() -> {
            JsonNode denied = policy(data(""), "users").at("/deniedKeys/0");
            assertThat(denied.at("/key/parts/0").asString()).isEqualTo("alice");
            assertThat(denied.at("/denied").asLong()).isEqualTo(1);
        });
        assertThat(data("").at("/change").hasNonNull("path")).as("not exposed").isFalse();
    }

    @Test
    void theDataContainsThePathAndTheAccessOfTheEndpoint() throws Exception {
        start(
                NO_SECURITY,
                EXPOSED + ",ratelimits",
                "--management.endpoints.web.path-mapping.ratelimits=steer",
                "--management.endpoint.ratelimits.access=unrestricted");

        assertThat(data("").get("change").toString())
                .isEqualTo("{\"path\":\"steer\",\"writable\":true,\"forAll\":false,\"authenticated\":false}");
    }

    /** No server listens at port 1. */
    @Test
    void anUnavailableBackendIsReportedWithoutWaiting() throws Exception {
        start(NO_SECURITY, EXPOSED, "--ratelimit.backend=redis", "--spring.data.redis.port=1");
        assertThat(policy(data(""), "site").hasNonNull("available")).isFalse();
        Decision fallback = context.getBean(Throttlers.class).global("site").decide(1);
        assertThat(fallback.allowed()).isTrue();

        JsonNode data = data("");
        assertThat(data.at("/backends/0/name").asString()).isEqualTo("Redis");
        assertThat(data.at("/backends/0/condition").asString()).isEqualTo("DOWN");
        assertThat(data.at("/backends/0/cause").asString()).isNotEmpty();
        assertThat(policy(data, "site").hasNonNull("available"))
                .as("the tokens of the fallback aren't those of the bucket")
                .isFalse();
    }

    /** The header prevents a challenge, for which the browser would open a login dialog with each poll. */
    @Test
    void anUnauthenticatedPollIsNotChallenged() throws Exception {
        start(EXPOSED, "--spring.security.user.password=secret");

        HttpResponse<String> answer = get(PAGE + "/data", "X-Requested-With", "XMLHttpRequest");
        assertThat(answer.statusCode()).isEqualTo(401);
        assertThat(answer.headers().firstValue("WWW-Authenticate")).isEmpty();
    }

    @Test
    void isServedOnTheManagementPortBelowItsBasePathAndUnderAnotherName() throws Exception {
        start(
                NO_SECURITY,
                EXPOSED,
                "--server.servlet.context-path=/shop",
                "--management.server.port=0",
                "--management.server.base-path=/manage",
                "--management.endpoints.web.base-path=/ops",
                "--management.endpoints.web.path-mapping.ratelimitdashboard=limits/seen");
        String port = context.getEnvironment().getProperty("local.management.port");

        HttpResponse<String> page = send("http://localhost:" + port + "/manage/ops/limits/seen");
        assertThat(page.body()).contains("data-root=\"limits/seen\"", "src=\"seen/dashboard.js\"");
        assertThat(send("http://localhost:" + port + "/manage/ops/limits/seen/dashboard.js")
                        .statusCode())
                .isEqualTo(200);
        assertThat(send("http://localhost:" + port + "/manage/ops/limits/seen/data")
                        .body())
                .startsWith("{\"instance\":");
        assertThat(get("/shop" + PAGE).statusCode()).isEqualTo(404);
    }

    @Test
    void isServedBelowAContextPath() throws Exception {
        start(NO_SECURITY, EXPOSED, "--server.servlet.context-path=/shop");

        assertThat(get("/shop" + PAGE).body()).contains("src=\"ratelimitdashboard/dashboard.js\"");
        assertThat(get("/shop" + PAGE + "/data").statusCode()).isEqualTo(200);
    }

    private void start(String... arguments) {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--server.port=0", "--spring.config.location=optional:classpath:/none/"));
        Map<String, Object> properties = Map.of("ratelimit.policies.site.rate", "2/1d");
        context = new SpringApplicationBuilder(Application.class)
                .bannerMode(Banner.Mode.OFF)
                .properties(properties)
                .properties("ratelimit.policies.site.applies-to=annotated")
                .run(all.toArray(String[]::new));
    }

    private JsonNode data(String query) throws Exception {
        HttpResponse<String> data = get(PAGE + "/data" + query);
        assertThat(data.headers().firstValue("Content-Type")).hasValue("application/json");
        return JsonMapper.shared().readTree(data.body());
    }

    private static JsonNode policy(JsonNode data, String name) {
        return data.get("policies")
                .valueStream()
                .filter(policy -> policy.get("name").asString().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private HttpResponse<String> get(String path, String... header) throws Exception {
        return send("http://localhost:" + context.getEnvironment().getProperty("local.server.port") + path, header);
    }

    private HttpResponse<String> send(String uri, String... header) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(uri));
        if (header.length > 0) {
            request.headers(header);
        }
        return client.send(request.build(), BodyHandlers.ofString());
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        @Bean
        ManualTimeSource time() {
            return new ManualTimeSource();
        }

        @Bean
        @Primary
        UpkeepTimeSource timeWithUpkeep(ManualTimeSource time) {
            return new UpkeepTimeSource(time);
        }
    }
}
