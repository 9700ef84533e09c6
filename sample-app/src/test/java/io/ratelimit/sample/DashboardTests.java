package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.BucketSpec;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.openqa.selenium.Keys;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Import;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** The dashboard in a browser, with the policies of the sample and forty more. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@Import(StandingTime.class)
@Tag("slow")
class DashboardTests {

    @RegisterExtension
    static final Browser browser = new Browser();

    private static final Duration SECOND = Duration.ofSeconds(1);

    /** Returns the texts of a picture whose font is below 11 pixels, or that stick out of it or cover another text. */
    private static final String UNREADABLE_TEXTS = """
            const picture = document.querySelector(arguments[0]), box = picture.getBoundingClientRect();
            const height = text => parseFloat(getComputedStyle(text).fontSize) * Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b);
            const texts = [...picture.querySelectorAll('text')]
                .map(text => ({ text: text.textContent, at: text.getBoundingClientRect(), height: height(text) }));
            const covers = (a, b) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom;
            return texts.filter(({ at, height }, i) => height < 11 || at.left < box.left || at.right > box.right
                || at.top < box.top || at.bottom > box.bottom || texts.slice(0, i).some(other => covers(at, other.at)))
                .map(({ text }) => text).join();
            """;

    private final int port;
    private final ManualTimeSource time;
    private final Throttlers throttlers;

    DashboardTests(@LocalServerPort int port, @Autowired ManualTimeSource time, @Autowired Throttlers throttlers) {
        this.port = port;
        this.time = time;
        this.throttlers = throttlers;
    }

    @DynamicPropertySource
    static void fortyPolicies(DynamicPropertyRegistry registry) {
        IntStream.rangeClosed(1, 40).forEach(i -> {
            registry.add("ratelimit.policies.tenant-" + i + ".rate", () -> i + "00/1s");
            registry.add("ratelimit.policies.tenant-" + i + ".applies-to", () -> "annotated");
        });
    }

    @BeforeEach
    void openWithNothingInSight() {
        time.advance(Duration.ofMinutes(10));
        browser.online(true);
        browser.login("admin");
        browser.speedUpTheClock(this::open);
        browser.awaitText("#state", "Live: 55 policies, none with denials");
        browser.select("view", "cards");
    }

    private void open() {
        browser.open("http://localhost:" + port + "/actuator/ratelimitdashboard");
    }

    /** Ends the requests of the page for data, so that it goes on showing what a test sets. */
    private static void stopPolling() {
        browser.run("poll = () => {}; clearTimeout(timer)");
        await().pollInterval(Duration.ofMillis(20)).until(() -> !(boolean) browser.run("return asking"));
    }

    @AfterEach
    void nothingFailedInThePage() {
        assertThat(browser.errors()).isEmpty();
    }

    @Test
    void aFloodOfDenialsIsSeenWhereItIs() {
        flood("alice", 900);
        time.advance(SECOND);

        browser.awaitText("#state", "Live: 55 policies, 1 with denials");
        browser.awaitText(card("per-user-per-endpoint") + " .now", "800 allowed, 800/s now");
        assertThat(browser.text(card("per-user-per-endpoint") + " .now")).contains("100 denied, 100/s now");
        assertThat(browser.text(card("per-user-per-endpoint") + " .facts"))
                .isEqualTo("a bucket for each user and endpoint · 600/1m · capacity 800");
        browser.awaitText(card("per-user-per-endpoint") + " .keys b", "100");
        assertThat(browser.text(card("per-user-per-endpoint") + " .keys code")).matches("[0-9a-f]{16}");
        browser.awaitText("#policies > li:first-child h2", "per-user-per-endpoint");
        assertThat(browser.element(card("per-user-per-endpoint") + " canvas").isDisplayed())
                .isTrue();
        assertThat(browser.text(card("global") + " .now")).contains("800 allowed", "0 denied, 0/s now");
        assertThat(browser.text(card("tenant-1") + " .quiet")).isEqualTo("Nothing decided in the last five minutes.");
        time.advance(SECOND);
        browser.awaitText(card("per-user-per-endpoint") + " .now", "800 allowed, 0/s now");
    }

    /** Cards that moved five seconds later would be under the hands of the reader. */
    @Test
    void thePageIsSortedWhenItIsFirstShown() {
        for (int i = 0; i < 5; i++) {
            throttlers.global("tenant-40").decide(5_000); // of 4,000
        }
        time.advance(SECOND);
        browser.stopTheClock(this::open);

        browser.awaitText("#state", "Live: 55 policies, 1 with denials");
        assertThat(browser.text("#rows tr:first-child th")).isEqualTo("tenant-40");
    }

