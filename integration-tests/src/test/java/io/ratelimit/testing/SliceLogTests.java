package io.ratelimit.testing;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.autoconfigure.test.AutoConfigureRateLimit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.webmvc.test.autoconfigure.WebMvcTest;
import org.springframework.http.HttpStatus;
import org.springframework.test.web.servlet.assertj.MockMvcTester;

@ExtendWith(OutputCaptureExtension.class)
@WebMvcTest(properties = {"ratelimit.policies.each.key=endpoint", "ratelimit.policies.each.rate=1/1m"})
@AutoConfigureRateLimit
class SliceLogTests {

    @Autowired
    private MockMvcTester mvc;

    @Test
    void aSliceKnowsTheEndpoints(CapturedOutput output) {
        assertThat(mvc.get().uri("/orders/1")).hasStatusOk();
        assertThat(mvc.get().uri("/orders/2")).hasStatus(HttpStatus.TOO_MANY_REQUESTS);
        assertThat(mvc.get().uri("/search")).hasStatusOk();
        assertThat(output).contains("Rate limits: ").doesNotContain("DispatcherServlet: all requests");
    }
}
