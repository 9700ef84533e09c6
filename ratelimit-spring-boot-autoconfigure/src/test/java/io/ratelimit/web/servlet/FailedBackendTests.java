package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.TimeSource;
import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp.Response;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The responses when the backend failed and the policy's rule for failures is to deny. */
@ExtendWith(OutputCaptureExtension.class)
class FailedBackendTests {

    private static final String YAML = """
            ratelimit:
              policies:
                away: { key: ip, rate: 100/1m, paths: /away, status: 420 }
                both-away: { rate: 100/1m, paths: /both, retry-jitter: 500ms-500ms }
                both-drained: { key: ip, rate: 1/1m, paths: /both }
                call-away: { rate: 100/1m, applies-to: annotated }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    @Test
    void itIsTheServersFaultAndNotTheClients() {
        Response refusal = server.http().get("/away");

        assertThat(refusal.status()).isEqualTo(503);
        assertThat(refusal.header("Retry-After")).isEqualTo("2");
        assertThat(refusal.header("X-RetryAfterMs")).isEqualTo("1500");
        assertThat(refusal.header("Cache-Control")).isEqualTo("no-store");
        assertThat(refusal.names()).as("nobody knows the level").doesNotContain("RateLimit", "RateLimit-Policy");
        assertThat(refusal.body())
                .isEqualTo("{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\","
                        + "\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"The limit of 'away' policy can't be"
                        + " checked at the moment, please retry after 1500 ms.\",\"violated-policies\":[\"away\"],"
                        + "\"retryAfterMs\":1500}");
    }

    @Test
    void aFailureOutweighsADenialAndTheLongestRetryTimeCounts() {
        Response refusal = server.http().get("/both", "Accept: text/plain");

        assertThat(refusal.status()).isEqualTo(503);
        assertThat(refusal.header("X-RetryAfterMs")).isEqualTo("60000");
        assertThat(refusal.body())
                .isEqualTo(
                        "The limit of 'both-away' policy can't be checked at the moment, please retry after 60000 ms.\n");
    }

    @Test
    void aDeniedCallIsRejectedTheSameWay() {
        Response refusal = server.http().get("/call");

        assertThat(refusal.status()).isEqualTo(503);
        assertThat(refusal.body()).contains("The limit of 'call-away' policy can't be checked at the moment");
        assertThat(server.http().get("/message").body())
                .isEqualTo(
                        "The limit of 'call-away' policy can't be checked at the moment, please retry after 1500 ms. PT1.5S");
    }

    @Test
    void itIsNoDenial(CapturedOutput output) {
        server.http().get("/away");

        assertThat(output).doesNotContain("'away' denied");
    }

    @RestController
    static class Api {

        @GetMapping({"/away", "/both"})
        String hello() {
            return "hello";
        }

        @GetMapping("/call")
        @RateLimited("call-away")
        public String call() {
            return "called";
        }

        @RateLimited(policy = "call-away", fallback = "said")
        @GetMapping("/message")
        public String message() {
            return "called";
        }

        String said(RateLimitExceededException refused) {
            return refused.getMessage() + " " + refused.retryAfter();
        }

        @Bean
        BucketStore store(TimeSource time) {
            return new Away(BucketStore.local(time));
        }
    }

    /** The store fails for policies with "away" in their name, and denies for a minute those with "drained". */
    record Away(BucketStore store) implements BucketStore {

        @Override
        public Decision take(List<Charge> charges) {
            return Decision.of(charges.stream().map(Away::answer).toList());
        }

        private static Answer answer(Charge charge) {
            boolean away = charge.policy().name().endsWith("away");
            Duration retry = Duration.ofMillis(away ? 1_500 : 60_000);
            Outcome outcome = away ? Outcome.BACKEND_FAILED : Outcome.DENIED;
            return Answer.denied(charge, outcome, retry);
        }

        @Override
        public Decision reserve(List<Charge> charges) {
            return take(charges);
        }

        @Override
        public void giveBack(List<Answer> taken) {}

        @Override
        public BucketSnapshot snapshot(Charge charge) {
            return store.snapshot(charge);
        }

        @Override
        public void reset(Charge charge) {}
    }
}