    @Test
    void theLegendHasNoBackendWhereThereIsNone() {
        assertThat(browser.text(".legend")).contains("would have been denied").doesNotContain("backend");

        stopPolling();
        browser.run(
                "take({instance, second, from: second, seconds, step, change: {}, policies: [], backends: [{name: 'Redis',"
                        + " condition: 'UP', since: '2026-01-02T03:04:05Z'}]})");
        assertThat(browser.text(".legend")).contains("rejected as the backend failed");
    }

    @Test
    void whatDeniesMostComesFirst() {
        flood("alice", 1_000);
        time.advance(SECOND);

        browser.awaitText("#policies > li:first-child h2", "per-user-per-endpoint");
        browser.select("order", "configured");
        browser.awaitText("#policies > li:last-child h2", "item-changes");
        browser.select("order", "denied");
        browser.awaitText("#policies > li:first-child h2", "per-user-per-endpoint");
    }

    @Test
    void theChartHasTheSecondsAndTheGaps() {
        for (int i = 0; i < 4; i++) {
            throttlers.global("tenant-1").decide(10 + i);
            throttlers.global("tenant-1").decide(1_000);
            time.advance(SECOND);
        }

        browser.awaitText(card("tenant-1") + " .now", "4 allowed");
        assertThat(browser.run("const p = policies.get('tenant-1'); p.visible = true; p.draw(); return p.plot.data[4]"
                        + ".slice(-5).join()"))
                .isEqualTo("0,1,1,1,1");
        assertThat(browser.run("return policies.get('tenant-1').plot.data[1].slice(-5).join()"))
                .isEqualTo("0,2,2,2,2");
    }

    @Test
    void aShadowPolicyShowsWhatItWouldHaveDenied() {
        for (int i = 0; i < 103; i++) {
            throttlers.get("items-candidate").forKey("alice").decide(1);
        }
        time.advance(SECOND);

        browser.awaitText(card("items-candidate") + " .now", "100 allowed");
        assertThat(browser.text(card("items-candidate") + " .now")).contains("3 would have been denied, 3/s now");
        assertThat(browser.text(card("items-candidate") + " .mode")).isEqualTo("shadow: denies nothing");
        assertThat(browser.text("#state")).contains("none with denials");
    }

    @Test
    void whatIsSharedSaysSo() {
        assertThat(browser.text(card("global") + " .facts")).doesNotContain("shared");

        assertThat(
                        browser.run(
                                "const p = policies.get('global'); p.data.lastSeen = true; p.show(); return p.facts.textContent"))
                .asString()
                .endsWith(" · shared by all instances");
    }

    @Test
    void anOutageIsShownByWhatThePolicyDoes() {
        assertThat(outage("{rule: 'local', share: 0.25}"))
                .isEqualTo(
                        "local, with 25 % of the limit|not shared at present|1 policy: local, with 25 % of the limit");
        assertThat(outage("{rule: 'deny'}")).isEqualTo("rejects all|not shared at present|1 policy: rejects all");
        assertThat(outage("{rule: 'allow'}")).isEqualTo("allows all|not shared at present|1 policy: allows all");
    }

    @Test
    void theLevelDuringAnOutageIsTheOneBefore() {
        assertThat(browser.run("const p = policies.get('global');"
                        + " Object.assign(p.data, {lastSeen: true, outage: {rule: 'local', share: 0.25}});"
                        + " p.show(); return p.levelText.textContent"))
                .asString()
                .endsWith(" left, before the outage");
    }

    private Object outage(String outage) {
        return browser.run(
                "const p = policies.get('global'); Object.assign(p.data, {lastSeen: true, outage: " + outage
                        + "}); p.show(); return [p.mode.textContent, p.facts.textContent.split(' · ').at(-1), effectsText()].join('|')");
    }

    @Test
    void theTokensThatThisInstanceHasLeasedAreShown() {
        assertThat(browser.run("return policies.get('global').leased.hidden")).isEqualTo(true);

        assertThat(browser.run("const p = policies.get('global'); p.data.leased = 1200; p.show();"
                        + " return p.leased.checkVisibility() && p.leased.textContent"))
                .isEqualTo("1,200 leased by this instance");
    }

    /** Whatever came from a client and may be shown is no HTML, and neither is what a backend says. */
    @Test
    void whatIsShownIsText() {
        String markup = "<img src=x onerror=alert(1)>";
        stopPolling();
        browser.run(
                "const p = policies.get('global'); p.data.deniedKeys = [{denied: 1, key: {parts: [arguments[0]]}}]; p.show();"
                        + "showBackends([{name: 'Redis', condition: 'DOWN', since: '2026-01-02T03:04:05Z', cause: arguments[0]}])",
                markup);

        assertThat(browser.text(card("global") + " .keys code")).isEqualTo(markup);
        assertThat(browser.text("#backends .failing"))
                .startsWith("Redis is unavailable since")
                .contains(": " + markup)
                .endsWith("Until it is back: no enforced policy needs it.");
        assertThat(browser.texts("img")).isEmpty();
    }

