package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.ManualTimeSource;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Import;
import org.springframework.web.client.RestClient;

/** The home page in a browser: what its buttons send, and what it shows of the answers. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@Import(StandingTime.class)
@Tag("slow")
class HomePageTests {

    @RegisterExtension
    static final Browser browser = new Browser();

    private final int port;
    private final ManualTimeSource time;

    HomePageTests(@LocalServerPort int port, @Autowired ManualTimeSource time) {
        this.port = port;
        this.time = time;
    }

    @BeforeEach
    void openWithFullBuckets() {
        time.advance(Duration.ofHours(1));
        browser.open("http://localhost:" + port + "/");
    }

    @AfterEach
    void nothingFailedInThePage() {
        assertThat(browser.errors()).isEmpty();
    }

    @Test
    void aBurstShowsWhatPassesAndWhichPolicyRefusesTheRest() {
        play("burst");

        awaitStatus("A burst of 1,000: 800 allowed, 200 rejected by per-user-per-endpoint (200), in");
        assertThat(browser.text("[data-user=alice] .counts")).isEqualTo("✓ 800 allowed\n✕ 200 rejected");
        assertThat(browser.text("#rejected-by")).isEqualTo("per-user-per-endpoint200");
        assertThat(browser.texts("#stream tr:first-child td"))
                .startsWith("alice", "GET /api/items")
                .contains("per-user-per-endpoint", "0 of 800", "1 s");
        assertThat(browser.text("#stream tr:first-child .status")).startsWith("✕ 429");
        assertThat(browser.text("#last-rejection"))
                .startsWith("HTTP/1.1 429\nRetry-After: 1\nX-RetryAfterMs: ")
                .contains(
                        "\nRateLimit-Policy: \"per-user-per-endpoint\";q=800;w=80\n"
                                + "RateLimit: \"per-user-per-endpoint\";r=0;t=1\n",
                        "\"violated-policies\":[\"per-user-per-endpoint\"]");
    }

    @Test
    void eachPlanHasItsOwnLimit() {
        play("reports");

        awaitStatus("Eight reports each: 14 allowed, 2 rejected by report (2)");
        assertThat(browser.text("[data-user=alice] .counts")).contains("6 allowed", "2 rejected");
        assertThat(browser.text("[data-user=bob] .counts")).contains("8 allowed", "0 rejected");
    }

    @Test
    void eachCustomerHasTheLimitOfItsRowInTheDatabase() {
        play("plans");

        awaitStatus("25 translations each: 50 allowed, 25 rejected by translations (25)");
        assertThat(browser.text("[data-user=alice] .counts")).contains("20 allowed", "5 rejected");
        assertThat(browser.text("[data-user=admin] .counts")).contains("5 allowed", "20 rejected");
    }

    @Test
    void aQuotaOfTheMonthEndsForTheMonth() {
        play("exports");

        browser.awaitText("#status", "Twelve exports: 10 allowed, 2 rejected by exports (2)");
    }

    @Test
    void theAdminRaisesALimitAndLowersItAgain() {
        play("reports");
        browser.awaitText("#status", "rejected by report");

        play("upgrade");
        browser.awaitText("#status", "Ten times the reports: 1 allowed");
        play("reports");
        browser.awaitText("#status", "8 allowed, 8 rejected by report (8)");
        time.advance(Duration.ofSeconds(8));
        play("reports");
        browser.awaitText("#status", "Eight reports each: 16 allowed");

        play("upgrade");
        browser.awaitText("#status", "Ten times the reports: 1 allowed");
        assertThat(browser.element("[data-scene=upgrade]").getAttribute("aria-pressed"))
                .isEqualTo("false");
        play("reports");
        browser.awaitText("#status", "8 allowed, 8 rejected by report (8)");
    }

    /** And the browser itself doesn't ask for a password. */
    @Test
    void guessedPasswordsAreWithoutSuccessAndThenRejected() {
        play("guesses");

        awaitStatus("Guess a password 40 times: 30 without success, 10 rejected by wrong-passwords (10)");
        assertThat(browser.text("[data-user=stranger] .counts")).isEqualTo("✓ 0 allowed\n✕ 10 rejected\n· 30 other");
    }

    /** Time stands still, so nothing comes back in between. */
    @Test
    void noSceneSpoilsAnother() {
        play("guesses");
        browser.awaitText("#status", "30 without success, 10 rejected by wrong-passwords (10)");
        play("upgrade");
        browser.awaitText("#status", "Ten times the reports: 1 allowed");
        play("upgrade");
        browser.awaitText("#status", "Ten times the reports: 1 allowed");
        play("changes");
        browser.awaitText("#status", "Change an item six times: 5 allowed, 1 rejected by item-changes (1)");
        play("reports");
        browser.awaitText("#status", "Eight reports each: 14 allowed, 2 rejected by report (2)");
        play("burst");
        browser.awaitText("#status", "A burst of 1,000: 800 allowed, 200 rejected by per-user-per-endpoint (200)");
        play("checkouts");
        assertThat(ended()).startsWith("Twelve checkouts: 12 allowed");
        play("vouchers");
        awaitDelayedRejections();
        assertThat(ended()).startsWith("Guess eight vouchers: 5 allowed, 3 rejected by vouchers (3)");
    }

    @Test
    void anAnnotationRefusesAsAFilterDoes() {
        play("changes");

        browser.awaitText("#status", "Change an item six times: 5 allowed, 1 rejected by item-changes (1)");
    }

    @Test
    void checkoutsWaitInLineForTheirTurn() {
        play("checkouts");
        browser.awaitText("#stream .status", "200");
        assertThat(browser.text("#status")).isEqualTo("Twelve checkouts …");

        assertThat(ended()).startsWith("Twelve checkouts: 12 allowed");
    }

    /** The fifth answer leaves a debt. */
    @Test
    void answersAreLimitedByTheTokensThatTheyReallyCost() {
        play("assistant");

        assertThat(ended()).startsWith("Ask the assistant eight times: 5 allowed, 3 rejected by assistant (3)");
    }

    @Test
    void aCustomerHasTwoDownloadsAtATime() {
        play("downloads");
        browser.awaitText("[data-user=alice] .counts", "2 rejected");

        assertThat(ended()).startsWith("Four catalogues at once: 2 allowed, 2 rejected by downloads (2)");
    }

    @Test
    void aCustomerWhoTakesAllLeavesTheOthersTheirShares() {
        play("shares");

        awaitStatus("Alice takes all the stock counts: 28 allowed, 16 rejected by stock (16)");
        assertThat(browser.text("[data-user=bob] .counts"))
                .contains("4 allowed")
                .contains("0 rejected");
    }

    @Test
    void aRejectedVoucherIsAnsweredLate() {
        play("vouchers");
        browser.awaitText("[data-user=bob] .counts", "5 allowed");
        assertThat(browser.text("[data-user=bob] .counts")).contains("0 rejected");
        awaitDelayedRejections();

        assertThat(ended()).startsWith("Guess eight vouchers: 5 allowed, 3 rejected by vouchers (3)");
    }

    /** Waits for a status and for the counts, which are drawn in the next frame. */
    private static void awaitStatus(String part) {
        browser.awaitText("#status", part);
        browser.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    }

    /** Waits until all vouchers are decided: time that passes before brings tokens back. */
    private void awaitDelayedRejections() {
        await().until(() -> time.waiting() == 3);
    }

    /** The text at the end of a scene that needs time to pass. */
    private String ended() {
        while (browser.text("#status").endsWith("…")) {
            time.advance(Duration.ofMillis(500));
        }
        return browser.text("#status");
    }

    @Test
    void aLoadRunsAtItsRateAndIsStopped() {
        browser.click("input[value=bob]");
        browser.run("rate.value = 50; rate.dispatchEvent(new Event('input'))");
        browser.click("#start");
        browser.awaitText("#stream .request", "GET /api/items");
        assertThat(browser.element("#start").isEnabled()).isFalse();

        browser.click("#stop");

        browser.awaitText("#status", "GET /api/items as alice, 50 a second each: ");
        assertThat(browser.element("#start").isEnabled()).isTrue();
        assertThat(browser.text("[data-user=bob] .counts")).contains("0 allowed");
        browser.click("#clear");
        browser.awaitText("[data-user=alice] .counts", "✓ 0 allowed");
        assertThat(browser.texts("#stream tr")).isEmpty();
    }

    @Test
    void aLoadEndsByItself() {
        browser.run("rate.value = 1; what.value = 'GET /api/hello'");
        browser.click("#start");

        browser.awaitText("#status", "GET /api/hello as alice, bob, 1 a second each: 20 allowed");
    }

    @Test
    void aShopThatIsClosedIsShown() {
        browser.online(false);
        play("changes");
        browser.awaitText("#status", "6 without an answer");
        browser.online(true);
        play("changes");
        browser.awaitText("#status", "5 allowed");
    }

    @Test
    void aMinuteOfCustomersIsMeasured() {
        play("minute");
        browser.awaitText("#status", "A minute of the shop … 5");
        browser.run("Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
                + "document.dispatchEvent(new Event('visibilitychange')); delete document.hidden");
        assertThat(browser.element("#stop").isEnabled())
                .as("the scene goes on while the dashboard is looked at")
                .isTrue();
        assertThat(browser.element(".scenes a").getAttribute("target")).isEqualTo("_blank");
        browser.awaitText("#stream .request", "GET /api/items/3");
        String counts = browser.text("[data-user=customers] .counts");
        time.advance(Duration.ofMinutes(1));
        await().until(() -> !browser.text("[data-user=customers] .counts").equals(counts));
        browser.click("#stop");

        browser.awaitText("#status", "A minute of the shop: ");
        assertThat(browser.text("[data-user=customers] .counts")).contains("0 rejected");
        assertThat(RestClient.create("http://localhost:" + port)
                        .get()
                        .uri("/actuator/ratelimits/items-candidate/demand")
                        .headers(headers -> headers.setBasicAuth("admin", "admin"))
                        .retrieve()
                        .body(String.class))
                .contains("\"noSuggestion\":\"too little traffic yet");
        browser.nothingSticksOut();
    }

    @Test
    void looksWellInAnyLightAndOnAPhoneAndAnyoneCanReadIt() throws IOException {
        browser.size(1200, 820);
        everyScene();
        browser.picture("home");
        browser.nothingSticksOut();
        browser.dark(true);
        browser.run("scrollTo(0, 0)");
        browser.picture("home-dark");
        for (int width : List.of(1200, 390)) {
            for (boolean dark : List.of(true, false)) {
                browser.size(width, 844);
                browser.dark(dark);
                assertThat(browser.violations())
                        .as("dark %s, %d px", dark, width)
                        .isEmpty();
            }
        }
        browser.nothingSticksOut();
        browser.run("document.querySelector('.seen').scrollIntoView()");
        browser.picture("home-phone");
        browser.run("document.querySelectorAll('details').forEach(part => part.open = true)");
        browser.nothingSticksOut();
    }

    /** The page doesn't scroll by itself, so that the button of a scene stays below the hand. */
    @ParameterizedTest
    @CsvSource({"360, 640, status", "1200, 700, users"})
    void theResultsAreInSightWhicheverButtonIsPressed(int width, int height, String results) throws IOException {
        browser.size(width, height);
        staysInSight("[data-scene=reports]", results);
        browser.awaitText("#status", "Eight reports each: ");
        staysInSight("[data-scene=upgrade]", results);
        browser.awaitText("#status", "Ten times the reports: 1 allowed");
        staysInSight("#start", results);
        browser.click("#stop");
        browser.awaitText("#status", " a second each: ");
        play("upgrade");
        browser.awaitText("#status", "Ten times the reports: 1 allowed");
        browser.nothingSticksOut();
        browser.picture("home-" + width);
    }

    /** Presses a button, and demands that the button and the results stay in sight. */
    private void staysInSight(String button, String results) {
        browser.run("document.querySelector(arguments[0]).scrollIntoView({block: 'nearest'})", button);
        browser.click(button);
        assertThat(browser.run(
                        "return [document.getElementById(arguments[0]), document.querySelector(arguments[1])]"
                                + ".map(element => element.getBoundingClientRect())"
                                + ".filter(at => at.top < -1 || at.bottom > innerHeight + 1)"
                                + ".map(at => at.top + ' to ' + at.bottom).join()",
                        results,
                        button))
                .as("out of sight after " + button)
                .isEqualTo("");
    }

    @Test
    void aBrowserThatIsRejectedGetsAPage() throws IOException {
        browser.size(360, 640);
        browser.login("alice");
        for (int i = 0; i < 7; i++) {
            browser.open("http://localhost:" + port + "/api/report");
        }
        browser.login(null);

        assertThat(browser.text("h1")).isEqualTo("Too Many Requests");
        assertThat(browser.text("p")).isEqualTo("Please try again in 10 seconds.");
        browser.nothingSticksOut();
        browser.picture("page-429");
    }

    private void everyScene() {
        play("changes");
        browser.awaitText("#status", "item-changes");
        play("reports");
        browser.awaitText("#status", "rejected by report");
        play("guesses");
        browser.awaitText("#status", "rejected by wrong-passwords");
        time.advance(Duration.ofMinutes(3));
        play("burst");
        browser.awaitText("#status", "rejected by per-user-per-endpoint");
    }

    /** Scrolls to the button first, since a click alone may leave it below the status of a phone. */
    private void play(String scene) {
        String button = "[data-scene=" + scene + "]";
        browser.run("document.querySelector(arguments[0]).scrollIntoView({block: 'nearest'})", button);
        browser.click(button);
    }
}
