package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import redis.embedded.RedisServer;

/** Requests on virtual threads, which wait for Redis and for tokens. */
@EnabledForJreRange(min = JRE.JAVA_21, disabledReason = "Java 17 has no virtual threads")
@SpringBootTest(
        webEnvironment = WebEnvironment.RANDOM_PORT,
        properties = {
            "spring.threads.virtual.enabled=true",
            "ratelimit.redis.timeout=5s",
            "ratelimit.policies.wrong-passwords.mode=off",
            "ratelimit.policies.per-endpoint.backend=redis",
            "ratelimit.policies.checkout.rate=200/1s",
            "ratelimit.policies.checkout.capacity=1",
            "ratelimit.policies.checkout.queue-limit=500"
        })
@DirtiesContext
class VirtualThreadTests {

    private static final int REQUESTS = 400;

    @AutoClose("stop")
    private static RedisServer redis;

    private final HttpClient client = HttpClient.newHttpClient();
    private final int port;

    VirtualThreadTests(@LocalServerPort int port) {
        this.port = port;
    }

    @DynamicPropertySource
    static void redis(DynamicPropertyRegistry registry) throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        redis = RedisServer.newRedisServer()
                .port(port)
                .bind("127.0.0.1")
                .setting("save \"\"")
                .build();
        redis.start();
        registry.add("spring.data.redis.port", () -> port);
        registry.add("spring.data.redis.host", () -> "127.0.0.1");
    }

    private CompletableFuture<Integer> request(String method, String path) {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + port + path))
                .method(method, HttpRequest.BodyPublishers.noBody())
                .header("Authorization", "Basic YWxpY2U6YWxpY2U=")
                .build();
        return client.sendAsync(request, BodyHandlers.discarding()).thenApply(HttpResponse::statusCode);
    }

    private void load() {
        List<CompletableFuture<Integer>> responses = IntStream.range(0, REQUESTS)
                .mapToObj(i -> i % 2 == 0 ? request("POST", "/api/checkout") : request("GET", "/api/hello"))
                .toList();
        assertThat(responses.stream().map(CompletableFuture::join)).containsOnly(200);
    }

    @Test
    void noCallOfALimitPinsAThread(@TempDir Path directory) throws Exception {
        load(); // the initialization of a class pins the threads that wait for it, once
        Path file = directory.resolve("recording.jfr");
        try (Recording recording = new Recording()) {
            recording.enable("jdk.VirtualThreadStart");
            recording
                    .enable("jdk.VirtualThreadPinned")
                    .withThreshold(Duration.ZERO)
                    .withStackTrace();
            recording.start();
            load();
            recording.stop();
            recording.dump(file);
        }
        List<RecordedEvent> events = RecordingFile.readAllEvents(file);
        assertThat(events.stream().filter(is("jdk.VirtualThreadStart"))).hasSizeGreaterThanOrEqualTo(REQUESTS);
        assertThat(events.stream().filter(is("jdk.VirtualThreadPinned"))).noneMatch(VirtualThreadTests::isOurs);
    }

    private static Predicate<RecordedEvent> is(String name) {
        return event -> event.getEventType().getName().equals(name);
    }

    private static boolean isOurs(RecordedEvent event) {
        return event.getStackTrace() != null
                && event.getStackTrace().getFrames().stream()
                        .map(frame -> frame.getMethod().getType().getName())
                        .anyMatch(type -> type.startsWith("io.ratelimit.") && !type.startsWith("io.ratelimit.sample."));
    }
}