    @Test
    void theLevelOfAGlobalBucketAndWhoWaitsForIt() throws Exception {
        assertThat(throttlers.global("checkout").tryAcquire(2)).isTrue();
        List<Thread> waiting = Stream.generate(this::customer).limit(3).toList();
        waiting.forEach(Thread::start);
        await().until(() -> time.waiting() == 3);

        browser.awaitText(card("checkout") + " .waiting", "3 wait in the queue, of 10 that may");
        assertThat(browser.text(card("checkout") + " .level")).isEqualTo("0 of 2 left");
        assertThat(browser.text(card("global") + " .level")).isEqualTo("7,000 of 7,000 left");
        assertThat(browser.element(card("per-ip") + " .level").isDisplayed()).isFalse();
        time.advance(Duration.ofSeconds(2));
        for (Thread customer : waiting) {
            customer.join();
        }
        browser.awaitText(card("checkout") + " .waiting", "0 wait in the queue");
    }

    /** Alice may take all but the shares of ten customers, and then her own one. */
    @Test
    void theBucketWithSharesShowsWhatAllMayTake() {
        for (int i = 0; i < 25; i++) {
            throttlers.global("stock").guaranteedTo("alice").decide(1);
        }
        time.advance(SECOND);

        browser.awaitText(card("stock") + " .now", "24 allowed, 24/s now");
        assertThat(browser.text(card("stock") + " .now")).contains("1 denied, 1/s now");
        assertThat(browser.text(card("stock") + " .facts"))
                .isEqualTo("one bucket · 120/1m · capacity 60"
                        + " · shares: 12/1m, capacity 4, guaranteed to each of 10 (user)");
        assertThat(browser.text(card("stock") + " .level")).isEqualTo("0 of 60 left");
        browser.awaitText(card("stock") + " .keys b", "1");
        assertThat(browser.text(card("stock") + " .keys code")).matches("[0-9a-f]{16}");
        time.advance(Duration.ofSeconds(9));
        browser.awaitText(card("stock") + " .level", "16 of 60 left");
        browser.select("view", "table");
        browser.awaitText("#rows tr:first-child", "stock 120/1m, in shares 24 1 4.0 %");
    }

    private Thread customer() {
        return new Thread(() -> {
            try {
                throttlers.global("checkout").tryAcquire(1, Duration.ofSeconds(5));
            } catch (InterruptedException ex) {
                Thread.currentThread().interrupt();
            }
        });
    }

    @Test
    void aPolicyIsFoundAmongFifty() {
        browser.element("#find").sendKeys("tenant-3");

        await().until(() -> visible().size() == 11);
        assertThat(visible()).contains("tenant-3", "tenant-30", "tenant-39").doesNotContain("tenant-1");
        browser.element("#find").sendKeys("99");
        browser.awaitText("#none", "None of the 55 policies is shown.");
    }

    @Test
    void aLinkToAPolicyShowsAndFocusesItAlsoAfterAReload() {
        String link = "http://localhost:" + port + "/actuator/ratelimitdashboard#tenant-33";
        browser.click(card("tenant-33") + " h2 a");
        assertThat(browser.run("return location.href")).isEqualTo(link);
        assertIsInFocus("tenant-33");
        browser.run("window.old = true; location.reload()");
        await().ignoreExceptions().until(() -> browser.run("return window.old") == null);
        browser.awaitText("#state", "Live");
        assertIsInFocus("tenant-33");

        browser.select("view", "cards");
        browser.element("#find").sendKeys("tenant-1");
        await().until(() -> visible().size() == 11);
        browser.run("location.hash = 'global'");
        await().untilAsserted(() -> assertIsInFocus("global"));
        browser.run("location.hash = '%zz'");
        assertIsInFocus("global");
    }

    private static void assertIsInFocus(String policy) {
        assertThat(browser.run("const card = document.activeElement, at = card.getBoundingClientRect();"
                        + " return at.top >= 0 && at.top < innerHeight ? card.dataset.policy : 'out of sight'"))
                .isEqualTo(policy);
    }

