package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.mock.web.MockHttpServletResponse;

class RateLimitHeadersTests {

    /** The response is written after the wait. */
    @Test
    void theTimesOfACallThatWaitedBeginAfterItsWait() {
        BucketStore store = BucketStore.local(new ManualTimeSource());
        Charge one = Charge.of(ThrottlePolicy.of("api", BucketSpec.of("1/1h")), "", 1)
                .withMaxWait(Duration.ofHours(5));
        assertThat(store.take(List.of(one)).allowed()).isTrue();
        Decision waiting = store.reserve(List.of(one));
        assertThat(waiting.answers().get(0).waitNanos())
                .isEqualTo(Duration.ofHours(1).toNanos());
        MockHttpServletResponse response = new MockHttpServletResponse();
        RateLimitHeaders.X_RATELIMIT.write(waiting.answers().get(0), response);
        assertThat(response.getHeader("X-RateLimit-Remaining")).isEqualTo("0");
        assertThat(response.getHeader("X-RateLimit-Reset")).isEqualTo("3600");
        RateLimitHeaders.DRAFT_11.write(waiting.answers().get(0), response);
        assertThat(response.getHeader("RateLimit")).isEqualTo("\"api\";r=0;t=3600");
    }
}
