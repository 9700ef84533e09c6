package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ExhaustedTimeSource;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.PolicyListener;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.UpkeepTimeSource;
import io.ratelimit.autoconfigure.PolicyLog.LineSampler;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

@ExtendWith(OutputCaptureExtension.class)
class PolicyLogTests {

    private static final ThrottlePolicy SLOW = ThrottlePolicy.of("slow", BucketSpec.of("1/1d"), "user");
    private static final ThrottlePolicy OTHER = ThrottlePolicy.of("other", BucketSpec.of("1/1d"), "user");
    private static final ThrottlePolicy SHADOW =
            ThrottlePolicy.of("shadow", BucketSpec.of("1/1d"), "user").withMode(Mode.SHADOW);

    private final ManualTimeSource time = new ManualTimeSource();
    private final Throttlers throttlers = new Throttlers(
            List.of(SLOW, OTHER, SHADOW), BucketStore.local(time), time, new PolicyLog(new UpkeepTimeSource(time)));

    private CapturedOutput output;

    @BeforeEach
    void capture(CapturedOutput output) {
        this.output = output;
        List.of(SLOW, OTHER, SHADOW).forEach(policy -> throttlers.decide(List.of(Charge.of(policy, "mallory", 1))));
    }

    @Test
    void allowedCallsAreNotLogged() {
        throttlers.decide(List.of(Charge.of(SLOW, "alice", 1)));

        assertThat(lines()).isEmpty();
    }

    @Test
    void aFloodIsOneLineInTenSecondsAndItsEndIsLogged() {
        deny(SLOW, 1);
        deny(SLOW, 999);
        time.advance(Duration.ofNanos(9_999_999_999L));
        deny(SLOW, 1);
        assertThat(lines()).containsExactly("INFO Throttle policy 'slow' denied its first request");

        time.advance(Duration.ofNanos(1));
        assertThat(lines())
                .as("without another denial")
                .containsExactly(
                        "INFO Throttle policy 'slow' denied its first request",
                        "INFO Throttle policy 'slow' denied 1,000 requests in the last 10 s");
        deny(SLOW, 5);
        time.advance(Duration.ofHours(1));
        deny(SLOW, 1);
        assertThat(lines().subList(2, lines().size()))
                .containsExactly(
                        "INFO Throttle policy 'slow' denied 5 requests in the last 10 s",
                        "INFO Throttle policy 'slow' denied 1 request in the last 59 min");
    }

    @Test
    void aFloodSchedulesOneCallAtATime() {
        deny(SLOW, 1);
        assertThat(time.waiting()).isZero();

        deny(SLOW, 1000);
        deny(OTHER, 2);

        assertThat(time.waiting()).isEqualTo(2);
        time.advance(Duration.ofSeconds(10));
        assertThat(time.waiting()).isZero();
    }

    @Test
    void pendingDenialsAreLoggedWhenTheClockIsClosed() {
        SystemTimeSource clock = new SystemTimeSource();
        PolicyListener log = new PolicyLog(clock).added(throttlers.get("other"));
        Decision denied = throttlers.decide(List.of(Charge.of(OTHER, "mallory", 1)));
        IntStream.range(0, 4).forEach(i -> log.decided(denied, denied.decisiveDenial()));

        clock.close();

        Awaitility.await().untilAsserted(() -> assertThat(lines())
                .endsWith(
                        "INFO Throttle policy 'other' denied its first request",
                        "INFO Throttle policy 'other' denied 3 requests in the last 1 s"));
    }

    /** The sampler counts all events of concurrent threads, with at most one line in ten seconds. */
    @RepeatedTest(20)
    void noEventOfConcurrentThreadsIsLost() throws InterruptedException {
        List<Long> counts = Collections.synchronizedList(new ArrayList<>());
        LineSampler sampler = new LineSampler(time, requests -> counts.add(count(requests)));
        List<Thread> threads = IntStream.range(0, 3)
                .mapToObj(i -> new Thread(() -> IntStream.range(0, 2_000).forEach(j -> sampler.count())))
                .toList();
        threads.forEach(Thread::start);
        while (threads.stream().anyMatch(Thread::isAlive)) {
            time.advance(Duration.ofSeconds(1));
        }
        time.advance(Duration.ofSeconds(10));

        assertThat(counts.stream().mapToLong(Long::longValue).sum()).isEqualTo(6_000);
        assertThat(counts.size()).isLessThanOrEqualTo((int) (time.nanoTime() / 10_000_000_000L) + 1);
    }

