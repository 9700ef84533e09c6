package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletAutoConfiguration;
import org.springframework.boot.webmvc.autoconfigure.WebMvcAutoConfiguration;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;

class OpenRequestsTests {

    private final Clock clock = new Clock();
    private boolean broken;

    private void openOne() {
        new WebApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        DispatcherServletAutoConfiguration.class,
                        WebMvcAutoConfiguration.class,
                        RateLimitAutoConfiguration.class,
                        RateLimitWebServletAutoConfiguration.class))
                .withPropertyValues("ratelimit.policies.api.rate=2/1s")
                .run(context -> {
                    MockHttpServletRequest request = new MockHttpServletRequest() {
                        @Override
                        public @Nullable Object getAttribute(String name) {
                            if (broken) {
                                throw new IllegalArgumentException("broken");
                            }
                            return super.getAttribute(name);
                        }
                    };
                    MockHttpServletResponse response = new MockHttpServletResponse();
                    request.setAsyncSupported(true);
                    request.startAsync();
                    RequestLedger ledger = RequestLedger.of(request, new ServerLimits.Late(context));
                    OpenRequests open = new OpenRequests(clock);
                    if (clock.fails) {
                        assertThatThrownBy(() -> open.open(ledger, request, response))
                                .isInstanceOf(OutOfMemoryError.class);
                        clock.fails = false;
                    }
                    open.open(ledger, request, response);
                });
    }

    @Test
    void aCheckThatCouldNotBeScheduledIsScheduledWithTheNextRequest() {
        clock.fails = true;
        openOne();
        assertThat(clock.calls).hasSize(1);
    }

    @Test
    void anOpenRequestIsCheckedEachSecond() {
        openOne();
        for (int second = 1; second <= 3; second++) {
            clock.nanos += Duration.ofSeconds(1).toNanos();
            clock.calls.remove().run();
            assertThat(clock.calls).hasSize(1);
        }
    }

    @Test
    void aCheckThatFailsIsMadeAgain() {
        openOne();
        broken = true;
        clock.nanos += Duration.ofSeconds(1).toNanos();
        assertThatThrownBy(() -> clock.calls.remove().run()).hasMessage("broken");
        assertThat(clock.calls).hasSize(1);
    }

    /** A closed clock makes all pending calls at once, so scheduling another one each time would never end. */
    @Test
    void noCheckIsScheduledOnAClosedClock() {
        openOne();
        clock.calls.remove().run();
        assertThat(clock.calls).isEmpty();
    }

    /** A clock that makes a scheduled call when the test wants it, perhaps too early. */
    private static final class Clock implements TimeSource {

        private final Deque<Runnable> calls = new ArrayDeque<>();
        private long nanos;
        private boolean fails;

        @Override
        public long nanoTime() {
            return nanos;
        }

        @Override
        public Future<?> callAt(long moment, Runnable call) {
            if (fails) {
                throw new OutOfMemoryError();
            }
            calls.add(call);
            return new CompletableFuture<>();
        }
    }
}
