package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.openqa.selenium.By;
import org.openqa.selenium.OutputType;
import org.openqa.selenium.WebElement;
import org.openqa.selenium.chrome.ChromeDriver;
import org.openqa.selenium.chrome.ChromeDriverService;
import org.openqa.selenium.chrome.ChromeOptions;
import org.openqa.selenium.interactions.Actions;
import org.openqa.selenium.logging.LogEntry;
import org.openqa.selenium.logging.LogType;
import org.openqa.selenium.logging.LoggingPreferences;

/**
 * Chromium without a window, for the tests of a class; they are skipped where none is installed. It knows no host but
 * this one.
 *
 * <p>Pictures go to {@code target/pictures}, and {@code -Dpictures=docs/images} renews those that are there, below the
 * project.
 */
final class Browser implements ExecutionCondition, BeforeAllCallback, BeforeEachCallback, AfterAllCallback {

    private static final Optional<Path> BROWSER = Stream.of("chromium", "chromium-browser", "google-chrome")
            .flatMap(name -> onPath(name).stream())
            .findFirst();
    private static final Optional<Path> CONTROL = onPath("chromedriver");
    private static final Duration PATIENCE = Duration.ofMinutes(2);
    private static final Duration POLL_INTERVAL = Duration.ofMillis(20);
    private static final Path PICTURES = Path.of("target", "pictures");
    private static final Logger SELENIUM = Logger.getLogger("org.openqa.selenium");

    static {
        SELENIUM.setLevel(Level.SEVERE); // warns that it has no classes for the newest protocol; none are used
    }

