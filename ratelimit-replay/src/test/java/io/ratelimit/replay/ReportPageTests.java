package io.ratelimit.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The page of a report, as a browser shows it: its script makes all that is seen from the data. */
@Tag("slow")
class ReportPageTests {

    @TempDir
    private Path directory;

    @Test
    void aBrowserShowsTheRequestsTheDenialsAndTheDemand() throws IOException {
        Path config = Files.writeString(
                directory.resolve("application.yml"),
                "ratelimit.policies.candidate: { key: ip, rate: 8/1m, capacity: 5 }");
        Path log = directory.resolve("nasa.log.gz");
        try (InputStream nasa = getClass().getResourceAsStream("nasa-1995-08-01.log.gz")) {
            Files.copy(nasa, log);
        }
        Path page = directory.resolve("report.html");
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        PrintStream lines = new PrintStream(out, true);
        int result = new ReplayCommand(InputStream.nullInputStream(), lines, lines)
                .run(List.of(log.toString(), "--config", config.toString(), "--html", page.toString()));
        assertThat(result).as(out.toString()).isEqualTo(ReplayCommand.DECIDED);

        String shown = shown(page);
        String data = shown.substring(shown.indexOf("{\"files\""), shown.indexOf("</script>"));
        assertThat(shown.substring(0, shown.indexOf("<script")))
                .contains("5,000 requests from 1995-08-01 ", "<h2>candidate</h2>", "<h3>Denied most</h3>")
                .contains("<h3>What the traffic needs</h3>", "only these two lines change", "now: 5");
        List<String> requests = numbers("requestBins", data);
        List<String> denied = numbers("deniedBins", data);
        assertThat(denied).hasSameSizeAs(requests).anyMatch(count -> !count.equals("0"));
        assertThat(Pattern.compile("<rect ").matcher(shown).results().count())
                .isEqualTo(requests.size()
                        + denied.stream().filter(count -> !count.equals("0")).count());
    }

    private static List<String> numbers(String name, String data) {
        MatchResult found = Pattern.compile("\"" + name + "\":\\[([0-9,]+)]")
                .matcher(data)
                .results()
                .findFirst()
                .orElseThrow();
        return List.of(found.group(1).split(","));
    }

    private String shown(Path page) throws IOException {
        Path browser = Stream.of(System.getenv("PATH").split(File.pathSeparator))
                .flatMap(path -> Stream.of("chromium", "chromium-browser", "google-chrome")
                        .map(name -> Path.of(path, name)))
                .filter(Files::isExecutable)
                .findFirst()
                .orElse(null);
        assumeTrue(browser != null, "no browser to test with: install 'chromium' (Debian), or Chrome");
        Process process = new ProcessBuilder(
                        browser.toString(),
                        "--headless=new",
                        "--no-sandbox",
                        "--disable-dev-shm-usage",
                        "--disable-background-networking",
                        "--no-first-run",
                        "--user-data-dir=" + directory.resolve("profile"),
                        "--dump-dom",
                        page.toUri().toString())
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }
}
