package io.ratelimit.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.regex.Pattern;
import java.util.zip.GZIPOutputStream;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.valves.JsonAccessLogValve;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Runs the command on logs as they are, and on bad ones. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class ReplayCommandTests {

    private static final String ONE_A_MINUTE = "{ key: ip, rate: 1/1m }";

    @TempDir
    private Path directory;

    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();
    private Path config;
    private Path log;

    @BeforeEach
    void writeConfiguration() throws IOException {
        log = directory.resolve("access.log");
        policy(ONE_A_MINUTE);
    }

    private void policy(String policy) throws IOException {
        config = Files.writeString(
                directory.resolve("application.yml"), "ratelimit:\n  policies:\n    candidate: " + policy + "\n");
    }

    private int run(String... options) {
        return run(new byte[0], log.toString(), options);
    }

    private int run(byte[] in, String file, String... options) {
        return run(new ByteArrayInputStream(in), file, options);
    }

    private int run(InputStream in, String file, String... options) {
        List<String> arguments = new ArrayList<>(List.of(file, "--config", config.toString()));
        arguments.addAll(List.of(options));
        out.reset();
        err.reset();
        return new ReplayCommand(in, new PrintStream(out, true), new PrintStream(err, true)).run(arguments);
    }

    private String report() {
        return out.toString(StandardCharsets.UTF_8);
    }

    private String errors() {
        return err.toString(StandardCharsets.UTF_8);
    }

    private static String line(String host, String time) {
        return host + " - - [" + time + "] \"GET /items?page=1 HTTP/1.1\" 200 123\n";
    }

    private static String line(String host) {
        return line(host, "22/Nov/2026:10:00:00 +0000");
    }

    private Path nasa() throws IOException {
        Path file = directory.resolve("nasa.log.gz");
        try (InputStream log = getClass().getResourceAsStream("nasa-1995-08-01.log.gz")) {
            Files.write(file, log.readAllBytes());
        }
        return file;
    }

    @Test
    void eightAMinuteAndFifteenAtOnceDenyNoClientOfNasa() throws IOException {
        policy("{ key: ip, rate: 8/1m, capacity: 15 }");

        assertThat(run(new byte[0], nasa().toString(), "--fail-above", "0%")).isEqualTo(ReplayCommand.DECIDED);
        assertThat(report())
                .contains("5,000 requests of 443 keys; denies 0 requests (0 %) of 0 keys (0 %)")
                .contains("rate: 8/1m, capacity: 15 (touches 0 of 443 keys)");
    }

    @Test
    void tenAMinuteAndTenAtOnceDenyOnePercentOfTheClientsOfNasa() throws IOException {
        policy("{ key: ip, rate: 10/1m }");

        assertThat(run(new byte[0], nasa().toString(), "--fail-above", "0.1%"))
                .isEqualTo(ReplayCommand.TOO_MANY_DENIED);
        assertThat(report())
                .contains("denies 9 requests (0.18 %) of 4 keys (0.90 %)")
                .contains("3 denied: glim.stanford.edu, 1995-08-01 02:26:33 to 1995-08-01 02:26:34")
                .contains("3,030 lines have another UTC offset than the lines around");
    }

    @Test
    void theSuggestedLimitTouchesNoKeyIfNoneMayBeTouched() throws IOException {
        policy("{ key: ip, rate: 1/1m }");
        run(new byte[0], nasa().toString(), "--touch", "0%");
        String suggestion = report().replaceAll("(?s).*keys: rate: (\\S+), capacity: (\\d+) \\(touches 0.*", "$1 $2");
        policy("{ key: ip, rate: " + suggestion.replace(" ", ", capacity: ") + " }");

        assertThat(run(new byte[0], nasa().toString(), "--fail-above=0%")).isEqualTo(ReplayCommand.DECIDED);
    }

    @Test
    void stampsOfWholeSecondsGiveARange() throws IOException {
        policy("{ key: ip, rate: 1/1s }");
        Files.writeString(
                log,
                line("10.0.0.1", "22/Nov/2026:10:00:00 +0000").repeat(2)
                        + line("10.0.0.1", "22/Nov/2026:10:00:01 +0000"));

        run();

        assertThat(report()).contains("denies 1 request ").contains("Denied in all: 1 request, 33.33 %");
        policy("{ key: ip, rate: 2/1s, capacity: 1 }");
        run();
        assertThat(report()).contains("denies 0 to 1 request ");
    }

    @Test
    void readsSeveralFilesInOrderAndTheStandardInput() throws IOException {
        Path second = Files.writeString(directory.resolve("second.log"), line("10.0.0.1"));
        Files.writeString(log, line("10.0.0.1"));

        assertThat(run(line("10.0.0.1").getBytes(StandardCharsets.UTF_8), "-", log.toString(), second.toString()))
                .isEqualTo(ReplayCommand.DECIDED);
        assertThat(report()).contains("3 requests").contains("denies 2 requests");
    }

    @Test
    void writesAPageWithoutReferencesAndAJsonFile() throws IOException {
        Path html = directory.resolve("report.html");
        Path json = directory.resolve("report.json");
        Files.writeString(log, line("10.0.0.1").repeat(3).replace("10.0.0.1 - -", "10.0.0.1 - </script>"));
        policy("{ key: user, rate: 1/1m }");

        run("--html", html.toString(), "--json=" + json);

        assertThat(Files.readString(html))
                .contains("prefers-color-scheme: dark")
                .contains("\\u003c/script>")
                .doesNotContain("src=", "href=", "{{data}}");
        assertThat(Files.readString(json))
                .contains("\"denied\":[2,2]", "\"key\":\"</script>\"", "\"outcomes\":{\"DENIED\":2}")
                .contains("\"binMillis\":1000,", "\"requestBins\":[3]", "\"deniedBins\":[2]")
                .containsPattern("\"deniedMost\":\\[\\{\"key\":\"</script>\",\"denied\":2,");
    }

    /** Half of a pair of surrogates, which JSON can escape, has no form in UTF-8. */
    @Test
    void writesATextThatIsNoUnicode() throws IOException {
        Path json = directory.resolve("report.json");
        policy("{ key: user, rate: 1/1m }");
        String entry =
                "{\"time\":\"2026-11-22T10:00:00Z\",\"request\":\"GET / HTTP/1.1\",\"user\":\"a\\ud800\",\"status\":200}\n";
        Files.writeString(log, entry.repeat(2));

        assertThat(run("--json", json.toString())).isEqualTo(ReplayCommand.DECIDED);
        assertThat(Files.readString(json)).contains("\"key\":\"a?\"");
    }

    @Test
    void anEmptyLogIsNotDecided() throws IOException {
        Files.writeString(log, "");

        assertThat(run()).isEqualTo(ReplayCommand.NOT_DECIDED);
        assertThat(errors()).contains("The log is empty");
    }

    @Test
    void aBinaryFileIsNotDecided() throws IOException {
        byte[] bytes = new byte[200_000];
        new Random(1).nextBytes(bytes);
        Files.write(log, bytes);

        assertThat(run()).isEqualTo(ReplayCommand.NOT_DECIDED);
        assertThat(errors()).isEqualTo("The log is not a text file: nothing was decided.\n");
    }

    @Test
    void aGzipFileThatIsCutOffIsReportedAndItsLinesAreCounted() throws IOException {
        byte[] whole = Files.readAllBytes(nasa());
        Files.write(log, Arrays.copyOf(whole, whole.length / 2));

        assertThat(run()).isEqualTo(ReplayCommand.NOT_DECIDED);
        assertThat(report())
                .containsPattern("access.log is damaged or cut off: the 2\\d{3} lines up to here were read");
    }

    @Test
    void aLineInAnotherZoneIsDecidedAtItsMoment() throws IOException {
        Files.writeString(
                log,
                line("10.0.0.1", "22/Nov/2026:10:00:00 +0000")
                        + line("10.0.0.1", "22/Nov/2026:12:00:30 +0200")
                        + line("10.0.0.1", "22/Nov/2026:10:01:00 +0000"));

        run();

        assertThat(report()).contains("denies 1 request").doesNotContain("steps back", "offset");
    }

    @Test
    void theHourThatTheEndOfSummerTimeRepeatsIsReadTwice() throws IOException {
        Files.writeString(log, """
                {"time":"2026-10-25T02:30:00","ip":"10.0.0.1","request":"GET / HTTP/1.1"}
                {"time":"2026-10-25T02:59:30","ip":"10.0.0.1","request":"GET / HTTP/1.1"}
                {"time":"2026-10-25T02:30:00","ip":"10.0.0.1","request":"GET / HTTP/1.1"}
                """);

        run("--zone", "Europe/Berlin");

        assertThat(report()).contains("denies 0 requests").doesNotContain("steps back");
    }

    @Test
    void aClockThatStepsBackIsReported() throws IOException {
        Files.writeString(
                log,
                line("10.0.0.1", "22/Nov/2026:10:10:00 +0000")
                        + line("10.0.0.1", "22/Nov/2026:10:00:00 +0000")
                        + line("10.0.0.1", "22/Nov/2026:10:00:30 +0000"));

        run();

        assertThat(report())
                .contains("The time steps back 1 time, by at most 10m (line 2)")
                .contains("denies 1 request");
    }

    @Test
    void aLongLineIsCountedAndSkipped() throws IOException {
        Files.writeString(log, line("10.0.0.1") + "x".repeat(10_000_000) + "\n" + line("10.0.0.1"));

        assertThat(run()).isEqualTo(ReplayCommand.DECIDED);
        assertThat(report()).contains("3 lines, 2 requests").contains("1 line is longer than 64 KB");
    }

    @Test
    void theLinesAfterALongOneKeepTheirNumbers() throws IOException {
        Files.writeString(log, line("10.0.0.1") + "x".repeat(100_000) + "\nnothing\n");

        run();

        assertThat(report()).contains("line 3: nothing");
    }

    /** The second request began at 0.8 s: its stamp, which omits a fraction of zero, isn't one of a whole second. */
    @Test
    void aStampWithoutAFractionIsExactInALogWithFractions() throws IOException {
        policy("{ key: ip, rate: 1/500ms }");
        String json =
                "{'time':'2026-11-22T10:00:0%sZ','ip':'a','method':'GET','path':'/','status':200,'duration_ms':%d}\n"
                        .replace('\'', '"');
        Files.writeString(log, json.formatted("1", 200) + json.formatted("0.300", 100));

        run();

        assertThat(report()).contains("denies 0 requests ");
    }

    @Test
    void bytesThatAreNoUtf8AreCountedAndStayDifferentKeys() throws IOException {
        policy("{ key: user, rate: 1/1m }");
        Files.write(
                log,
                (line("10.0.0.1").replace("- - ", "- \u00e4 ")
                                + line("10.0.0.1").replace("- - ", "- \u00f6 "))
                        .getBytes(StandardCharsets.ISO_8859_1));

        run();

        assertThat(report()).contains("2 lines are no UTF-8").contains("of 2 keys; denies 0 requests");
    }

    @Test
    void linesOfAnotherFormatAreCountedAndShown() throws IOException {
        Files.writeString(log, line("10.0.0.1") + "# rotated\n" + "\"-\" 400\n");

        assertThat(run()).isEqualTo(ReplayCommand.DECIDED);
        assertThat(report()).contains("2 lines don't have the format 'common'").contains("line 2: # rotated");
    }

    /** A terminal would execute an escape sequence; a key may also forge a line of the report or turn its text round. */
    @Test
    void textsOfALogCannotControlTheTerminal() throws IOException {
        policy("{ key: user, rate: 1/1m }");
        String evil = "a\\u001b[2k\\u0007\\u009b1m\\u007f\\u202eb\\u2066c\\ndenied in all: 0\\u2028d";
        String entry = "{\"time\":\"2026-11-22T10:00:00Z\",\"method\":\"GET\",\"uri\":\"/a\",\"status\":200,\"client\":"
                + "\"10.0.0.1\",\"key\":\"" + evil + "\"}\n";
        Files.writeString(log, entry.repeat(3) + "no \u001b]0;title\u0007 line \u009b31m \u202e \u007f\n");
        run(
                "--format",
                "json",
                "--field",
                "time=time",
                "--field",
                "uri=uri",
                "--field",
                "host=client",
                "--field",
                "user=key");

        assertThat(report() + errors())
                .contains("2 denied: a\\x1b[2k\\x07\\x9b1m\\x7f\\u202eb\\u2066c\\x0adenied in all: 0\\u2028d, ")
                .contains("line 4: no \\x1b]0;title\\x07 line \\x9b31m \\u202e \\x7f")
                .matches(text -> text.codePoints()
                        .filter(c -> c != '\n')
                        .noneMatch(c -> Character.isISOControl(c) || c == 0x202e || c == 0x2066 || c == 0x2028));

        Files.writeString(log, "no \u001b]0;title\u0007 line \u202e\n");
        run("--format", "common");
        assertThat(errors()).contains("  no \\x1b]0;title\\x07 line \\u202e\n");
    }

    @Test
    void aFormatThatDoesNotMatchShowsTheFirstLinesAndTheLikelyFormat() throws IOException {
        Files.writeString(log, line("10.0.0.1") + line("10.0.0.2") + line("10.0.0.3") + line("10.0.0.4"));

        assertThat(run("--format", "json")).isEqualTo(ReplayCommand.NOT_DECIDED);
        assertThat(errors())
                .contains("10.0.0.1 - - ", "10.0.0.3 - - ", "--format 'common'")
                .doesNotContain("10.0.0.4");
    }

    /** By the format 'combined', the host would be the key of all requests. */
    @Test
    void aVirtualHostBeforeTheClientIsNotTakenForTheClient() throws IOException {
        Files.writeString(
                log,
                "shop.example.com:443 " + line("10.0.0.1") + "shop.example.com:443 "
                        + line("10.0.0.2").replace("- -", "- alice"));

        assertThat(run()).isEqualTo(ReplayCommand.NOT_DECIDED);
        assertThat(errors()).contains("--format '%v");
    }

    @Test
    void aConfigurationThatStopsTheStartGivesTheReportOfTheApplication(CapturedOutput output) throws IOException {
        policy("{ key: ip, rate: 5/100 }");
        Files.writeString(log, line("10.0.0.1"));

        assertThat(run()).isEqualTo(ReplayCommand.WRONG_CONFIGURATION);
        assertThat(output).contains("APPLICATION FAILED TO START", "ratelimit.policies.candidate.rate", "5/100");
    }

    @Test
    void malformedYamlIsReportedWithItsLine() throws IOException {
        policy("{ key: ip");
        Files.writeString(log, line("10.0.0.1"));

        assertThat(run()).isEqualTo(ReplayCommand.WRONG_CONFIGURATION);
        assertThat(errors()).contains("The configuration is not valid YAML: ", "line 3");
    }

    @Test
    void aShortLogSuggestsNoLimit() throws IOException {
        Files.writeString(
                log,
                line("10.0.0.1", "22/Nov/2026:10:00:00 +0000").repeat(3)
                        + line("10.0.0.1", "22/Nov/2026:10:09:59 +0000"));

        run("--json", directory.resolve("report.json").toString());
        assertThat(report())
                .contains("of the keys: too little traffic, 1 key in 9m of the log (a limit is suggested after ten"
                        + " minutes with at least 30 keys)");
        assertThat(directory.resolve("report.json")).content().contains("\"tooLittle\":true");

        policy("{ rate: 1/1s }");
        run();
        assertThat(report())
                .contains(
                        "to deny nothing: too little traffic, in 9m of the log (a limit is suggested after ten minutes)");
    }

    @Test
    void aLogSuggestsNoLimitThatTakesLongerToFull() throws IOException {
        thirtyKeysInTenMinutes();
        policy("{ key: ip, rate: 1/1d }");
        run();
        assertThat(report())
                .contains(
                        "of the keys: none yet, since each limit takes longer from empty to full than the 10m of the log");

        policy("{ key: ip, rate: 1/1s, refund-on: 5xx }");
        run();
        assertThat(report())
                .contains("of the keys: rate: 1/16s, capacity: 3 (touches 0 of 30 keys; a rate beyond the measured ones"
                        + " may fit better; an upper bound, since");
    }

    private void thirtyKeysInTenMinutes() throws IOException {
        StringBuilder lines = new StringBuilder();
        for (int key = 1; key <= 30; key++) {
            lines.append(line("10.0.0." + key, "22/Nov/2026:10:00:00 +0000").repeat(3));
        }
        Files.writeString(log, lines + line("10.0.0.1", "22/Nov/2026:10:10:00 +0000"));
    }

    @Test
    void aNoteOnRangesIsGivenOnlyWithARange() throws IOException {
        policy("{ key: ip, rate: 2/1s, capacity: 1 }");
        Files.writeString(log, line("10.0.0.1").repeat(2));
        run();
        assertThat(report()).contains("where two numbers are given");

        policy("{ key: ip, rate: 9/1s }");
        run();
        assertThat(report()).doesNotContain("two numbers");
    }

    @Test
    void aGlobalPolicyHasNoKeys() throws IOException {
        policy("{ rate: 1/1s }");
        Files.writeString(log, line("10.0.0.1") + line("10.0.0.1", "22/Nov/2026:10:10:00 +0000"));

        run();

        assertThat(report())
                .contains("to deny nothing: rate: 1/16s, capacity: 1")
                .doesNotContain("keys", "touches");
    }

    @Test
    void theSuggestionForACalendarQuotaSaysThatItIsForAnotherRefill() throws IOException {
        policy("{ key: ip, rate: 5/day, refill: calendar }");
        thirtyKeysInTenMinutes();
        Files.writeString(log, Files.readString(log) + line("10.0.0.1", "23/Nov/2026:10:00:00 +0000"));

        run("--html", directory.resolve("report.html").toString());

        assertThat(report())
                .containsPattern("keys: rate: \\S+, capacity: \\d+, refill: greedy \\(")
                .contains("for refill: greedy, without a zone");
        assertThat(directory.resolve("report.html")).content().contains("\"calendar\":true");
    }

    @Test
    void aLikelyFormatHasAPlausibleRequest() throws IOException {
        Files.writeString(log, "2026-11-22T10:00:00Z main INFO started 12 things\n".repeat(4));

        assertThat(run()).isEqualTo(ReplayCommand.NOT_DECIDED);
        assertThat(errors()).contains("Say --format with the pattern").doesNotContain("Most of them");
    }

    @Test
    void aConfigurationWithoutPoliciesIsReported() throws IOException {
        Files.writeString(config, "ratelimit.mode: shadow\n");
        Files.writeString(log, line("10.0.0.1"));

        assertThat(run()).isEqualTo(ReplayCommand.WRONG_CONFIGURATION);
        assertThat(errors()).contains("no policies below 'ratelimit.policies'");
    }

    @Test
    void limitsThatAreStillDisabledAreDecided() throws IOException {
        Files.writeString(config, Files.readString(config) + "  enabled: false\n");
        Files.writeString(log, line("10.0.0.1"));

        assertThat(run()).isEqualTo(ReplayCommand.DECIDED);
    }

    @Test
    void policiesOnRedisAreDecidedInMemory() throws IOException {
        Files.writeString(config, Files.readString(config) + "  backend: redis\n");
        Files.writeString(log, line("10.0.0.1").repeat(2));

        assertThat(run()).isEqualTo(ReplayCommand.DECIDED);
        assertThat(report()).contains("denies 1 request");
    }

    @Test
    void anOptionReplacesAPropertyOfTheConfiguration() throws IOException {
        Files.writeString(log, line("10.0.0.1").repeat(2));

        run("--ratelimit.policies.candidate.rate=2/1m");

        assertThat(report()).contains("rate: 2/1m, capacity: 2").contains("denies 0 requests");
    }

    @Test
    void requestsOutsideTheContextPathAreCounted() throws IOException {
        Files.writeString(config, Files.readString(config) + "server.servlet.context-path: /shop\n");
        Files.writeString(log, line("10.0.0.1") + line("10.0.0.1").replace("/items", "/shop/items"));

        run();

        assertThat(report()).contains("1 request is outside the context path").contains("2 lines, 1 request");
    }

    @Test
    void aRequestThatBeganLongBeforeItsLineIsCounted() throws IOException {
        StringBuilder lines = new StringBuilder();
        for (int second = 0; second < 20_000; second++) {
            lines.append(String.format(
                    "{\"ts\":%d.5,\"ip\":\"10.0.0.%d\",\"request\":\"GET / HTTP/1.1\"}%n",
                    1_764_000_000 + second, second % 100));
        }
        lines.append("{\"ts\":1764000000.5,\"ip\":\"10.0.0.0\",\"request\":\"GET / HTTP/1.1\"}\n");
        Files.writeString(log, lines);

        run();

        assertThat(report())
                .contains("1 request began before others that had already been decided")
                .contains("20,001 requests of 100 keys; denies 1 request")
                .contains("; may be too high: 1 request began before others that had already been decided");
    }

    @Test
    void aCountThatMayBeTooHighIsMarked() throws IOException {
        Path json = directory.resolve("report.json");
        Files.writeString(log, line("10.0.0.1").repeat(2));
        run("--json", json.toString());
        assertThat(report())
                .contains("Denied in all: 1 request, 50.00 %.")
                .doesNotContain("too high", "at most 1 denied");
        assertThat(Files.readString(json)).contains("\"denied\":[1,1],\"mayBeTooHigh\":[]");

        policy("{ key: ip, rate: 1/1m, max-keys: 1 }");
        Files.writeString(log, line("10.0.0.1") + line("10.0.0.2").repeat(9));
        run("--json", json.toString());
        String shared = "9 requests shared an overflow bucket";
        assertThat(report())
                .contains("denies 8 requests (80.00 %) of 1 key (50.00 %); may be too high: " + shared)
                .contains("Denied in all: 8 requests, 80.00 %; may be too high: " + shared);
        assertThat(Files.readString(json)).contains("\"denied\":[8,8],\"mayBeTooHigh\":[\"" + shared);

        policy("{ key: ip, rate: 1/1m, settle: 'response-header:X-Cost' }");
        Files.writeString(log, line("10.0.0.1").repeat(2));
        run();
        assertThat(report())
                .contains("may be too high: a log has no actual costs (settle), so each request keeps its estimate");

        policy("{ key: ip, rate: 1/1m, refund-on: 5xx }");
        run("--format", "%h %l %u %t \"%r\"");
        assertThat(report())
                .contains("may be too high: 2 requests keep their tokens, since the log lacks their status");
        run();
        assertThat(report()).doesNotContain("too high");
    }

    /** More denied keys than are counted one by one. */
    @Test
    void theCountsOfKeysThatMayBeTooHighAreMarked() throws IOException {
        StringBuilder lines = new StringBuilder();
        for (int key = 0; key < 20_001; key++) {
            lines.append(line("10.0." + key / 256 + "." + key % 256).repeat(2));
        }
        Files.writeString(log, lines);

        run();

        assertThat(report()).contains("at most 2 denied: 10.0.78.32");
    }

    @Test
    void aWrongCommandLineIsExplained() throws IOException {
        assertThat(run()).isEqualTo(ReplayCommand.WRONG_COMMAND_LINE);
        assertThat(errors()).contains("must be a readable file, but was '" + log + "'");
        Files.writeString(log, line("10.0.0.1"));
        assertThat(run("--fail-above", "0.1")).isEqualTo(ReplayCommand.WRONG_COMMAND_LINE);
        assertThat(errors()).contains("--fail-above must be a percentage such as 0.1%, but was '0.1'");
        assertThat(run("--format", "%h %u")).isEqualTo(ReplayCommand.WRONG_COMMAND_LINE);
        assertThat(errors()).contains("a pattern with the time and the request");
        assertThat(run("--touch=100%")).isEqualTo(ReplayCommand.WRONG_COMMAND_LINE);
        assertThat(errors()).contains("--touch must be a share from 0% to 50%, such as 0.1% or 0.001, but was '100%'");
        assertThat(run("--touch", "0.05")).isEqualTo(ReplayCommand.DECIDED);
        assertThat(run("--within=-1")).isEqualTo(ReplayCommand.WRONG_COMMAND_LINE);
        assertThat(errors()).contains("--within must be a time from 1s to 30d, such as 1m, but was '-1'");
        assertThat(run("--html", directory.resolve("none/report.html").toString()))
                .isEqualTo(ReplayCommand.WRONG_COMMAND_LINE);
        assertThat(errors()).contains("--html must be a file that can be written");
        assertThat(run("--frobnicate")).isEqualTo(ReplayCommand.WRONG_COMMAND_LINE);
        Path endpoints = Files.writeString(directory.resolve("endpoints"), "items\n");
        assertThat(run("--endpoints", endpoints.toString())).isEqualTo(ReplayCommand.WRONG_COMMAND_LINE);
        assertThat(errors()).contains("GET /items/{id}", "'items'");
    }

    @Test
    void anUnknownOptionIsExplainedByASimilarOne() throws IOException {
        Files.writeString(log, line("10.0.0.1"));

        assertThat(run("--forma", "json")).isEqualTo(ReplayCommand.WRONG_COMMAND_LINE);
        assertThat(errors()).isEqualTo("Unknown option: '--forma'. Is it --format? '--help' lists the options.\n");
        assertThat(run("--format", "common", "--format=combined", "--format", "auto"))
                .isEqualTo(ReplayCommand.DECIDED);
    }

    @Test
    void helpFitsATerminalAndHasTheDocumentedOptionsAndExitCodes() throws IOException {
        assertThat(run("--help")).isEqualTo(ReplayCommand.DECIDED);
        assertThat(report().lines()).allMatch(line -> line.length() <= 80);
        Pattern.compile("(?m)^\\| `(--[a-z-]+)|^\\| (\\d) \\|")
                .matcher(Files.readString(Path.of("../docs/replay.md")))
                .results()
                .forEach(row -> assertThat(report())
                        .containsPattern(
                                "(?m)^ +(\\S+, )?" + (row.group(1) == null ? row.group(2) : row.group(1)) + "\\b"));
        assertThat(report()).contains("--ratelimit.*", "--spring.*", "Exit codes:");
    }

    @Test
    void aReportThatCannotBeWrittenIsAFailure() throws IOException {
        Files.writeString(log, line("10.0.0.1"));
        assumeTrue(Files.isWritable(Path.of("/dev/full")));

        assertThat(run("--json", "/dev/full")).isEqualTo(ReplayCommand.NOT_DECIDED);
        assertThat(errors()).contains("Can't read or write: ", "No space left on device");
        assertThat(run("--html=/dev/full")).isEqualTo(ReplayCommand.NOT_DECIDED);
        assertThat(errors()).contains("Can't read or write: ", "No space left on device");
    }

    @Test
    void aFullStandardOutputIsAFailure() throws IOException {
        Files.writeString(log, line("10.0.0.1"));
        List<String> decided = List.of(log.toString(), "--config", config.toString());

        assertThat(runWithFullOutput(decided)).isEqualTo(ReplayCommand.NOT_DECIDED);
        assertThat(errors()).contains("Can't write to the standard output");
        assertThat(runWithFullOutput(List.of("--help"))).isEqualTo(ReplayCommand.NOT_DECIDED);
    }

    private int runWithFullOutput(List<String> arguments) {
        PrintStream full = new PrintStream(new BufferedOutputStream(new OutputStream() {
            @Override
            public void write(int value) throws IOException {
                throw new IOException("No space left on device");
            }
        }));
        err.reset();
        return new ReplayCommand(InputStream.nullInputStream(), full, new PrintStream(err, true)).run(arguments);
    }

    /** Neither the code of a wrong command line nor that of too many denied requests, which the JVM uses by default. */
    @Test
    void aFailureDuringTheReplayHasItsOwnCode() {
        for (RuntimeException failure :
                List.of(new IllegalArgumentException("broken"), new IllegalStateException("broken"))) {
            InputStream input = new InputStream() {
                @Override
                public int read() {
                    throw failure;
                }
            };
            err.reset();
            assertThat(new ReplayCommand(input, new PrintStream(out, true), new PrintStream(err, true))
                            .run(List.of("-", "--config", config.toString())))
                    .isEqualTo(ReplayCommand.NOT_DECIDED);
            assertThat(errors()).contains("The replay failed: ", "broken");
        }
    }

    @Test
    void namesWhatALogLacksForEachPolicy() throws IOException {
        Files.writeString(config, """
                ratelimit:
                  policies:
                    per-user: { key: user, rate: 1/1m }
                    per-endpoint: { key: endpoint, rate: 1/1m }
                    per-key: { key: "header:X-Api-Key", rate: 1/1m, paths: /none }
                    session: { key: session, rate: 1/1m }
                    admins: { rate: 1/1m, condition: "path == '/items' && roles.contains('ADMIN')" }
                    tenants: { key: "claim:tenant", rate: 1/1m }
                    account: { key: "bean:account", rate: 1/1m }
                    plans: { key: ip, rate: 1/1m, limit: "bean:plans" }
                    sized: { rate: 1/1m, cost: "contentLength / 1024" }
                    cookie: { key: "cookie:device", rate: 1/1m }
                    called: { rate: 1/1m, applies-to: annotated }
                    stopped: { rate: 1/1m, mode: "off" }
                    slots: { key: ip, in-flight: 2 }
                    tiered: { key: ip, in-flight: 2, tier: "header:X-Tier", tiers: { free: { rate: 1/1m } } }
                    both: { key: ip, rate: 9/1m, in-flight: 2 }
                    held: { rate: 1/1m, condition: "method == 'POST' || header('X-Plan') == 'free'" }
                """);
        String post = line("10.0.0.1").replace("GET", "POST");
        Files.writeString(log, line("10.0.0.1") + post);

        assertThat(run()).isEqualTo(ReplayCommand.DECIDED);

        assertThat(report())
                .contains("per-user: not decided, the log lacks user (2 requests)")
                .contains("per-endpoint: not decided, the log lacks endpoints (--endpoints) (2 requests)")
                .contains("session: not decided, the log lacks session")
                .contains("account: not decided, the log lacks bean account")
                .contains("plans: not decided, the log lacks bean plans")
                .contains("sized: not decided, the log lacks header Content-Length")
                .contains("cookie: not decided, the log lacks cookies")
                .contains("called: not decided, limits calls of methods")
                .contains("stopped: not decided, is off")
                .contains("slots: not decided, limits requests in flight, which a log doesn't show reliably")
                .contains("tiered: not decided, has a rate only in its tiers, overrides or bean")
                .contains("1 policy also limits requests in flight")
                .contains("held: one bucket, rate: 1/1m, capacity: 1\n  asked by 1 request; denies 0 requests (0 %)\n"
                        + "  not decided: 1 request, the log lacks header X-Plan (1 request)")
                .contains("per-key: key header:x-api-key");
        Files.writeString(log, line("10.0.0.1").replace("- - ", "- alice "));
        run();
        assertThat(report())
                .contains("admins: not decided, the log lacks roles (1 request)")
                .contains("tenants: not decided, the log lacks claims (1 request)")
                .contains("per-user: key user");
    }

    @Test
    void aRequestWithoutAnAddressIsNotDecidedByItsAddress() throws IOException {
        Files.writeString(config, Files.readString(config) + "    all: { rate: 9/1m }\n");
        Files.writeString(log, line("-") + line("10.0.0.1"));

        assertThat(run()).isEqualTo(ReplayCommand.DECIDED);
        assertThat(report())
                .contains("asked by 1 request of 1 key")
                .contains("not decided: 1 request, the log lacks ip (1 request)")
                .contains("asked by 2 requests; denies 0 requests");
    }

    @Test
    void aRequestWaitsForItsTokensAndKeepsAPlaceInTheQueue() throws IOException {
        policy("{ rate: 1/10s, max-wait: 25s, queue-limit: 1 }");
        Files.writeString(
                log,
                line("10.0.0.1", "22/Nov/2026:10:00:00 +0000").repeat(3)
                        + line("10.0.0.1", "22/Nov/2026:10:00:11 +0000").repeat(2));

        run();

        assertThat(report()).contains("asked by 5 requests; denies 2 requests").contains("queue full: 2 requests");
    }

    @Test
    void refundsComeWhenALoggedRequestEnds() throws IOException {
        policy("{ key: ip, rate: 1/1h, refund-on: [5xx] }");
        Files.writeString(log, """
                {"time":"2026-11-22T10:00:05.000Z","ip":"10.0.0.1","request":"GET / HTTP/1.1","status":500,"request_time":5}
                {"time":"2026-11-22T10:00:04.500Z","ip":"10.0.0.1","request":"GET / HTTP/1.1","status":200,"request_time":0.1}
                {"time":"2026-11-22T10:00:06.000Z","ip":"10.0.0.1","request":"GET / HTTP/1.1","status":200,"request_time":0.1}
                """);

        run();

        assertThat(report()).contains("denies 1 request");
        run("--stamps", "start");
        assertThat(report()).contains("denies 2 requests");
    }

    /** Servers log the name that a client tried. */
    @Test
    void aNameWithAWrongPasswordIsNoUser() throws IOException {
        policy("{ key: ip, rate: 1/1h, phase: before-authentication, refund-on: authenticated }");
        String line = line("10.0.0.1").replace("- -", "- bob");
        Files.writeString(log, line + line.replace(" 200 ", " 401 ").repeat(10));

        run("--authentication");

        assertThat(report()).contains("denies 9 requests");
    }

    /** The lines are those of Tomcat's own valve. */
    @Test
    void jsonLinesOfTomcatNeedNoNames() throws Exception {
        policy("{ key: [ip, 'header:X-Plan', 'cookie:device'], rate: 1/1h }");
        Tomcat tomcat = tomcat("%h %u %t \"%r\" %s %T %{X-Plan}i %{device}c");
        try {
            URI uri = URI.create("http://127.0.0.1:" + tomcat.getConnector().getLocalPort() + "/items");
            for (String device : List.of("a", "a", "b")) {
                HttpRequest request = HttpRequest.newBuilder(uri)
                        .headers("X-Plan", "pro", "Cookie", "device=" + device)
                        .build();
                HttpClient.newHttpClient().send(request, BodyHandlers.discarding());
            }
            HttpClient.newHttpClient().send(HttpRequest.newBuilder(uri).build(), BodyHandlers.discarding());
        } finally {
            tomcat.stop();
            tomcat.destroy();
        }

        assertThat(run()).isEqualTo(ReplayCommand.DECIDED);

        assertThat(report()).contains("asked by 4 requests of 3 keys; denies 1 request");
        policy("{ key: 'header:X-Tenant', rate: 1/1h }");
        run();
        assertThat(report()).contains("not decided, the log lacks header X-Tenant");
    }

    private Tomcat tomcat(String pattern) throws LifecycleException {
        JsonAccessLogValve valve = new JsonAccessLogValve();
        valve.setDirectory(directory.toString());
        valve.setPrefix("access");
        valve.setSuffix(".log");
        valve.setRotatable(false);
        valve.setPattern(pattern);
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(directory.toString());
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        tomcat.getEngine().getPipeline().addValve(valve);
        tomcat.addContext("", null);
        tomcat.start();
        return tomcat;
    }

    @Test
    void theNameOfTheServerIsNoClient() throws IOException {
        Files.writeString(log, """
                {"time":"2026-11-22T10:00:00Z","host":"shop.example:8443","request":"GET / HTTP/1.1","status":200}
                """);

        run();

        assertThat(report()).contains("not decided, the log lacks ip");
    }

    @Test
    void aGzipFileIsReadWhateverItsName() throws IOException {
        try (GZIPOutputStream zipped = new GZIPOutputStream(Files.newOutputStream(log))) {
            zipped.write(line("10.0.0.1").getBytes(StandardCharsets.UTF_8));
        }

        assertThat(run()).isEqualTo(ReplayCommand.DECIDED);
        assertThat(report()).contains("1 line, 1 request");
    }

    /** As that of {@code cat a.gz b.gz} from a network, which has nothing to read for a moment. */
    @Test
    void aPipeMayPauseBetweenTwoGzipFiles() throws IOException {
        ByteArrayOutputStream member = new ByteArrayOutputStream();
        try (GZIPOutputStream zipped = new GZIPOutputStream(member)) {
            zipped.write(line("10.0.0.1").getBytes(StandardCharsets.UTF_8));
        }
        Iterator<byte[]> members =
                List.of(member.toByteArray(), member.toByteArray()).iterator();
        InputStream pipe = new InputStream() {
            @Override
            public int read() {
                throw new UnsupportedOperationException();
            }

            @Override
            public int read(byte[] bytes, int offset, int length) {
                byte[] next = members.hasNext() ? members.next() : new byte[0];
                System.arraycopy(next, 0, bytes, offset, next.length);
                return next.length == 0 ? -1 : next.length;
            }
        };

        assertThat(run(pipe, "-")).isEqualTo(ReplayCommand.DECIDED);
        assertThat(report()).contains("2 lines, 2 requests");
    }

    @Test
    void credentialsThatCaddyDoesNotLogAreUnknown() throws IOException {
        policy("{ key: 'header:Authorization', rate: 1/1h }");
        String caddy =
                "{\"ts\":1763805600.5,\"request\":{\"client_ip\":\"10.0.0.1\",\"method\":\"GET\",\"uri\":\"/\",\"headers\":"
                        + "{\"Authorization\":%s,\"X-Plan\":[\"pro\"]}},\"status\":200}\n";
        Files.writeString(log, caddy.formatted("[\"REDACTED\"]") + caddy.formatted("[]"));

        run();

        assertThat(report()).contains("not decided, the log lacks header Authorization (2 requests)");
    }

    @Test
    void theProgressBarShowsTheRateAndTheTimeThatIsLeft() {
        assertThat(ReplayCommand.Progress.bar(0.5, 2_000_000, 4))
                .startsWith("[###############...............]  50 %, 2,000,000 lines, 500,000 a second, 4 s left");
        assertThat(ReplayCommand.Progress.bar(-1, 1000, 2)).startsWith("1,000 lines, 500 a second");
    }
}
