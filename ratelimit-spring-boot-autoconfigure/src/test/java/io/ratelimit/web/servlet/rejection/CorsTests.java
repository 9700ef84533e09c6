package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.CrossOrigin;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.cors.CorsConfiguration;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.servlet.HandlerExecutionChain;
import org.springframework.web.servlet.config.annotation.CorsRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import org.springframework.web.servlet.handler.AbstractHandlerMapping;

/** A page in a browser can read a rejection where it could read the response. */
class CorsTests {

    private static final String YAML = """
            ratelimit:
              policies:
                all: { key: [ip, endpoint], rate: 1/1h, exclude-paths: /login }
                login: { key: ip, rate: 1/1h, paths: /login }
                options: { rate: 1/1h, paths: /options, methods: [OPTIONS] }
            """;

    private static final String PAGE = "Origin: http://page.example";

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class, Configured.class, CountingMapping.class);

    @ParameterizedTest
    @ValueSource(strings = {"/annotated", "/configured", "/elsewhere"})
    void aRejectionHasTheHeadersOfAnAllowedResponse(String path) {
        server.http().get(path, PAGE);
        Response refusal = server.http().get(path, PAGE);
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.header("Access-Control-Allow-Origin")).isEqualTo("http://page.example");
        assertThat(refusal.all("Vary")).contains("Origin");
        assertThat(refusal.header("X-RetryAfterMs")).isEqualTo("3600000");
    }

    @Test
    void theHeadersThatThePageMayReadAreExposed() {
        server.http().get("/annotated", PAGE);
        Response refusal = server.http().get("/annotated", PAGE);
        assertThat(refusal.header("Access-Control-Expose-Headers")).isEqualTo("Retry-After");
        assertThat(refusal.header("Access-Control-Allow-Credentials")).isEqualTo("true");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/annotated", "/configured", "/elsewhere"})
    void aForbiddenOriginGetsTheRejectionWithoutTheHeaders(String path) {
        server.http().get(path);
        Response refusal = server.http().get(path, "Origin: http://evil.example");
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.body()).contains("\"retryAfterMs\":3600000");
        assertThat(refusal.names()).noneMatch(name -> name.startsWith("Access-Control"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "null",
                "http://localhost:{x}",
                "http://localhost:abc",
                "http://localhost:99999999999",
                "http://[",
                "http://[::1",
                "http://page.example:80:80",
                "%%%",
                "://",
                "http://{",
                "\u00e4\u00ff",
                "http://page.example, http://other",
                "http://page.example/../x?y#z",
            })
    void anOriginThatIsNoneChangesNothing(String origin) {
        for (String path : List.of("/annotated", "/configured", "/elsewhere")) {
            server.http().get(path);
            Response refusal = server.http().get(path, "Origin: " + origin);
            assertThat(refusal.status()).as(path).isEqualTo(429);
            assertThat(refusal.body()).as(path).contains("\"retryAfterMs\":3600000");
            assertThat(refusal.names()).as(path).doesNotContain("Access-Control-Allow-Origin");
        }
    }

    /** Each handler mapping parses the path, so a long path would make a rejection expensive. All these paths are one endpoint. */
    @Test
    void aLongPathIsNotLookedUp() {
        server.http().get("/none");
        for (String path : List.of("/a".repeat(32), "/%61;a".repeat(16), "/" + "a".repeat(499))) {
            int before = CountingMapping.ASKED.get();
            assertThat(server.http().get(path, PAGE).status()).isEqualTo(429);
            assertThat(CountingMapping.ASKED).as(path).hasValue(before + 1);
        }
        for (String path : List.of("/a".repeat(33), "/%61;a".repeat(17), "/" + "a".repeat(500), "/".repeat(7_000))) {
            int before = CountingMapping.ASKED.get();
            assertThat(server.http().get(path, PAGE).status()).isEqualTo(429);
            assertThat(CountingMapping.ASKED).as(path).hasValue(before);
        }
    }

    @Test
    void theParametersOfALongQueryAreNotLookedUp() {
        String longest = "kind=a%20b&x=" + "y".repeat(2_000 - 13);
        server.http().post("/form?" + longest, PAGE);
        assertThat(server.http().post("/form?" + longest, PAGE).header("Access-Control-Allow-Origin"))
                .isEqualTo("http://page.example");
        Response longer = server.http().post("/form?" + longest + "y", PAGE);
        assertThat(longer.status()).isEqualTo(429);
        assertThat(longer.header("Access-Control-Allow-Origin")).isNull();
    }

    @Test
    void anOriginThatIsLongerThanAnyIsNotRead() {
        server.http().get("/annotated");
        int before = CountingMapping.ASKED.get();
        String origin = "Origin: http://" + "a.".repeat(150) + "example";
        assertThat(server.http().get("/annotated", origin).status()).isEqualTo(429);
        assertThat(CountingMapping.ASKED).hasValue(before);
    }

    @Test
    void aPreflightWithoutEndIsRejectedAsAnyOther() {
        String[] headers = {
            PAGE, "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: " + "a,".repeat(3_000)
        };
        server.http().request("OPTIONS", "/options");
        Response rejection = server.http().request("OPTIONS", "/options", headers);
        assertThat(rejection.status()).isEqualTo(429);
        assertThat(rejection.names()).doesNotContain("Access-Control-Allow-Headers");
    }

    @Test
    void aRequestWithoutOriginIsNotLookedUp() {
        server.http().get("/annotated");
        int before = CountingMapping.ASKED.get();
        assertThat(server.http().get("/annotated").status()).isEqualTo(429);
        assertThat(CountingMapping.ASKED).hasValue(before);
        assertThat(server.http().get("/annotated", PAGE).status()).isEqualTo(429);
        assertThat(CountingMapping.ASKED).hasValue(before + 1);
    }

    @Test
    void aMethodThatThePathDoesntHaveIsNoFailure() {
        server.http().request("DELETE", "/annotated", PAGE);
        Response refusal = server.http().request("DELETE", "/annotated", PAGE);
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(server.http().request("FOO", "/annotated", PAGE).status()).isEqualTo(429);
    }

    @Test
    void aTypeThatTheHandlerDoesntTakeIsNoFailure() {
        server.http().post("/json", PAGE, "Content-Type: nonsense");
        Response refusal = server.http().post("/json", PAGE, "Content-Type: nonsense", "Accept: ///");
        assertThat(refusal.status()).isEqualTo(429);
    }

    @Test
    void preflightsAreFree() {
        for (int i = 0; i < 5; i++) {
            Response preflight =
                    server.http().request("OPTIONS", "/annotated", PAGE, "Access-Control-Request-Method: GET");
            assertThat(preflight.status()).isEqualTo(200);
            assertThat(preflight.header("Access-Control-Allow-Origin")).isEqualTo("http://page.example");
        }
        assertThat(server.http().get("/annotated", PAGE).status()).isEqualTo(200);
    }

    @Test
    void aRequestThatOnlyResemblesAPreflightIsCharged() {
        for (String[] headers : new String[][] {{}, {PAGE}, {"Access-Control-Request-Method: GET"}}) {
            server.refill();
            assertThat(server.http().request("OPTIONS", "/annotated", headers).status())
                    .isLessThan(429);
            assertThat(server.http().request("OPTIONS", "/annotated", headers).status())
                    .isEqualTo(429);
        }
        server.refill();
        assertThat(server.http()
                        .request("GET", "/annotated", PAGE, "Access-Control-Request-Method: GET")
                        .status())
                .isEqualTo(200);
        assertThat(server.http()
                        .request("GET", "/annotated", PAGE, "Access-Control-Request-Method: GET")
                        .status())
                .isEqualTo(429);
    }

    @Test
    void aPolicyThatNamesOptionsChargesPreflightsAndItsRejectionHasTheHeaders() {
        String[] headers = {PAGE, "Access-Control-Request-Method: GET"};
        assertThat(server.http().request("OPTIONS", "/options", headers).status())
                .isEqualTo(200);
        Response refusal = server.http().request("OPTIONS", "/options", headers);
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.body()).contains("[\"options\"]");
        assertThat(refusal.header("Access-Control-Allow-Origin")).isEqualTo("http://page.example");
    }

    @Test
    void theLookUpSeesTheQueryButNotTheForm() {
        server.http().post("/form?kind=a%20b", PAGE);
        assertThat(server.http().post("/form?kind=a%20b", PAGE).header("Access-Control-Allow-Origin"))
                .isEqualTo("http://page.example");
        Response form = server.http()
                .send("POST /form HTTP/1.1\r\nHost: localhost\r\n" + PAGE
                        + "\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 8\r\n\r\nkind=a+b");
        assertThat(form.status()).isEqualTo(429);
        assertThat(form.header("Access-Control-Allow-Origin")).isNull();
    }

    @Test
    void aRejectionOfAnotherServletHasNoHeadersOfAControllerWithItsPath() {
        server.http().get("/rest/annotated", PAGE);
        Response refusal = server.http().get("/rest/annotated", PAGE);
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.header("Access-Control-Expose-Headers"))
                .as("that would be the controller's")
                .isNull();
    }

    @RestController
    static class Api {

        @CrossOrigin(origins = "http://page.example", exposedHeaders = "Retry-After", allowCredentials = "true")
        @GetMapping("/annotated")
        String annotated() {
            return "annotated";
        }

        @GetMapping("/configured")
        String configured() {
            return "configured";
        }

        @GetMapping("/elsewhere")
        String elsewhere() {
            return "elsewhere";
        }

        @CrossOrigin("http://page.example")
        @PostMapping(path = "/json", consumes = "application/json", produces = "application/json")
        String json() {
            return "{}";
        }

        @CrossOrigin("http://page.example")
        @PostMapping(path = "/form", params = "kind=a b")
        String form() {
            return "form";
        }

        @CrossOrigin("http://page.example")
        @RequestMapping(path = "/options", method = RequestMethod.GET)
        String options() {
            return "options";
        }

        @Bean
        ServletRegistrationBean<HttpServlet> rest() {
            HttpServlet servlet = new HttpServlet() {
                @Override
                protected void doGet(HttpServletRequest request, HttpServletResponse response) {
                    response.setStatus(200);
                }
            };
            return new ServletRegistrationBean<>(servlet, "/rest/*");
        }
    }

    static class Configured implements WebMvcConfigurer {

        @Override
        public void addCorsMappings(CorsRegistry registry) {
            registry.addMapping("/configured").allowedOrigins("http://page.example");
        }

        /** The bean of Spring Security, for requests without a configuration in MVC. */
        @Bean
        CorsConfigurationSource corsConfigurationSource() {
            CorsConfiguration configuration = new CorsConfiguration();
            configuration.setAllowedOrigins(List.of("http://page.example"));
            configuration.setAllowedMethods(List.of("GET"));
            return request -> request.getRequestURI().equals("/elsewhere") ? configuration : null;
        }
    }

    static class CountingMapping extends AbstractHandlerMapping {

        static final AtomicInteger ASKED = new AtomicInteger();

        CountingMapping() {
            setOrder(HIGHEST_PRECEDENCE);
        }

        @Override
        protected Object getHandlerInternal(HttpServletRequest request) {
            ASKED.incrementAndGet();
            return null;
        }

        @Override
        protected HandlerExecutionChain getHandlerExecutionChain(Object handler, HttpServletRequest request) {
            throw new AssertionError("it has no handlers");
        }
    }
}
