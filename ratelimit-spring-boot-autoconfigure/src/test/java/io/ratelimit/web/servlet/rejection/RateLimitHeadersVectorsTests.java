package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketStore;
import io.ratelimit.BucketStoreVectorsContract;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ManualTimeSource;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.springframework.mock.web.MockHttpServletResponse;

/** The fields that {@link RateLimitHeaders} writes are those of {@code vectors/ratelimit-vectors.json}. */
class RateLimitHeadersVectorsTests extends BucketStoreVectorsContract {

    private final ManualTimeSource time = new ManualTimeSource();
    private final BucketStore store = BucketStore.local(time);

    @Override
    protected BucketStore store() {
        return store;
    }

    @Override
    protected void advance(Duration step) {
        time.advance(step);
    }

    @Override
    protected void setWallClock(Instant now) {
        time.setWallClock(now);
    }

    @Test
    void theFieldsOfSharesAreThoseOfTheVectors() {
        runShares();
    }

    @Override
    protected void checkHeaders(String name, Answer answer, String policy, String limit) {
        MockHttpServletResponse response = new MockHttpServletResponse();

        RateLimitHeaders.DRAFT_11.write(answer, response);

        assertThat(response.getHeader("RateLimit-Policy")).as(name).isEqualTo(policy);
        assertThat(response.getHeader("RateLimit")).as(name).isEqualTo(limit);
    }
}
