package io.ratelimit.testing;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.autoconfigure.test.AutoConfigureRateLimit;
import java.time.Duration;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.webmvc.test.autoconfigure.WebMvcTest;
import org.springframework.http.HttpStatus;
import org.springframework.test.web.servlet.assertj.MockMvcTester;

@WebMvcTest
@AutoConfigureRateLimit
class OrderLimitTests {

    @Autowired
    private MockMvcTester mvc;

    @Autowired
    private ManualTimeSource time;

    @RepeatedTest(2)
    void eachTestFindsFullBuckets() {
        assertThat(mvc.get().uri("/orders/1")).hasStatusOk();
        assertThat(mvc.get().uri("/orders/2")).hasStatusOk();
        assertThat(mvc.get().uri("/orders/3"))
                .hasStatus(HttpStatus.TOO_MANY_REQUESTS)
                .hasHeader("Retry-After", "30");

        time.advance(Duration.ofSeconds(30));
        assertThat(mvc.get().uri("/orders/3")).hasStatusOk();
    }

    @RepeatedTest(2)
    void annotatedMethodsAreLimited() {
        assertThat(mvc.get().uri("/search")).hasStatusOk();
        assertThat(mvc.get().uri("/search")).hasStatus(HttpStatus.TOO_MANY_REQUESTS);
    }

    @Test
    void otherPathsAreNot() {
        assertThat(mvc.get().uri("/")).hasStatus(HttpStatus.NOT_FOUND);
        assertThat(mvc.get().uri("/")).hasStatus(HttpStatus.NOT_FOUND);
        assertThat(mvc.get().uri("/")).hasStatus(HttpStatus.NOT_FOUND);
    }
}
