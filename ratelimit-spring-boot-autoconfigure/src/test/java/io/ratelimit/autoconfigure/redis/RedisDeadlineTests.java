package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.autoconfigure.redis.Clients.Answer;
import io.ratelimit.remote.Deadline;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** G3: all Redis calls of a request together end in time, whatever happens to the replies. */
@Tag("slow")
@Tag("timed")
class RedisDeadlineTests {

    private static final int CLIENTS = 50;
    private static final int REQUESTS = 1_000;

    @AutoClose
    private final RedisProcess redis = RedisProcess.started();

    @AutoClose
    private final TcpProxy proxy = new TcpProxy(redis.port());

    private RedisApplication application(String strategy) {
        return RedisApplication.start(proxy.port(), """
                ratelimit:
                  backend: redis
                  redis.strategy: %s
                  policies:
                    early: { key: ip, rate: 1000000/1s }
                    late: { key: ip, rate: 1000000/1s, phase: after-authentication }
                """.formatted(strategy));
    }

    /** Sends requests while replies are late, come in pieces, are cut off, and are dropped. */
    private void disturb(Clients clients) {
        proxy.delay(Duration.ofMillis(40));
        clients.awaitAnswers(REQUESTS / 4);
        proxy.delay(Duration.ofMillis(90));
        clients.awaitAnswers(REQUESTS / 4);
        proxy.delay(Duration.ZERO);
        proxy.slice();
        proxy.cut();
        clients.awaitAnswers(REQUESTS / 4);
        proxy.cut();
        proxy.swallow();
        clients.awaitAnswers(REQUESTS / 4);
        proxy.swallowNoMore();
        clients.awaitAnswers(REQUESTS / 4);
    }

    @Test
    void overHttp() {
        try (RedisApplication application = application("script")) {
            Clients clients = new Clients(CLIENTS, client -> application.status("/a"));
            try (clients) {
                disturb(clients);
            }
            assertThat(clients.answers()).extracting(Answer::status).containsOnly(200);
            clients.assertInTime();
        }
    }

    /** One request makes three calls. */
    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void inTheStore(String strategy) {
        ThrottlePolicy policy = ThrottlePolicy.of("store", BucketSpec.of("1000000/1s"), "user");
        try (RedisApplication application = application(strategy)) {
            BucketStore store = application.bean(BucketStore.class);
            Deadline deadline = application.bean(Deadline.class);
            Clients clients = new Clients(CLIENTS, client -> {
                deadline.open(new Deadline.Request());
                for (int call = 0; call < 3; call++) {
                    store.take(List.of(Charge.of(policy, "user" + client, 1)));
                }
                deadline.close();
                return 200;
            });
            try (clients) {
                disturb(clients);
            }
            clients.assertInTime();
        }
    }
}