    @Test
    void anHourIsShownByTheMinuteAndThePageIsNeverBlank() {
        for (int i = 0; i < 12 * 60; i++) {
            throttlers.global("tenant-5").decide(1);
            time.advance(SECOND);
        }
        browser.awaitText(card("tenant-5") + " .now", "300 allowed, 1/s now");
        browser.select("span", "hour");
        assertThat(browser.texts("#policies > li")).hasSize(55);
        browser.awaitText(card("tenant-5") + " .now", "60/min now");
        assertThat(browser.run(
                        "const p = policies.get('tenant-5'); p.visible = true; p.draw(); return p.plot.data[4].length"))
                .isEqualTo(60L);
        time.advance(Duration.ofMinutes(2));
        browser.awaitText(card("tenant-5") + " .now", "0/min now");

        browser.select("span", "minutes");
        browser.awaitText(card("tenant-5") + " .now", "/s now");
        assertThat(browser.text("#window")).isEqualTo("the last five minutes");
    }

    @Test
    void theNumbersAreExplainedByALink() {
        assertThat(browser.element("#docs").getAttribute("href")).endsWith("/docs/dashboard.md");
    }

    @Test
    void theCurlLineOfAChange() {
        browser.click(card("global") + " .change summary");

        assertThat(browser.text(card("global") + " .change pre"))
                .isEqualTo("curl -u user -X POST -H 'Content-Type: application/json' \\\n"
                        + "  -d '{\"rate\": \"6000/1m\", \"capacity\": 7000}' 'http://localhost:" + port
                        + "/actuator/ratelimits/global'");
        assertThat(browser.text(card("global") + " .change p"))
                .isEqualTo("Any field may be left out. Applies to this instance until it stops.");
    }

    @Test
    void theCurlLinesThatUndoAChangeAndResetAKey() {
        browser.click(card("per-user-per-endpoint") + " .change summary");

        String url = "'http://localhost:" + port + "/actuator/ratelimits/per-user-per-endpoint";
        assertThat(browser.texts(card("per-user-per-endpoint") + " .change pre").get(1))
                .isEqualTo("# the configured limit again\ncurl -u user -X DELETE " + url + "/change'\n"
                        + "# the bucket of a key is full again\ncurl -u user -X DELETE " + url
                        + "?key=USER&key=ENDPOINT'");
        assertThat(browser.run("return policies.get('global').undo.textContent"))
                .asString()
                .contains("# the bucket is full again")
                .endsWith("/actuator/ratelimits/global'");
    }

    @Test
    void theTotalsComeFirstAndNameThePolicyThatDeniesMost() {
        flood("alice", 900);
        for (int i = 0; i < 103; i++) {
            throttlers.get("items-candidate").forKey("alice").decide(1);
        }
        time.advance(SECOND);

        browser.awaitText("#total-shadow", "3");
        assertThat(browser.text("#total-decisions"))
                .as("1,803, and those of the page's own requests")
                .startsWith("1,8");
        assertThat(browser.text("#total-denied")).startsWith("100 (5.").endsWith(" %)");
        assertThat(browser.text("#total-worst")).isEqualTo("per-user-per-endpoint");
        assertThat(browser.element("#skip").getAttribute("href")).endsWith("#per-user-per-endpoint");
    }

    @Test
    void manyPoliciesAreATableWhoseNamesOpenCards() {
        browser.speedUpTheClock(this::open);
        browser.awaitText("#table", "per-user-per-endpoint");
        flood("alice", 900);
        time.advance(SECOND);

        browser.awaitText("#rows tr:first-child", "per-user-per-endpoint 600/1m 800 100 11.1 %");
        assertThat(browser.texts("#rows tr")).hasSize(55);
        assertThat(browser.text("#rows tr:first-child .key")).matches("[0-9a-f]{16}");
        assertThat(browser.run(
                        "return document.querySelector('#rows .denied path, #rows path.denied').getAttribute('d')"))
                .asString()
                .endsWith("V0H60V20Z");
        assertThat(visible()).isEmpty();

        browser.click("#rows tr:first-child a");
        await().until(() -> visible().size() == 1);
        assertIsInFocus("per-user-per-endpoint");
        assertThat(browser.text(card("per-user-per-endpoint") + " .now")).contains("800 allowed");
        browser.click("#close a");
        await().until(() -> visible().isEmpty());
    }

    @Test
    void theTableOfFiftyPoliciesIsThreeScreensOfAPhone() {
        browser.size(390, 844);
        browser.select("view", "table");

        browser.nothingSticksOut();
        assertThat((long) browser.run("return document.documentElement.scrollHeight"))
                .isLessThan(3 * 844);
    }

    @Test
    void thePageNamesItsApplicationAndInstance() {
        assertThat(browser.run("return document.title"))
                .asString()
                .startsWith("sample-app ")
                .endsWith(" · Rate limits");
        assertThat(browser.text(".title"))
                .contains("sample-app", "process " + ProcessHandle.current().pid());
    }

