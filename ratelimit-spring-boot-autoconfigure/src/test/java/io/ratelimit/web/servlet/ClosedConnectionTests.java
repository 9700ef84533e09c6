package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import jakarta.servlet.Filter;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.apache.coyote.AbstractProtocol;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.tomcat.TomcatWebServer;
import org.springframework.boot.web.server.servlet.context.ServletWebServerApplicationContext;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;

/** Requests of HTTP/2 that begin when their connection is closed, so that the container knows no address. */
@Timeout(60)
class ClosedConnectionTests {

    private static final String YAML = """
            server.http2.enabled: true
            ratelimit.policies.client: { key: ip, rate: 5/1d }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Late.class);

    @Test
    void clientsWithoutAnAddressDoNotShareTheirBucket() throws Exception {
        Late late = server.bean(Late.class);
        try (RawHttp2 http = new RawHttp2(server.http().port())) {
            http.request("GET", "/");
            late.arrived.acquire();
        }
        TomcatWebServer tomcat = (TomcatWebServer) late.context.getWebServer();
        AbstractProtocol<?> protocol =
                (AbstractProtocol<?>) tomcat.getTomcat().getConnector().getProtocolHandler();
        await().until(() -> protocol.getConnectionCount() <= 1); // one is the acceptor's
        late.mayGoOn.countDown();
        late.done.acquire();
        assertThat(server.available("client", "closed")).isEqualTo(4);
        assertThat(server.available("client", "none")).isEqualTo(5);
    }

    @Configuration(proxyBeanMethods = false)
    static class Late {

        final Semaphore arrived = new Semaphore(0);
        final CountDownLatch mayGoOn = new CountDownLatch(1);
        final ServletWebServerApplicationContext context;
        final Semaphore done = new Semaphore(0);

        Late(ApplicationContext context) {
            this.context = (ServletWebServerApplicationContext) context;
        }

        @Bean
        FilterRegistrationBean<Filter> late() {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                arrived.release();
                try {
                    mayGoOn.await();
                } catch (InterruptedException interrupted) {
                    throw new IllegalStateException(interrupted);
                }
                try {
                    chain.doFilter(request, response);
                } finally {
                    done.release();
                }
            });
            registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
            registration.setAsyncSupported(true);
            return registration;
        }
    }
}
