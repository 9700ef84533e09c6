package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.boot.webmvc.test.autoconfigure.AutoConfigureMockMvc;
import org.springframework.context.annotation.Bean;
import org.springframework.http.HttpStatus;
import org.springframework.test.web.servlet.assertj.MockMvcTester;
import org.springframework.test.web.servlet.assertj.MvcTestResult;

/** A limit without a server, as {@code docs/testing.md} tests it. */
@SpringBootTest
@AutoConfigureMockMvc
class ReportLimitMvcTests {

    @TestConfiguration(proxyBeanMethods = false)
    static class StandingTime {

        @Bean
        ManualTimeSource time() {
            return new ManualTimeSource();
        }
    }

    @Autowired
    private ManualTimeSource time;

    @Autowired
    private MockMvcTester mvc;

    @Autowired
    private Throttlers throttlers;

    @BeforeEach
    void fillTheBuckets() {
        time.advance(Duration.ofDays(1));
    }

    @Test
    void oneUsersReportsCostAnotherNothing() {
        for (int i = 0; i < 6; i++) {
            assertThat(report("alice")).hasStatusOk();
        }
        assertThat(report("alice")).hasStatus(HttpStatus.TOO_MANY_REQUESTS).hasHeader("Retry-After", "10");

        assertThat(report("admin")).hasStatusOk();
        assertThat(throttlers.snapshot("report", "alice").available()).isZero();
        assertThat(throttlers.snapshot("report", "admin").available()).isEqualTo(50);
    }

    private MvcTestResult report(String user) {
        return mvc.get()
                .uri("/api/report")
                .headers(headers -> headers.setBasicAuth(user, user))
                .exchange();
    }
}
