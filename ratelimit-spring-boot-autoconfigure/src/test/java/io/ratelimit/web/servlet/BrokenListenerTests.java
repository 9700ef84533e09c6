package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision;
import io.ratelimit.ThrottleListener;
import io.ratelimit.key.FailureListener;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.core.annotation.Order;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Listeners of an application that throw. */
@ExtendWith(OutputCaptureExtension.class)
class BrokenListenerTests {

    @Test
    void isReportedOnceAndNeverReachesARequest(CapturedOutput output) {
        try (TestServer server =
                TestServer.open("ratelimit.policies.all.rate: 2/1d", Api.class).start()) {
            List<Integer> statuses = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                statuses.add(server.http().get("/").status());
            }

            assertThat(statuses).containsExactly(200, 200, 429, 429);
            assertThat(server.bean(Counting.class).decisions).isEqualTo(4);
            assertThat(output.getOut().lines().filter(line -> line.contains("ERROR")))
                    .hasSize(3)
                    .anyMatch(line -> line.contains(
                            "The ThrottleListener " + Throwing.class.getName() + " failed, and is not called any more"))
                    .anyMatch(line -> line.contains("The ThrottleListener " + Endless.class.getName()
                            + " ran out of stack, and is still called"))
                    .anyMatch(line -> line.contains("The ThrottleListener " + Unlinked.class.getName()
                            + " failed, and is not called any more"));
            assertThat(output).doesNotContain("text of a client");
        }
    }

    @Test
    void aFailureListenerIsReportedOnceToo(CapturedOutput output) {
        String yaml = "ratelimit.policies.all: { rate: 2/1d, cost: query('rows') }";
        try (TestServer server =
                TestServer.open(yaml, Api.class, Failures.class).start()) {
            List<Integer> statuses = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                statuses.add(server.http().get("/?rows=many").status());
            }

            assertThat(statuses).containsExactly(200, 200, 429, 429);
            assertThat(server.bean(ThrowingFailureListener.class).failures).isEqualTo(1);
            assertThat(output.getOut().lines().filter(line -> line.contains("FailureListener ")))
                    .singleElement()
                    .asString()
                    .contains("ERROR")
                    .contains("The FailureListener " + ThrowingFailureListener.class.getName()
                            + " failed, and is not called any more");
            assertThat(output).doesNotContain("text of a client");
        }
    }

    @RestController
    static class Api {

        @GetMapping("/")
        String hello() {
            return "hello";
        }

        @Bean
        @Order(1)
        Throwing throwing() {
            return new Throwing();
        }

        @Bean
        @Order(2)
        Unlinked unlinked() {
            return new Unlinked();
        }

        @Bean
        @Order(3)
        Endless endless() {
            return new Endless();
        }

        @Bean
        @Order(4)
        Counting counting() {
            return new Counting();
        }
    }

    private static final class Throwing implements ThrottleListener {

        @Override
        public void decided(Decision decision) {
            throw new IllegalStateException("text of a client");
        }
    }

    private static final class Unlinked implements ThrottleListener {

        @Override
        public void decided(Decision decision) {
            throw new NoSuchMethodError("text of a client");
        }
    }

    private static final class Endless implements ThrottleListener {

        @Override
        public void decided(Decision decision) {
            decided(decision);
        }
    }

    private static final class Counting implements ThrottleListener {

        private int decisions;

        @Override
        public void decided(Decision decision) {
            decisions++;
        }
    }

    static class Failures {

        @Bean
        ThrowingFailureListener failures() {
            return new ThrowingFailureListener();
        }
    }

    private static final class ThrowingFailureListener implements FailureListener {

        private int failures;

        @Override
        public void failed(String policy, String fact, String reason) {
            throw new AssertionError("it isn't called: " + reason);
        }

        @Override
        public void failed(String policy, String fact, Throwable failure) {
            failures++;
            throw new IllegalStateException("text of a client");
        }
    }
}
