package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class RateLimitExceededExceptionTests {

    private final ThrottlePolicy policy = ThrottlePolicy.of("search", BucketSpec.of("1/1h"), "user");
    private final Throttlers throttlers = Throttlers.local(List.of(policy), new ManualTimeSource());

    @Test
    void serializationKeepsTheDecisionButNotTheKey() throws IOException, ClassNotFoundException {
        List<Charge> charges = List.of(Charge.of(policy, "alice", 1));
        throttlers.decide(charges);
        Decision denied = throttlers.decide(charges);
        RateLimitExceededException thrown = new RateLimitExceededException(denied);
        assertThat(thrown.decision()).isSameAs(denied);

        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(thrown);
        }

        assertThat(bytes.toString(StandardCharsets.ISO_8859_1)).doesNotContain("alice");
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            RateLimitExceededException read = (RateLimitExceededException) in.readObject();
            assertThat(read).hasMessage(thrown.getMessage());
            assertThat(read.policy()).isEqualTo("search");
            assertThat(read.retryAfter()).isEqualTo(Duration.ofHours(1));
            assertThat(read.decision().outcome()).isEqualTo(Outcome.DENIED);
            assertThat(read.decision().resetAfter()).isEqualTo(Duration.ofHours(1));
            assertThat(read.decision().answers()).isEmpty();
        }
    }
}