    /** Behind a load balancer another instance may answer than the one that sent the page. */
    @Test
    void theHeaderNamesTheInstanceWhoseNumbersAreShown() {
        assertThat(browser.run("""
                        forget();
                        take({instance: 'other', title: 'shop on web-2', identity: 'shop · on web-2', second, from: second, seconds,
                            step, change: {}, policies: [], backends: []});
                        return document.title + ': ' + byId('identity').textContent""")).isEqualTo("shop on web-2: shop · on web-2");
        browser.awaitText(".title", "process " + ProcessHandle.current().pid());
        browser.awaitText("#state", "Live: 55 policies");
        for (int i = 0; i < 2; i++) {
            browser.run("instance = 'other'");
            await().until(() -> !"other".equals(browser.run("return instance")));
        }
        browser.awaitText("#state-ago", "Several instances answer in turn: open the page of one of them.");
    }

    @Test
    void aPointStaysAtItsRateWhenTheLimitIsChanged() {
        assertThat(browser.run("""
                        const limit = rates => ({ own: 1, capacity: 10, sample: 0, keys: 0, suggestions: [], global: true, tooLittle: true,
                            measuredSeconds: 1, rates: rates.map(n => ({ rate: `${n}/1s`, perSecond: n, quantiles: [1, 1, 1, 1, 1] })) });
                        const chart = new DemandChart('api');
                        chart.take(limit([1, 2, 4]));
                        chart.move(2, 20);
                        return [[2, 4, 8], [1, 2]].map(rates => {
                          chart.take(limit(rates));
                          return chart.specText.textContent;
                        }).join('; ')""")).isEqualTo("4/1s, capacity 20; 2/1s, capacity 10");
    }

    @Test
    void aChartThatCannotBeDrawnIsSaid() {
        browser.run("policies.get('tenant-1').takeDemand = () => { throw new Error('no chart') }; demandAt = NEVER");

        browser.awaitText("#state", "This page has an error, so it may show wrong numbers: no chart. Reload it.");
        assertThat(browser.errors()).anyMatch(error -> error.contains("no chart"));
        browser.open("http://localhost:" + port + "/actuator/ratelimitdashboard");
        browser.awaitText("#state", "Live");
        browser.errors();
    }

    @Test
    void anErrorOfTheScriptIsShownAndLogged() {
        browser.run("showTotals = () => { throw new Error('no totals') }");

        browser.awaitText("#state", "This page has an error, so it may show wrong numbers: no totals. Reload it.");
        assertThat(browser.errors()).anyMatch(error -> error.contains("no totals"));
        browser.speedUpTheClock(this::open);
        browser.awaitText("#state", "Live");
        browser.errors();
    }

    @Test
    void aSharedBucketsChartHasItsLimit() {
        for (int i = 0; i < 120; i++) {
            throttlers.global("tenant-1").decide(1);
        }
        time.advance(SECOND);
        browser.awaitText(card("tenant-1") + " .now", "100 allowed");

        assertThat(browser.run("""
                const p = policies.get('tenant-1'), texts = [];
                p.visible = true;
                p.draw();
                const fill = p.plot.ctx.fillText;
                p.plot.ctx.fillText = (text, ...at) => { texts.push(text); fill.call(p.plot.ctx, text, ...at); };
                p.plot.redraw();
                return new Promise(done => setTimeout(() => done(texts.join('; ')), 100));
                """)).asString().contains("100/1s").containsPattern("\\d+/s");
    }

    @Test
    void anyoneCanReadThePage() throws IOException {
        anEveningInTheShop();
        for (String view : List.of("cards", "table")) {
            browser.select("view", view);
            for (boolean dark : List.of(false, true)) {
                browser.dark(dark);
                for (int width : List.of(1200, 390)) {
                    browser.size(width, 820);
                    assertThat(browser.violations())
                            .as("%s, dark %s, %d px", view, dark, width)
                            .isEmpty();
                }
            }
        }
        browser.dark(false);
        stopPolling();
        browser.run(
                "showBackends([{name: 'Redis', condition: 'DOWN', since: '2026-01-02T03:04:05Z', cause: 'no answer'}])");
        assertThat(browser.violations()).as("outage").isEmpty();
    }

    @Test
    void aLimitThatDiffersFromTheConfigurationIsMarked() {
        assertThat(browser.element(card("global") + " .differences").isDisplayed())
                .isFalse();
        BucketSpec configured = throttlers.get("global").policy().spec();
        throttlers.get("global").reconfigure(configured.withCapacity(7_500));

        browser.awaitText(
                card("global") + " .differences", "changed for this instance · configured: 6000/1m, capacity 7,000");

        throttlers.get("global").reconfigure(configured);
        await().until(() -> !browser.element(card("global") + " .differences").isDisplayed());
    }

