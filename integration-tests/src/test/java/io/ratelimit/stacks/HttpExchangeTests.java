package io.ratelimit.stacks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.sun.net.httpserver.HttpServer;
import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.migration.Client;
import io.ratelimit.migration.RunningApplication;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.support.RestClientAdapter;
import org.springframework.web.service.annotation.GetExchange;
import org.springframework.web.service.annotation.HttpExchange;
import org.springframework.web.service.invoker.HttpServiceProxyFactory;
import org.springframework.web.service.registry.ImportHttpServices;

/** Interfaces with {@code @HttpExchange}: clients that Spring makes of them, and controllers that implement them. */
@Tag("slow")
class HttpExchangeTests {

    private static RunningApplication start(String policy, int remotePort) {
        return RunningApplication.start(Application.class, """
                remote: http://127.0.0.1:%d
                spring.http.serviceclient.remote.base-url: ${remote}
                ratelimit.policies:
                  calls: { rate: 1/1h, applies-to: annotated }
                  %s
                """.formatted(remotePort, policy));
    }

    @Test
    void aControllerThatImplementsTheInterfaceIsLimited() {
        try (RunningApplication application =
                start("per-endpoint: { key: endpoint, rate: 3/1h, paths: /shop/** }", 1)) {
            Client client = application.client();
            assertThat(client.get("/shop/items/1").body()).isEqualTo("item 1");
            assertThat(client.get("/shop/items/1").body()).contains("\"violated-policies\":[\"calls\"]");
            assertThat(client.get("/shop/items/2").body()).isEqualTo("item 2");
            assertThat(client.get("/shop/items/3").body()).contains("\"violated-policies\":[\"per-endpoint\"]");
        }
    }

    @Test
    void aClientDoesNotSendWhatItsLimitDenies() throws IOException {
        AtomicInteger sent = new AtomicInteger();
        HttpServer remote = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        remote.createContext("/", exchange -> {
            sent.incrementAndGet();
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        remote.start();
        try (RunningApplication application = start("", remote.getAddress().getPort())) {
            for (Items client : new Items[] {application.bean(Made.class), application.bean(Imported.class)}) {
                sent.set(0);
                String id = client.getClass().getName();
                client.item(id);
                assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(() -> client.item(id));
                client.item("another of " + id);
                assertThat(sent).hasValue(2);
            }
        } finally {
            remote.stop(0);
        }
    }

    @HttpExchange("/shop")
    interface Items {

        @GetExchange("/items/{id}")
        @RateLimited(policy = "calls", key = "#id")
        String item(@PathVariable String id);
    }

    interface Imported extends Items {}

    interface Made extends Items {}

    @RestController
    static class Shop implements Items {

        @Override
        public String item(String id) {
            return "item " + id;
        }
    }

    @SpringBootConfiguration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @ImportHttpServices(group = "remote", types = Imported.class)
    @Import(Shop.class)
    static class Application {

        @Bean
        Made made(RestClient.Builder builder, @Value("${remote}") String remote) {
            RestClientAdapter adapter =
                    RestClientAdapter.create(builder.baseUrl(remote).build());
            return HttpServiceProxyFactory.builderFor(adapter).build().createClient(Made.class);
        }
    }
}
