package io.ratelimit.sample;

import io.ratelimit.ManualTimeSource;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Bean;
import org.springframework.http.HttpStatus;
import org.springframework.test.web.servlet.client.RestTestClient;

/** A limit over HTTP, as {@code docs/testing.md} tests it. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
class ReportLimitTests {

    @TestConfiguration(proxyBeanMethods = false)
    static class StandingTime {

        @Bean
        ManualTimeSource time() {
            return new ManualTimeSource();
        }
    }

    @Autowired
    private ManualTimeSource time;

    @LocalServerPort
    private int port;

    @BeforeEach
    void fillTheBuckets() {
        time.advance(Duration.ofDays(1));
    }

    @Test
    void theSeventhQuickReportIsRefusedUntilTenSecondsHavePassed() {
        RestTestClient alice = RestTestClient.bindToServer()
                .baseUrl("http://localhost:" + port)
                .defaultHeaders(headers -> headers.setBasicAuth("alice", "alice"))
                .build();
        for (int i = 0; i < 6; i++) {
            alice.get().uri("/api/report").exchange().expectStatus().isOk();
        }

        alice.get()
                .uri("/api/report")
                .exchange()
                .expectStatus()
                .isEqualTo(HttpStatus.TOO_MANY_REQUESTS)
                .expectHeader()
                .valueEquals("Retry-After", "10")
                .expectBody()
                .jsonPath("$['violated-policies'][0]")
                .isEqualTo("report");

        time.advance(Duration.ofSeconds(10));
        alice.get().uri("/api/report").exchange().expectStatus().isOk();
    }
}
