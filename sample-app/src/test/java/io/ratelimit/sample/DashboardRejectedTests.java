package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Import;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** The dashboard in a browser where a policy rejects one of its files: the page states what happened, whichever it is. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@Import(StandingTime.class)
@Tag("slow")
class DashboardRejectedTests {

    @RegisterExtension
    static final Browser browser = new Browser();

    private static final String PAGE = "/actuator/ratelimitdashboard";

    private final int port;
    private final ManualTimeSource time;
    private final Throttlers throttlers;

    DashboardRejectedTests(
            @LocalServerPort int port, @Autowired ManualTimeSource time, @Autowired Throttlers throttlers) {
        this.port = port;
        this.time = time;
        this.throttlers = throttlers;
    }

    @DynamicPropertySource
    static void aPolicyForEachFile(DynamicPropertyRegistry registry) {
        policy(registry, "page", "");
        policy(registry, "script", "/dashboard.js");
        policy(registry, "style", "/dashboard.css");
        policy(registry, "chart", "/uplot.js");
        policy(registry, "chart-style", "/uplot.css");
        policy(registry, "data", "/data");
    }

    private static void policy(DynamicPropertyRegistry registry, String name, String file) {
        registry.add("ratelimit.policies.file-" + name + ".rate", () -> "100/1h");
        registry.add("ratelimit.policies.file-" + name + ".paths", () -> PAGE + file);
        registry.add("ratelimit.policies.file-" + name + ".phase", () -> "before-authentication");
    }

    @BeforeEach
    void login() {
        time.advance(Duration.ofHours(1));
        browser.login("admin");
        browser.speedUpAnimations(); // the page waits two seconds before it shows what is missing
    }

    @Test
    void thePage() {
        open("page");
        browser.awaitText("body", "The request is throttled by 'file-page' policy, please retry after");
    }

    /** Checks the text for a missing script, which can only be in the page. */
    @Test
    void theScript() {
        open("script");
        browser.awaitText("#incomplete", "A file of this page has not arrived.");
        assertThat(browser.text("#incomplete")).contains("limited themselves (429)", "exclude-paths: /actuator/**");
        assertThat(browser.element("#incomplete").isDisplayed()).isTrue();
        assertThat(browser.text("#state")).as("nothing is being loaded").isBlank();
    }

    @Test
    void theStyles() {
        open("style");
        browser.awaitText("#incomplete", "dashboard.css (429) did not arrive");
        browser.awaitText("#state", "Live: 21 policies");
        time.advance(Duration.ofHours(1));
        open("chart-style");
        browser.awaitText("#incomplete", "uplot.css (429) did not arrive");
    }

    @Test
    void theScriptOfTheCharts() {
        throttlers.global("checkout").decide(1);
        open("chart");
        browser.awaitText("#incomplete", "uplot.js (429) did not arrive");
        time.advance(Duration.ofSeconds(1));
        browser.awaitText("#rows", "checkout 2/1s 1 0 0 %");
        assertThat(browser.text("#state")).startsWith("Live: 21 policies");
    }

    @Test
    void theData() {
        open("data");
        browser.awaitText("#state", "The requests of this page are limited themselves (429)");
        assertThat(browser.element("#incomplete").isDisplayed()).isFalse();
    }

    @Test
    void whereNoneIsRejectedNothingIsMissing() {
        browser.open("http://localhost:" + port + PAGE);
        browser.awaitText("#state", "Live: 21 policies");
        assertThat(browser.element("#incomplete").isDisplayed()).isFalse();
    }

    private void open(String rejected) {
        assertThat(throttlers.global("file-" + rejected).tryAcquire(100)).isTrue();
        browser.open("http://localhost:" + port + PAGE);
    }
}