    @Test
    void theLimitsOfTiersAreInWords() {
        assertThat(browser.text(card("report") + " .facts")).endsWith(" · pro: 600/1m, capacity 600");
        assertThat(
                        browser.run(
                                "return limitText({rate: '9/month', capacity: 1000, refill: 'calendar', zone: 'Z', inFlight: 4})"))
                .isEqualTo("9/month, capacity 1,000, refilled by the calendar of UTC, 4 in flight");
        assertThat(browser.run("return limitText({rate: '9/1s', capacity: 9, refill: 'interval'})"))
                .isEqualTo("9/1s, capacity 9, refilled at intervals");
    }

    /** Forty users with bursts of 5, 10 and so on up to 200, under a limit of 100/1m. */
    @Test
    void theLimitThatTheTrafficNeedsIsAPointToMove() throws IOException {
        measureAnew("items-candidate");
        for (int user = 1; user <= 40; user++) {
            for (int i = 0; i < 5 * user; i++) {
                throttlers.get("items-candidate").forKey("user" + user).decide(1);
            }
        }
        String demand = openDemand();
        assertThat(browser.text(demand + " .demand-hint").replace('\n', ' '))
                .isEqualTo(
                        "Too little traffic yet: 40 clients, 0 s. A limit is suggested after ten minutes with at least 30"
                                + " clients.");
        time.advance(Duration.ofHours(1));
        throttlers.get("items-candidate").forKey("user1").decide(1);
        await().until(() -> browser.text(demand + " .demand-hint").contains("tightest"));
        assertThat(browser.text(demand + " .demand-spec b")).isEqualTo("25/4m, capacity 200");
        assertThat(browser.text(demand + " .demand-sentence"))
                .isEqualTo("Would deny 0 of 40 clients (at most 7.5 % of all) and 0 % of requests.");
        browser.click(demand + " .demand-tools button:nth-child(2)");
        assertThat(browser.text(demand + " .demand-spec b")).isEqualTo("100/1m, capacity 100");
        assertThat(browser.text(demand + " .demand-sentence"))
                .startsWith("Would deny 20 of 40 clients (at most ")
                .endsWith(" % of all) and 26 % of requests.");
        assertThat(browser.run("return document.querySelectorAll(arguments[0]).length", demand + " polyline"))
                .isEqualTo(5L);

        browser.run("document.querySelector(arguments[0]).focus()", demand + " .demand-point");
        browser.element(demand + " .demand-point").sendKeys(Keys.ARROW_UP);
        assertThat(browser.text(demand + " .demand-sentence")).startsWith("Would deny 19 of 40");
        assertThat(browser.text(demand + " .demand-spec b")).isEqualTo("100/1m, capacity 105");
        browser.element(demand + " .demand-point").sendKeys(Keys.ARROW_RIGHT, Keys.chord(Keys.SHIFT, Keys.ARROW_UP));
        assertThat(browser.text(demand + " .demand-sentence")).startsWith("Would deny 14 of 40");
        assertThat(browser.text(demand + " pre"))
                .isEqualTo(
                        "ratelimit:\n  policies:\n    items-candidate:\n"
                                + "      # only these two lines change; keep the policy's key, paths and the rest\n      rate: 200/1m\n      capacity: 130");

        browser.drag(demand + " .demand-point", -60, -200);
        assertThat(browser.text(demand + " .demand-sentence"))
                .isEqualTo("Would deny 0 of 40 clients (at most 7.5 % of all) and 0 % of requests.");
        assertThat(browser.text(demand + " .demand-spec b")).isEqualTo("100/1m, capacity 400");
        assertThat(browser.texts(demand + " option"))
                .as("of 40 clients 99.9 % are all")
                .containsExactly("all 40", "95 % (38 of 40)", "90 % (36 of 40)");
        assertThat(browser.text(demand + " .demand-hint"))
                .contains("25/4m, capacity 200")
                .contains("Measured for 60 min");
        choose(demand, "0.9");
        assertThat(browser.text(demand + " .demand-hint")).contains("25/4m, capacity 180");
        choose(demand, "1");
        assertThat(browser.text(demand + " .demand-spec b")).isEqualTo("25/4m, capacity 200");
        twelveMinutesOfSessions("items-candidate");
        browser.awaitText(demand + " .demand-sentence", "of 200");
        browser.run("document.querySelector(arguments[0]).scrollIntoView()", card("items-candidate"));
        browser.picture("demand");
        assertThat(browser.element(demand + " a").getAttribute("href")).endsWith("/docs/choosing.md");
        browser.size(360, 640);
        browser.nothingSticksOut();
        assertThat(browser.run(UNREADABLE_TEXTS, demand + " svg")).asString().isEmpty();
        browser.run("document.querySelector(arguments[0]).scrollIntoView()", demand);
        browser.picture("demand-phone");
    }

