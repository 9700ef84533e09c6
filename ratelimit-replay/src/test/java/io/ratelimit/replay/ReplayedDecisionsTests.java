package io.ratelimit.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.server.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.ResponseEntity;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.http.SessionCreationPolicy;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** Sends requests to an application on Tomcat whose time stands still, and replays what it would have logged. */
@Tag("slow")
class ReplayedDecisionsTests {

    private static final String POLICIES = """
            ratelimit:
              client-ip.trusted-proxies: 127.0.0.1
              exclude-paths: /health
              policies:
                global: { rate: 600/1m, capacity: 40 }
                per-ip: { key: ip, rate: 60/1m, capacity: 12, phase: before-authentication, refund-on: ["!401"] }
                logins:
                  key: ip
                  rate: 3/1m
                  paths: /items/*
                  phase: before-authentication
                  refund-on: authenticated
                per-user: { key: user, rate: 30/1m, capacity: 8, on-missing-key: skip }
                per-endpoint: { key: [endpoint, method], rate: 100/1m, refill: interval }
                per-item: { key: "path-variable:id", rate: 20/1m, capacity: 6, paths: "/items/*" }
                costly: { key: ip, rate: 100/1m, cost: "query('n')", max-cost: 50, methods: GET }
                plans:
                  key: "header:X-Plan"
                  rate: 10/1m
                  tier: header:X-Plan
                  tiers: { pro: { rate: 60/1m, capacity: 30 } }
                  on-missing-key: shared
                misses: { key: ip, rate: 3/1m, refund-on: [2xx, 3xx] }
                conditional: { key: ip, rate: 5/1m, condition: "header('X-Plan') == 'free' && path.startsWith('/items')" }
                exempt:
                  key: ip
                  rate: 4/1m
                  paths: /status/**
                  overrides: [{ keys: [10.0.0.0/30], mode: "off" }, { keys: [10.0.0.5], rate: 20/1m }]
                shadow: { key: ip, rate: 1/1m, mode: shadow }
            """;
    private static final String FORMAT =
            "$remote_addr - $remote_user [$msec] \"$request\" $status \"$http_x_forwarded_for\" \"$http_x_plan\" \"$http_origin\"";
    private static final String ENDPOINTS = "GET /items/{id}\nPOST /items\n/status/{code}\nGET /health\n";

    /** Later than the first moment, so that both clocks count the periods of interval refill alike. */
    private static final long START_MILLIS = 1_764_000_000_123L;

    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void areThoseOfTheApplicationLineByLine(long seed) throws Exception {
        Path config = Files.writeString(directory.resolve("application.yml"), POLICIES);
        List<String> lines = new ArrayList<>();
        List<Boolean> live = new ArrayList<>();
        ManualTimeSource time = new ManualTimeSource();
        time.advance(Duration.ofMillis(START_MILLIS));
        try (ServletWebServerApplicationContext application = start(config, time)) {
            Random random = new Random(seed);
            long millis = START_MILLIS;
            for (int i = 0; i < 500; i++) {
                int step = random.nextInt(10) == 0 ? random.nextInt(20_000) : random.nextInt(200);
                time.advance(Duration.ofMillis(step));
                millis += step;
                Sent sent = Sent.random(random);
                int status = sent.send(application.getWebServer().getPort());
                live.add(status != 429);
                lines.add(sent.log(millis, status));
            }
        }
        List<Boolean> replayed = replay(config, lines);

        assertThat(live).contains(true, false);
        assertThat(replayed).hasSameSizeAs(live);
        for (int i = 0; i < lines.size(); i++) {
            assertThat(replayed.get(i)).as("seed %d, %s", seed, lines.get(i)).isEqualTo(live.get(i));
        }
    }

