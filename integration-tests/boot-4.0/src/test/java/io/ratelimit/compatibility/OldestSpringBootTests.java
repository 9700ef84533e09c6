package io.ratelimit.compatibility;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.springframework.security.config.Customizer.withDefaults;

import io.ratelimit.annotation.RateLimited;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Base64;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import redis.embedded.RedisServer;
import redis.embedded.core.RedisServerBuilder;

/** An application on the oldest Spring Boot: its requests, its methods, its buckets in Redis, and its actuator. */
@Tag("slow")
class OldestSpringBootTests {

    private static RedisServer redis;
    private static ConfigurableApplicationContext application;

    @BeforeAll
    static void start() throws IOException {
        int port = freePort();
        RedisServerBuilder builder = RedisServer.newRedisServer()
                .port(port)
                .bind("127.0.0.1")
                .setting("save \"\"")
                .onShutdownForceStop(true);
        String binary = System.getenv("RATELIMIT_TEST_REDIS_BINARY");
        if (binary != null) {
            builder.executableProvider(() -> new File(binary));
        }
        redis = builder.build();
        redis.start();
        application = SpringApplication.run(
                Application.class,
                "--server.port=0",
                "--server.address=127.0.0.1",
                "--spring.data.redis.port=" + port,
                "--management.endpoints.web.exposure.include=ratelimits,health,metrics",
                "--management.endpoint.health.show-components=always",
                "--ratelimit.redis.timeout=10s",
                "--ratelimit.policies.per-ip.key=ip",
                "--ratelimit.policies.per-ip.rate=3/1h",
                "--ratelimit.policies.per-ip.paths=/address",
                "--ratelimit.policies.per-user.key=user,endpoint",
                "--ratelimit.policies.per-user.rate=2/1h",
                "--ratelimit.policies.per-user.paths=/user",
                "--ratelimit.policies.per-user.backend=redis");
    }

    @AfterAll
    static void stop() throws IOException {
        application.close();
        redis.stop();
    }

    @Test
    void runsOnTheOldestSpringBoot() {
        assertThat(SpringBootVersion.getVersion()).startsWith("4.0.");
    }

    @Test
    void aBurstFromOneAddressIsRejectedBeforeAuthentication() {
        assertThat(statuses(4, "/address", "nobody")).containsExactly(401, 401, 401, 429);
    }

    @Test
    void bucketsInRedisBelongToUsers() {
        await().untilAsserted(() ->
                assertThat(get("/actuator/health", "alice").body()).contains("\"ratelimit\":{\"status\":\"UP\"}"));
        assertThat(statuses(3, "/user", "alice")).containsExactly(200, 200, 429);
        assertThat(statuses(1, "/user", "bob")).containsExactly(200);
        assertThat(get("/user", "alice").headers().firstValue("Retry-After")).isPresent();
    }

    @Test
    void aRejectedCallOfAMethodIsA429() {
        assertThat(statuses(2, "/annotated", "alice")).containsExactly(200, 429);
    }

    @Test
    void theActuatorShowsPoliciesMetersAndTheBackend() {
        assertThat(get("/actuator/ratelimits", "alice").body()).contains("per-ip", "per-user", "redis");
        assertThat(get("/actuator/health", "alice").body()).contains("\"ratelimit\":{\"status\":\"UP\"}");
        assertThat(get("/actuator/metrics", "alice").body()).contains("ratelimit.");
    }

    private static List<Integer> statuses(int requests, String path, String user) {
        return IntStream.range(0, requests)
                .mapToObj(request -> get(path, user).statusCode())
                .toList();
    }

    private static HttpResponse<String> get(String path, String user) {
        int port = ((WebServerApplicationContext) application).getWebServer().getPort();
        String credentials = Base64.getEncoder().encodeToString((user + ":" + user).getBytes());
        try {
            return HttpClient.newHttpClient()
                    .send(
                            HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                                    .header("Authorization", "Basic " + credentials)
                                    .build(),
                            BodyHandlers.ofString());
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(interrupted);
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    @SpringBootConfiguration
    @EnableAutoConfiguration
    static class Application {

        @Bean
        Controller controller() {
            return new Controller();
        }

        @Bean
        SecurityFilterChain security(HttpSecurity http) {
            return http.authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                    .httpBasic(withDefaults())
                    .build();
        }

        @Bean
        UserDetailsService users() {
            return new InMemoryUserDetailsManager(
                    User.withUsername("alice").password("{noop}alice").build(),
                    User.withUsername("bob").password("{noop}bob").build());
        }
    }

    @RestController
    static class Controller {

        @GetMapping("/user")
        String user() {
            return "user";
        }

        @GetMapping("/annotated")
        @RateLimited(rate = "1/1h")
        String annotated() {
            return "annotated";
        }
    }
}
