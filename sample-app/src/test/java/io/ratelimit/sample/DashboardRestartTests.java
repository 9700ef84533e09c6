package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Throttlers;
import java.io.IOException;
import java.net.ServerSocket;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;

/** The dashboard in a browser while the application goes away and comes back, in real time. */
@Tag("slow")
class DashboardRestartTests {

    @RegisterExtension
    static final Browser browser = new Browser();

    @AutoClose
    private ConfigurableApplicationContext shop;

    @Test
    void showsThatItsEndpointIsGoneAndGoesOnWithTheNextInstance() {
        int port = freePort();
        start(port, "ratelimitdashboard");
        browser.login("admin");
        browser.open("http://localhost:" + port + "/actuator/ratelimitdashboard");
        browser.awaitText("#state", "Live: 15 policies, none with denials");
        browser.select("view", "cards");
        ask("global");
        browser.awaitText("[data-policy=global] .now", "1 allowed");
        assertThat(browser.text("#window")).matches("since it started \\d+ (s|min) ago");

        shop.close();
        browser.awaitText("#state", "The server can’t be reached. Last seen");
        start(port, "health");
        browser.awaitText("#state", "The endpoint is gone (404)");
        assertThat(browser.text("[data-policy=global] .now")).as("still shown").contains("1 allowed");

        shop.close();
        start(port, "ratelimitdashboard");
        browser.awaitText("#state", "Live: 15 policies");
        browser.awaitText("[data-policy=global] .quiet", "Nothing decided");
        ask("checkout");
        browser.awaitText("[data-policy=checkout] .now", "1 allowed");
        assertThat(browser.errors()).isEmpty();
    }

    /** Below those that connections get, so that it stays free in between. */
    private static int freePort() {
        int port = ThreadLocalRandom.current().nextInt(12_000, 22_000);
        try (ServerSocket socket = new ServerSocket(port)) {
            return socket.getLocalPort();
        } catch (IOException taken) {
            return freePort();
        }
    }

    private void ask(String policy) {
        shop.getBean(Throttlers.class).global(policy).decide(1);
    }

    private void start(int port, String exposed) {
        shop = new SpringApplicationBuilder(SampleApplication.class)
                .run("--server.port=" + port, "--management.endpoints.web.exposure.include=" + exposed);
    }
}