    private ServletWebServerApplicationContext start(Path config, ManualTimeSource time) {
        return (ServletWebServerApplicationContext) new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.SERVLET)
                .initializers(context -> context.getBeanFactory().registerSingleton("time", time))
                .run("--spring.config.location=" + config.toUri(), "--server.port=0", "--server.address=127.0.0.1");
    }

    private List<Boolean> replay(Path config, List<String> lines) throws IOException {
        Path endpoints = Files.writeString(directory.resolve("endpoints"), ENDPOINTS);
        List<Boolean> decisions = new ArrayList<>();
        try (ReplayPolicies policies =
                ReplayPolicies.read(List.of("--spring.config.location=" + config.toUri()), endpoints, true)) {
            Replay replay = new Replay(policies, true);
            replay.observe((entry, decision) -> decisions.add(decision.allowed()));
            LogFormat format = LogFormat.of(FORMAT, Map.of(), new Stamps());
            for (String line : lines) {
                LogEntry entry = format.read(line);
                assertThat(entry).as(line).isNotNull();
                entry.number = decisions.size();
                entry.startAt(0);
                replay.add(entry);
            }
            replay.finish();
            assertThat(replay.results())
                    .allSatisfy(result -> assertThat(result.unlogged).isEmpty());
        }
        return decisions;
    }

    /** A request and what a log has of it. */
    private record Sent(String method, String uri, String client, String plan, String user, String password) {

        private static final HttpClient CLIENT = HttpClient.newHttpClient();

        static Sent random(Random random) {
            String[] uris = {
                "/items/" + random.nextInt(3) + "?n=" + random.nextInt(9),
                "/items/7/",
                "/items/%61;v=1",
                "/items",
                "/status/404",
                "/status/200?x",
                "/status/500",
                "/health",
                "/nothing?n=many"
            };
            String user = random.nextInt(3) == 0 ? List.of("alice", "bob").get(random.nextInt(2)) : "-";
            return new Sent(
                    random.nextInt(4) == 0 ? "POST" : "GET",
                    uris[random.nextInt(uris.length)],
                    "10.0.0." + random.nextInt(8),
                    List.of("-", "free", "pro").get(random.nextInt(3)),
                    user,
                    random.nextInt(5) == 0 ? "wrong" : "password");
        }

        int send(int port) throws IOException, InterruptedException {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + uri))
                    .method(method, BodyPublishers.noBody())
                    .header("X-Forwarded-For", client);
            if (!plan.equals("-")) {
                request.header("X-Plan", plan);
            }
            if (!user.equals("-")) {
                String credentials = user + ":" + password;
                request.header(
                        "Authorization",
                        "Basic " + Base64.getEncoder().encodeToString(credentials.getBytes(StandardCharsets.UTF_8)));
            }
            HttpResponse<String> response = CLIENT.send(request.build(), BodyHandlers.ofString());
            return response.statusCode();
        }

        /** Returns the line of nginx, which logs the name that a client tried, whether its password is right or wrong. */
        String log(long millis, int status) {
            return "127.0.0.1 - " + user + " [" + millis / 1000 + "."
                    + String.format("%03d", millis % 1000) + "] \"" + method + " " + uri + " HTTP/1.1\" " + status
                    + " \""
                    + client + "\" \"" + plan + "\" \"-\"";
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @RestController
    static class Application {

        @GetMapping("/items/{id}")
        String item(@PathVariable String id) {
            return id;
        }

        @PostMapping("/items")
        void add() {}

        @RequestMapping("/status/{code}")
        ResponseEntity<Void> status(@PathVariable int code) {
            return ResponseEntity.status(code).build();
        }

        @GetMapping("/health")
        void health() {}

        @Bean
        SecurityFilterChain security(HttpSecurity http) throws Exception {
            return http.csrf(csrf -> csrf.disable())
                    .sessionManagement(sessions -> sessions.sessionCreationPolicy(SessionCreationPolicy.STATELESS))
                    .httpBasic(Customizer.withDefaults())
                    .authorizeHttpRequests(requests -> requests.anyRequest().permitAll())
                    .build();
        }

        /** Only looks users up: the manager would replace their passwords by bcrypt, at 70 ms a request. */
        @Bean
        UserDetailsService users() {
            return new InMemoryUserDetailsManager(
                    User.withUsername("alice").password("{noop}password").build(),
                    User.withUsername("bob").password("{noop}password").build())::loadUserByUsername;
        }
    }
}