    @Test
    void afterALineThatCouldNotBeScheduledTheNextOneIs() {
        List<String> lines = new ArrayList<>();
        LineSampler sampler = new LineSampler(new ExhaustedTimeSource(time), lines::add);
        sampler.count();
        assertThatThrownBy(sampler::count).isInstanceOf(StackOverflowError.class);
        sampler.count();
        time.advance(Duration.ofSeconds(10));
        assertThat(lines).containsExactly("its first request", "2 requests in the last 10 s");
    }

    private static long count(String requests) {
        String digits = requests.replaceAll(" in the last .*|\\D", "");
        return digits.isEmpty() ? 1 : Long.parseLong(digits);
    }

    @Test
    void aChangeBackToTheConfiguredLimitIsNoted() {
        throttlers.get("slow").reconfigure(BucketSpec.of("2/1d"));
        throttlers.get("slow").reconfigure(BucketSpec.of("1/1d"));

        assertThat(lines())
                .containsExactly(
                        "INFO Throttle policy 'slow' was changed at runtime: 2/1d, capacity 2; before: 1/1d, capacity"
                                + " 1",
                        "INFO Throttle policy 'slow' is as configured again: 1/1d, capacity 1; before: 2/1d,"
                                + " capacity 2");
    }

    @Test
    void aKeyInShadowModeHasALineOfItsOwn() {
        deny(SLOW, 1);
        throttlers.decide(List.of(Charge.of(SLOW.withMode(Mode.SHADOW), "mallory", 1)));

        assertThat(lines())
                .containsExactly(
                        "INFO Throttle policy 'slow' denied its first request",
                        "INFO Throttle policy 'slow' denied its first request; it is in shadow mode, so none was"
                                + " rejected");
    }

    @Test
    void eachPolicyHasItsLine() {
        deny(SLOW, 1);
        deny(OTHER, 1);

        assertThat(lines())
                .containsExactly(
                        "INFO Throttle policy 'slow' denied its first request",
                        "INFO Throttle policy 'other' denied its first request");
    }

    @Test
    void onlyThePoliciesThatDenyAreLogged() {
        deny(SLOW, 1);
        throttlers.decide(List.of(Charge.of(OTHER, "bob", 1), Charge.of(SLOW, "mallory", 1)));

        assertThat(lines()).containsExactly("INFO Throttle policy 'slow' denied its first request");
    }

    @Test
    void aLineOfAShadowPolicyStatesThatNoneWasRejected() {
        deny(SHADOW, 1);

        assertThat(lines())
                .containsExactly("INFO Throttle policy 'shadow' denied its first request; it is in shadow"
                        + " mode, so none was rejected");
    }

    @Test
    void costsThatNeverFitAndMissingKeysAreDenialsToo() {
        throttlers.decide(List.of(Charge.of(SLOW, "alice", 2)));
        throttlers.decide(List.of(Charge.withoutKey(OTHER, 1)));

        assertThat(lines())
                .containsExactly(
                        "INFO Throttle policy 'slow' denied its first request",
                        "INFO Throttle policy 'other' denied its first request");
    }

    @Test
    void linesContainNoDataOfRequests() {
        deny(SLOW, 1);

        assertThat(output).doesNotContain("mallory");
    }

    private void deny(ThrottlePolicy policy, int times) {
        IntStream.range(0, times).forEach(i -> throttlers.decide(List.of(Charge.of(policy, "mallory", 1))));
    }

    private List<String> lines() {
        return output.getOut()
                .lines()
                .filter(line -> line.contains("PolicyLog"))
                .map(line -> line.replaceFirst("^\\S+\\s+(\\S+) .*? : ", "$1 "))
                .toList();
    }
}