    private ChromeDriver driver;

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext test) {
        return BROWSER.isPresent() && CONTROL.isPresent()
                ? ConditionEvaluationResult.enabled(BROWSER + " and " + CONTROL)
                : ConditionEvaluationResult.disabled("no browser to test with: install 'chromium' and 'chromium-driver'"
                        + " (Debian), or Chrome and ChromeDriver");
    }

    @Override
    public void beforeAll(ExtensionContext test) {
        Awaitility.setDefaultTimeout(PATIENCE);
        ChromeDriverService service = new ChromeDriverService.Builder()
                .usingDriverExecutable(CONTROL.orElseThrow().toFile())
                .build();
        driver = new ChromeDriver(service, options(BROWSER.orElseThrow()));
        driver.manage().timeouts().scriptTimeout(PATIENCE);
    }

    private static Optional<Path> onPath(String name) {
        return Stream.of(System.getenv("PATH").split(File.pathSeparator))
                .map(directory -> Path.of(directory, name))
                .filter(Files::isExecutable)
                .findFirst();
    }

    private static ChromeOptions options(Path browser) {
        LoggingPreferences logs = new LoggingPreferences();
        logs.enable(LogType.BROWSER, Level.ALL);
        ChromeOptions options = new ChromeOptions();
        options.setCapability("goog:loggingPrefs", logs);
        options.setBinary(browser.toFile());
        options.addArguments(
                "--headless=new",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
                "--force-color-profile=srgb",
                "--hide-scrollbars",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost");
        if (System.getProperty("user.name").equals("root")) {
            options.addArguments("--no-sandbox");
        }
        return options;
    }

    /** A window of the usual size, in light colours. */
    @Override
    public void beforeEach(ExtensionContext test) {
        size(1280, 900);
        dark(false);
        errors();
    }

    @Override
    public void afterAll(ExtensionContext test) {
        if (driver != null) {
            driver.quit();
        }
    }

    /** Opens a page, and waits until its scripts have run: the driver may return before, on a busy machine. */
    void open(String url) {
        driver.get(url);
        await().until(() -> "complete".equals(run("return document.readyState")));
    }

    /** Sets the size of the page, which may be narrower than a window. */
    void size(int width, int height) {
        driver.executeCdpCommand(
                "Emulation.setDeviceMetricsOverride",
                Map.of("width", width, "height", height, "deviceScaleFactor", 1, "mobile", false));
    }

    void dark(boolean dark) {
        Map<String, String> scheme = Map.of("name", "prefers-color-scheme", "value", dark ? "dark" : "light");
        driver.executeCdpCommand("Emulation.setEmulatedMedia", Map.of("features", List.of(scheme)));
    }

    /** Sends the user's name as name and password with each request; null sends none. */
    void login(@Nullable String user) {
        driver.executeCdpCommand("Network.enable", Map.of());
        driver.executeCdpCommand(
                "Network.setExtraHTTPHeaders",
                Map.of("headers", user == null ? Map.of() : Map.of("Authorization", basic(user))));
    }

    private static String basic(String user) {
        byte[] credentials = (user + ":" + user).getBytes(StandardCharsets.UTF_8);
        return "Basic " + Base64.getEncoder().encodeToString(credentials);
    }

    /** Sets whether the server can be reached. */
    void online(boolean online) {
        driver.executeCdpCommand("Network.enable", Map.of());
        driver.executeCdpCommand(
                "Network.emulateNetworkConditions",
                Map.of("offline", !online, "latency", 0, "downloadThroughput", -1, "uploadThroughput", -1));
    }

    /** Opens pages on which no time passes for {@code performance.now}. */
    void stopTheClock(Runnable opening) {
        withScript("performance.now = () => 1", opening);
    }

    /** Opens pages on which time passes five times as fast for timers and {@code performance.now}. */
    void speedUpTheClock(Runnable opening) {
        withScript(
                "{ const later = setTimeout, now = performance.now.bind(performance);"
                        + "window.setTimeout = (task, millis) => later(task, millis / 5);"
                        + "performance.now = () => 5 * now() }",
                opening);
    }

    /** Has animations of style sheets run ten times as fast. */
    void speedUpAnimations() {
        driver.executeCdpCommand("Animation.enable", Map.of());
        driver.executeCdpCommand("Animation.setPlaybackRate", Map.of("playbackRate", 10));
    }

    private void withScript(String script, Runnable opening) {
        Object id = driver.executeCdpCommand("Page.addScriptToEvaluateOnNewDocument", Map.of("source", script))
                .get("identifier");
        opening.run();
        driver.executeCdpCommand("Page.removeScriptToEvaluateOnNewDocument", Map.of("identifier", id));
    }

    void click(String selector) {
        element(selector).click();
    }

    /** Selects the value of a {@code <select>}. */
    void select(String id, String value) {
        run(
                "const chosen = document.getElementById(arguments[0]); chosen.value = arguments[1];"
                        + "chosen.dispatchEvent(new Event('change'))",
                id,
                value);
    }

    /** Drags an element by so many pixels. */
    void drag(String selector, int right, int down) {
        new Actions(driver).dragAndDropBy(element(selector), right, down).perform();
    }

    WebElement element(String selector) {
        return driver.findElement(By.cssSelector(selector));
    }

    List<String> texts(String selector) {
        return driver.findElements(By.cssSelector(selector)).stream()
                .map(WebElement::getText)
                .toList();
    }

    String text(String selector) {
        return element(selector).getText();
    }

    /** Waits until a text of the elements has the part. */
    void awaitText(String selector, String part) {
        await().pollInterval(POLL_INTERVAL).ignoreExceptions().untilAsserted(() -> assertThat(texts(selector))
                .anyMatch(text -> text.contains(part), part));
    }

    Object run(String script, Object... arguments) {
        return driver.executeScript(script, arguments);
    }

    void nothingSticksOut() {
        assertThat(run("return document.documentElement.scrollWidth - document.documentElement.clientWidth"))
                .as("pixels to scroll sideways")
                .isEqualTo(0L);
    }

    /** Returns the violations of WCAG 2.2 AA and of good practice that axe-core finds in the page: each rule with its elements. */
    List<String> violations() throws IOException {
        try (InputStream axe = Browser.class.getResourceAsStream("/axe.min.js")) {
            run(new String(axe.readAllBytes(), StandardCharsets.UTF_8));
        }
        Object found = driver.executeAsyncScript("""
                const done = arguments[arguments.length - 1];
                const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
                axe.run({ runOnly: tags }).then(({ violations }) => done(violations.map(({ id, nodes }) =>
                    `${id}: ${nodes.slice(0, 5).map(node => `${node.target} (${node.any[0]?.message ?? node.failureSummary})`).join(', ')}`)));
                """);
        return ((List<?>) found).stream().map(String::valueOf).toList();
    }

    /** Returns the errors of scripts and of the browser since the last call, without response statuses. */
    List<String> errors() {
        return StreamSupport.stream(driver.manage().logs().get(LogType.BROWSER).spliterator(), false)
                .map(LogEntry::getMessage)
                .filter(message -> !message.contains("Failed to load resource"))
                .toList();
    }

    void picture(String name) throws IOException {
        byte[] png = driver.getScreenshotAs(OutputType.BYTES);
        store(PICTURES, name, png);
        Path shown = Path.of("..").resolve(System.getProperty("pictures", "none"));
        if (Files.exists(shown.resolve(name + ".png"))) {
            store(shown, name, png);
        }
    }

    private static void store(Path directory, String name, byte[] png) throws IOException {
        Files.createDirectories(directory);
        Files.write(directory.resolve(name + ".png"), png);
    }
}
