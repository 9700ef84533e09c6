package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.policy.RateLimitProperties.RejectionDelay;
import io.ratelimit.web.servlet.rejection.DelayedRejections.DelayedRejection;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.mock.web.MockAsyncContext;
import org.springframework.mock.web.MockHttpServletMapping;
import org.springframework.mock.web.MockHttpServletRequest;

class DelayedRejectionsTests {

    private final ManualTimeSource time = new ManualTimeSource();
    private final PolicyResponses responses = new PolicyResponses(RateLimitHeaders.NONE);
    private final DelayedRejections late = new DelayedRejections(responses, time, ThrottleListener.NONE);
    private final Decision denied = denied("api");

    @BeforeEach
    void addPolicies() {
        responses.add("prompt", 429, RejectionDelay.NONE, null);
        assertThat(responses.anyDelay()).isFalse();
        responses.add("api", 429, RejectionDelay.of("2s"), null);
    }

    private Decision denied(String policy) {
        Throttlers throttlers = Throttlers.local(List.of(ThrottlePolicy.of(policy, BucketSpec.of("1/1m"))), time);
        throttlers.decide(List.of(throttlers.get(policy).forKey().charge(1)));
        return throttlers.decide(List.of(throttlers.get(policy).forKey().charge(1)));
    }

    @Test
    void atMostAThousandWaitUnderConcurrentCalls() {
        ConcurrentLinkedQueue<MockHttpServletRequest> waiting = new ConcurrentLinkedQueue<>();
        AtomicInteger atOnce = new AtomicInteger();
        IntStream.range(0, 3_000).parallel().forEach(i -> {
            MockHttpServletRequest request = request();
            if (defer(request, denied)) {
                waiting.add(request);
            } else {
                atOnce.incrementAndGet();
            }
        });

        assertThat(waiting).hasSize(1_000);
        assertThat(atOnce).hasValue(2_000);
        assertThat(late.waiting()).isEqualTo(1_000);

        waiting.stream().parallel().forEach(request -> {
            complete(request);
            complete(request);
        });
        assertThat(late.waiting()).isZero();
        assertThat(time.waiting()).as("nor does the time remember them").isZero();
    }

    @Test
    void aRequestIsDispatchedOnce() {
        MockHttpServletRequest request = request();
        assertThat(defer(request, denied)).isTrue();
        time.advance(Duration.ofMillis(1999));
        assertThat(dispatches(request)).isZero();
        time.advance(Duration.ofMillis(1));
        late.stop();
        timeOut(request);
        assertThat(dispatches(request)).isEqualTo(1);
    }

    @Test
    void theContainersTimeoutDispatchesWhenTheTimeSourceDoesNot() {
        MockHttpServletRequest request = request();
        defer(request, denied);
        assertThat(request.getAsyncContext().getTimeout()).isEqualTo(32_000);
        timeOut(request);
        assertThat(dispatches(request)).isEqualTo(1);
    }

    @Test
    void aRequestThatIsOverIsLeftAlone() {
        MockHttpServletRequest request = request();
        defer(request, denied);
        complete(request);
        time.advance(Duration.ofSeconds(2));
        assertThat(dispatches(request)).isZero();
    }

    @Test
    void aRequestThatTheContainerHasForgottenFreesItsPlace() {
        MockHttpServletRequest request = new Request() {
            @Override
            void dispatched() {
                throw new IllegalStateException("recycled");
            }
        };
        defer(request, denied);
        time.advance(Duration.ofSeconds(2));
        assertThat(late.waiting()).isZero();
    }

    @Test
    void aRequestThatTheContainerLosesAfterItsDispatchFreesItsPlace() {
        MockHttpServletRequest request = new Request() {
            @Override
            void dispatched() {}
        };
        defer(request, denied);
        time.advance(Duration.ofSeconds(2));
        assertThat(late.waiting()).isOne();
        time.advance(Duration.ofMinutes(1));
        assertThat(late.waiting()).isZero();
        assertThat(DelayedRejection.claim(request)).as("is written anyway").isNotNull();
    }

    @Test
    void aRequestThatCantBePutOffTakesNoPlace() {
        MockHttpServletRequest request = request();
        request.setAsyncSupported(false);
        assertThat(defer(request, denied)).isFalse();

        MockHttpServletRequest closed = new MockHttpServletRequest() {
            @Override
            public AsyncContext startAsync(ServletRequest request, ServletResponse response) {
                throw new IllegalStateException("closed");
            }
        };
        closed.setAsyncSupported(true);
        assertThatIllegalStateException().isThrownBy(() -> defer(closed, denied));
        assertThat(late.waiting()).isZero();

        MockHttpServletRequest recycled = new MockHttpServletRequest() {
            @Override
            public AsyncContext startAsync(ServletRequest request, ServletResponse response) {
                return new MockAsyncContext(request, response) {
                    @Override
                    public void setTimeout(long timeout) {
                        throw new IllegalStateException("recycled");
                    }
                };
            }
        };
        recycled.setAsyncSupported(true);
        assertThatIllegalStateException().isThrownBy(() -> defer(recycled, denied));
        assertThat(late.waiting()).isZero();
    }

    @ParameterizedTest
    @EnumSource(
            names = {"INCLUDE", "ERROR"},
            value = DispatcherType.class)
    void aPartOfAnAnswerIsNotPutOffNorIsItsEnd(DispatcherType type) {
        MockHttpServletRequest request = request();
        request.setDispatcherType(type);
        assertThat(defer(request, denied)).isFalse();
    }

    @Test
    void aRejectionWithoutADelayIsNotDeferred() {
        assertThat(defer(request(), denied("prompt"))).isFalse();
        assertThat(defer(request(), denied("unknown"))).isFalse();
    }

    @Test
    void stoppingAnswersAllAndNoneIsPutOffUntilItStartsAgain() {
        MockHttpServletRequest request = request();
        defer(request, denied);
        late.stop();
        assertThat(dispatches(request)).isEqualTo(1);
        assertThat(defer(request(), denied)).isFalse();
        late.start();
        assertThat(defer(request(), denied)).isTrue();
    }

    private boolean defer(MockHttpServletRequest request, Decision decision) {
        return late.defer(request, decision);
    }

    private static MockHttpServletRequest request() {
        return new Request();
    }

    private static int dispatches(MockHttpServletRequest request) {
        return ((Request) request).dispatches.get();
    }

    private static void complete(MockHttpServletRequest request) {
        listener(request).onComplete(null);
    }

    private static void timeOut(MockHttpServletRequest request) {
        listener(request).onTimeout(null);
    }

    private static DelayedRejection listener(MockHttpServletRequest request) {
        return (DelayedRejection)
                ((MockAsyncContext) request.getAsyncContext()).getListeners().get(0);
    }

    /** The context of a container that counts dispatches and runs them at once. */
    private static class Request extends MockHttpServletRequest {

        private final AtomicInteger dispatches = new AtomicInteger();

        Request() {
            super("GET", "/api");
            setAsyncSupported(true);
            setHttpServletMapping(new MockHttpServletMapping("", "/", "", null));
        }

        void dispatched() {
            dispatches.incrementAndGet();
            complete(this);
        }

        @Override
        public AsyncContext startAsync(ServletRequest request, ServletResponse response) {
            MockAsyncContext context = new MockAsyncContext(request, response) {
                @Override
                public void dispatch(String path) {
                    dispatched();
                }
            };
            setAsyncContext(context);
            return context;
        }
    }
}
