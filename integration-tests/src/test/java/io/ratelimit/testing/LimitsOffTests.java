package io.ratelimit.testing;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Throttlers;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.resttestclient.autoconfigure.AutoConfigureRestTestClient;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.test.web.servlet.client.RestTestClient;

/** Tests of something else than limits: {@code ratelimit.mode: off} in the properties of the tests suffices. */
@SpringBootTest
@AutoConfigureRestTestClient
@Tag("slow")
class LimitsOffTests {

    @Autowired
    private RestTestClient client;

    @Autowired
    private Throttlers throttlers;

    @RepeatedTest(3)
    void noRequestIsRejected() {
        client.get().uri("/orders/1").exchange().expectStatus().isOk();
        client.get().uri("/search").exchange().expectStatus().isOk();
    }

    @Test
    void theBeansAreThere() {
        assertThat(throttlers.get("orders").policy().spec().capacity()).isEqualTo(2);
    }
}