    /** The visits of the home page's scene, twice, at their moments: docs/choosing.md has the same numbers. */
    @Test
    void theChartShowsWhichLimitTheCustomersOfTheShopNeed() {
        browser.open("http://localhost:" + port + "/");
        List<?> visits =
                (List<?>) browser.run("return visitsOfAMinute().map(visit => [visit.at * 1e6, visit.customer])");
        measureAnew("items-candidate");
        play(visits);
        time.advance(Duration.ofMinutes(10));
        play(visits);
        String demand = openDemand();
        assertThat(browser.texts(demand + " option")).containsExactly("all 40", "95 % (38 of 40)", "90 % (36 of 40)");
        assertThat(browser.text(demand + " .demand-hint")).contains("25/1m, capacity 192.");
        choose(demand, "0.9");
        assertThat(browser.text(demand + " .demand-hint")).containsPattern("25/4m, capacity [7-9];");
    }

    private void play(List<?> visits) {
        long start = time.nanoTime();
        for (Object visit : visits) {
            List<?> atAndCustomer = (List<?>) visit;
            long at = start + ((Number) atAndCustomer.get(0)).longValue();
            time.advance(Duration.ofNanos(at - time.nanoTime()));
            throttlers
                    .get("items-candidate")
                    .forKey(atAndCustomer.get(1).toString())
                    .decide(1);
        }
    }

    /** Opens the chart, which is drawn although requests of the page are held back until then. */
    private String openDemand() {
        browser.speedUpTheClock(this::open);
        browser.awaitText("#state", "Live");
        browser.select("view", "cards");
        String demand = card("items-candidate") + " .demand";
        await().until(() -> browser.element(demand).isDisplayed());
        browser.run("const fetched = window.fetch, opened = new Promise(done => window.release = done);"
                + "window.fetch = (...request) => opened.then(() => fetched(...request))");
        browser.click(demand + " summary");
        await().until(() -> !browser.texts(demand + " .demand-sentence").isEmpty()); // the event follows the click
        browser.run("window.release()");
        return demand;
    }

    private void choose(String demand, String share) {
        browser.run(
                "const select = document.querySelector(arguments[0]); select.value = arguments[1];"
                        + "select.dispatchEvent(new Event('change'))",
                demand + " select",
                share);
    }

    /** Two hundred users, some busier than others, load pages of up to twelve requests. */
    private void twelveMinutesOfSessions(String policy) {
        measureAnew(policy);
        SplittableRandom random = new SplittableRandom(1);
        double[] pagesPerSecond =
                random.doubles(200, 0.4, 1).map(busy -> Math.pow(busy, 6) / 4).toArray();
        for (int second = 0; second < 720; second++) {
            for (int user = 0; user < pagesPerSecond.length; user++) {
                boolean loads = second == 0 || random.nextDouble() < pagesPerSecond[user];
                int requests = loads ? random.nextInt(1, 13) : 0;
                for (int i = 0; i < requests; i++) {
                    throttlers.get(policy).forKey("user" + user).decide(1);
                }
            }
            time.advance(SECOND);
        }
    }

    private void measureAnew(String policy) {
        BucketSpec spec = throttlers.get(policy).policy().spec();
        throttlers.get(policy).reconfigure(spec.withCapacity(1));
        throttlers.get(policy).reconfigure(spec);
    }

    @Test
    void aLoginThatIsOverIsShownAndTheBrowserAsksForNone() {
        browser.login(null);
        browser.awaitText("#state", "Not logged in any more (401): reload this page to log in. Last seen");
        browser.login("bob");
        browser.awaitText("#state", "Not allowed to see this (403).");
        browser.login("admin");
        browser.awaitText("#state", "Live");
    }

    @Test
    void aServerThatIsAwayIsShownAndItGoesOnWhenItIsBack() {
        browser.online(false);
        browser.awaitText("#state", "The server can’t be reached. Last seen");
        throttlers.global("tenant-7").decide(1);
        time.advance(Duration.ofMinutes(1));
        browser.online(true);
        browser.awaitText("#state", "Live");
        browser.awaitText(card("tenant-7") + " .now", "1 allowed");
    }

    @Test
    void isBeautifulInAnyLightAndOnAPhone() throws IOException {
        anEveningInTheShop();
        browser.size(1200, 820);
        browser.run("scrollTo(0, 0)");
        browser.nothingSticksOut();
        browser.picture("dashboard");
        browser.dark(true);
        browser.awaitText("#state", "Live");
        browser.picture("dashboard-dark");
        browser.dark(false);
        browser.size(390, 844);
        browser.awaitText("#state", "Live");
        browser.nothingSticksOut();
        browser.picture("dashboard-phone");
        browser.run("document.querySelectorAll('details').forEach(part => part.open = true)");
        browser.nothingSticksOut();
    }

