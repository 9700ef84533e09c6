package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import io.ratelimit.web.servlet.RawHttp.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** With virtual threads, more requests may wait than a server has platform threads. */
@EnabledForJreRange(min = JRE.JAVA_21)
@Timeout(300)
class VirtualThreadTests {

    private static final int WAITING = 300;

    private static final String YAML = """
            spring.threads.virtual.enabled: true
            server.tomcat.threads.max: 10
            ratelimit:
              policies:
                line: { rate: 1/s, paths: /line/**, max-wait: 1h, queue-limit: 300 }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class, InterruptedWaitTests.Threads.class);

    private final ManualTimeSource time = server.bean(ManualTimeSource.class);
    private final Queue<String> served = server.bean(Api.class).served;

    @BeforeEach
    void noRequestHasBeenServed() {
        served.clear();
    }

    @Test
    void threeHundredWaitAndAreServedInOrderWhileOthersAreServedAtOnce() {
        assertThat(server.http().get("/line/0").status()).isEqualTo(200);
        List<Connection> waiting = new ArrayList<>();
        List<String> expected = new ArrayList<>(List.of("0"));
        for (int i = 1; i <= WAITING; i++) {
            int sent = i;
            waiting.add(server.http().open().write(RawHttp.text("GET", "/line/" + i, "Connection: close")));
            Awaitility.await().pollInterval(Duration.ofMillis(1)).until(() -> time.waiting() == sent);
            expected.add(Integer.toString(i));
        }
        assertThat(server.http().get("/free").body()).startsWith("VirtualThread[");
        assertThat(server.http().get("/line/refused").body())
                .contains("Too many requests already wait for 'line' policy");

        for (int i = 1; i <= WAITING; i++) {
            int due = i + 1;
            Awaitility.await().pollInterval(Duration.ofMillis(1)).until(() -> time.waiting() == WAITING + 2 - due);
            server.advance(Duration.ofSeconds(1));
            Awaitility.await().pollInterval(Duration.ofMillis(1)).until(() -> served.size() == due);
        }

        assertThat(served).containsExactlyElementsOf(expected);
        assertThat(waiting)
                .allSatisfy(one -> assertThat(one.readToEnd().status()).isEqualTo(200));
        assertThat(server.bean(Throttlers.class).waiting("line")).isZero();
    }

    @Test
    void oneThatIsInterruptedIsAnswered() throws InterruptedException {
        BlockingQueue<Thread> serving = server.bean(InterruptedWaitTests.Threads.class).serving;
        server.http().get("/line/0");
        serving.clear();
        try (Connection waiting = server.http().open()) {
            waiting.write(RawHttp.text("GET", "/line/1", "Connection: close"));
            Awaitility.await().until(() -> time.waiting() == 1);
            serving.take().interrupt();
            assertThat(waiting.readToEnd().status()).isEqualTo(503);
        }
        server.advance(Duration.ofSeconds(1));
        assertThat(server.available("line")).isEqualTo(1);
    }

    @RestController
    static class Api {

        final Queue<String> served = new ConcurrentLinkedQueue<>();

        @GetMapping("/line/{n}")
        String serve(@PathVariable String n) {
            served.add(n);
            return n;
        }

        @GetMapping("/free")
        String free() {
            return Thread.currentThread().toString();
        }
    }
}
