package io.ratelimit.testing;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.autoconfigure.test.AutoConfigureRateLimit;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.resttestclient.autoconfigure.AutoConfigureRestTestClient;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.webmvc.test.autoconfigure.AutoConfigureMockMvc;
import org.springframework.boot.webtestclient.autoconfigure.AutoConfigureWebTestClient;
import org.springframework.http.HttpStatus;
import org.springframework.test.web.reactive.server.WebTestClient;
import org.springframework.test.web.servlet.assertj.MockMvcTester;
import org.springframework.test.web.servlet.client.RestTestClient;

/** Each test drains the one bucket of {@code orders}, by another client, and finds it full. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@AutoConfigureMockMvc
@AutoConfigureRestTestClient
@AutoConfigureWebTestClient
@AutoConfigureRateLimit
@Tag("slow")
class ApplicationWithLimitsTests {

    @Autowired
    private ManualTimeSource time;

    @Test
    void mockMvcIsLimited(@Autowired MockMvcTester mvc) {
        assertThat(mvc.get().uri("/orders/1")).hasStatusOk();
        assertThat(mvc.get().uri("/orders/1")).hasStatusOk();
        assertThat(mvc.get().uri("/orders/1")).hasStatus(HttpStatus.TOO_MANY_REQUESTS);
    }

    @Test
    void theRestTestClientIsLimited(@Autowired RestTestClient client) {
        client.get().uri("/orders/1").exchange().expectStatus().isOk();
        client.get().uri("/orders/1").exchange().expectStatus().isOk();
        client.get()
                .uri("/orders/1")
                .exchange()
                .expectStatus()
                .isEqualTo(HttpStatus.TOO_MANY_REQUESTS)
                .expectHeader()
                .valueEquals("Retry-After", "30");

        time.advance(Duration.ofSeconds(30));
        client.get().uri("/orders/1").exchange().expectStatus().isOk();
    }

    @Test
    void theWebTestClientIsLimited(@Autowired WebTestClient client) {
        client.get().uri("/orders/1").exchange().expectStatus().isOk();
        client.get().uri("/orders/1").exchange().expectStatus().isOk();
        client.get().uri("/orders/1").exchange().expectStatus().isEqualTo(HttpStatus.TOO_MANY_REQUESTS);
    }
}
