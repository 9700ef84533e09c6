package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Requests that are settled, with buckets in memory. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class SettleTests extends SettleContract {

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Application.class);

    @Override
    TestServer server() {
        return server;
    }

    @Test
    void aDebtIsPaidByTime() {
        assertThat(server.http().get("/attribute/number?tokens=120").status()).isEqualTo(200);
        server.advance(Duration.ofSeconds(30 * 864 - 1));
        assertThat(server.http().get("/attribute/number?tokens=1").status()).isEqualTo(429);
        server.advance(Duration.ofSeconds(1));
        assertThat(server.http().get("/attribute/number?tokens=1").status()).isEqualTo(200);
    }

    @Test
    void aValueThatIsNoCostIsLoggedWithoutTheValue(CapturedOutput output) {
        server.advance(Duration.ofMinutes(1));
        server.http().get("/header?tokens=secret");
        server.http().get("/header?tokens=secret");
        assertThat(LogLines.of(output, "FailureLog"))
                .singleElement()
                .asString()
                .contains("'header'", "its actual cost, response-header:X-Tokens, so the estimate stands")
                .doesNotContain("secret");
    }
}