    /** The picture of the README: six policies that deny, and the demand of one of them. */
    @Test
    void aCardThatIsOpenedFromTheTableStandsBesideIt() throws IOException {
        twelveMinutesOfSessions("items-candidate");
        anEveningOfDenials();
        browser.size(1200, 750);
        browser.select("view", "table");
        browser.speedUpTheClock(this::open);
        browser.click("#only");
        await().untilAsserted(() ->
                assertThat(browser.texts("#rows tr:not([hidden])")).hasSize(6));
        browser.click("#rows a[href='#items-candidate']");
        await().until(() ->
                browser.element(card("items-candidate") + " .demand").isDisplayed());
        browser.click(card("items-candidate") + " .demand summary");
        browser.awaitText(card("items-candidate") + " .demand-sentence", "of 200");
        assertThat(browser.run(
                        "const [table, card] = ['#table', arguments[0]].map(part =>"
                                + " document.querySelector(part).getBoundingClientRect());"
                                + " return table.right < card.left && Math.abs(table.top - card.top) < 60",
                        card("items-candidate")))
                .isEqualTo(true);
        browser.run("document.querySelector('.legend').scrollIntoView()");
        browser.nothingSticksOut();
        browser.picture("front");
        browser.dark(true);
        browser.awaitText("#state", "Live");
        browser.picture("front-dark");
        browser.dark(false);
    }

    /** Five minutes in which customers load items, and some go beyond five other limits. */
    private void anEveningOfDenials() {
        SplittableRandom random = new SplittableRandom(2);
        for (int second = 0; second < 300; second++) {
            for (int user = random.nextInt(60); user < 200; user += 1 + random.nextInt(60)) {
                int items = second > 200 && user < 2 ? 130 : random.nextInt(1, 13);
                for (int i = 0; i < items; i++) {
                    throttlers.get("items-candidate").forKey("user" + user).decide(1);
                }
            }
            if (second > 120 && second < 200) {
                flood("mallory", 30);
            }
            decide(second % 3 == 0 ? 10 : 0, "report", "alice");
            decide(second % 7 == 0 ? 1 : 0, "vouchers", "192.0.2.7");
            decide(second % 3 > 0 ? 1 : 0, "wrong-passwords", "192.0.2.7", "bob");
            decide(second % 20 == 0 ? 1 : 0, "exports", "carol");
            time.advance(SECOND);
        }
    }

    private void decide(int cost, String policy, String... key) {
        if (cost > 0) {
            throttlers.get(policy).forKey(key).decide(cost);
        }
    }

    /** Five minutes, with a flood in the third. */
    private void anEveningInTheShop() {
        for (int i = 0; i < 300; i++) {
            int wave = (int) (30 + 12 * Math.sin(i / 19.0) + i * 7 % 11);
            boolean flooded = i > 150 && i < 200;
            for (int j = 0; j < wave / 3; j++) {
                throttlers.decide(List.of(
                        throttlers.global("global").charge(1),
                        throttlers.get("per-endpoint").forKey("GET /api/items").charge(1),
                        throttlers
                                .get("per-user-per-endpoint")
                                .forKey("user" + j, "GET /api/items")
                                .charge(1),
                        throttlers.get("items-candidate").forKey("user" + j % 3).charge(1)));
            }
            for (int j = 0; j < (flooded ? 40 + i % 9 : 0); j++) {
                throttlers.decide(List.of(
                        throttlers.global("global").charge(1),
                        throttlers
                                .get("per-user-per-endpoint")
                                .forKey("mallory", "GET /api/items")
                                .charge(1)));
            }
            throttlers.decide(
                    List.of(throttlers.get("report").forKey("user" + i % 2).charge(i % 5 == 0 ? 10 : 1)));
            time.advance(SECOND);
        }
        browser.select("order", "denied");
        browser.awaitText("#policies > li:first-child h2", "per-user-per-endpoint");
        await().until(() -> (long) browser.run("return second") >= 300);
    }

    private void flood(String user, int calls) {
        for (int i = 0; i < calls; i++) {
            throttlers.decide(List.of(
                    throttlers
                            .get("per-user-per-endpoint")
                            .forKey(user, "GET /api/items")
                            .charge(1),
                    throttlers.global("global").charge(1)));
        }
    }

    private static List<String> visible() {
        return browser.texts("#policies > li:not([hidden])").stream()
                .map(text -> text.lines().findFirst().orElseThrow())
                .toList();
    }

    private static String card(String policy) {
        return "[data-policy=" + policy + "]";
    }
}
