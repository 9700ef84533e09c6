package io.ratelimit.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Instant;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Reads lines as servers write them. */
class LogFormatTests {

    private static LogEntry read(String format, String line, Map<String, String> fields) {
        LogEntry entry = LogFormat.of(format, fields, new Stamps()).read(line);
        assertThat(entry).as(line).isNotNull();
        entry.startAt(entry.offsetSeconds == null ? 0 : entry.offsetSeconds);
        return entry;
    }

    private static LogEntry read(String format, String line) {
        return read(format, line, Map.of());
    }

    private static Instant start(LogEntry entry) {
        return Instant.EPOCH.plusNanos(entry.startNanos);
    }

    @Test
    void aCombinedLineHasItsFacts() {
        LogEntry entry = read(
                "combined",
                "2001:db8::1 - alice smith [22/Nov/2026:10:00:01 +0130] \"POST /a%20b?x=1&y=2 HTTP/2.0\" 404 12"
                        + " \"https://a/\\\"b\" \"curl \\x22\\xC3\\xA4\" extra");

        assertThat(entry.host).isEqualTo("2001:db8::1");
        assertThat(entry.user).isEqualTo("alice smith");
        assertThat(start(entry)).isEqualTo("2026-11-22T08:30:01Z");
        assertThat(entry.wholeSeconds).isTrue();
        assertThat(entry.method).isEqualTo("POST");
        assertThat(entry.path).isEqualTo("/a%20b");
        assertThat(entry.query).isEqualTo("x=1&y=2");
        assertThat(entry.status).isEqualTo(404);
        assertThat(entry.header("Referer")).isEqualTo("https://a/\"b");
        assertThat(entry.header("user-agent")).isEqualTo("curl \"\u00e4");
        assertThat(entry.logsHeader("X-Other")).isFalse();
    }

    @Test
    void aPatternOfTomcatHasHeadersCookiesSessionAndDuration() {
        LogEntry entry = read(
                "%{begin:yyyy-MM-dd'T'HH:mm:ss.SSSXXX}t|%a|%m %U%q|%s|%D|%S|%{X-Api-Key}i|%{device}c|%I",
                "2026-11-22T10:00:00.250+01:00|10.0.0.1|GET /items?page=2|200|1500|5F2|-|abc|http-nio-1");

        assertThat(start(entry)).isEqualTo("2026-11-22T09:00:00.250Z");
        assertThat(entry.wholeSeconds).isFalse();
        assertThat(entry.path + " " + entry.query).isEqualTo("/items page=2");
        assertThat(entry.durationNanos).isEqualTo(1_500_000);
        assertThat(entry.session).isEqualTo("5F2");
        assertThat(entry.logsHeader("x-api-key")).isTrue();
        assertThat(entry.header("X-Api-Key")).isNull();
        assertThat(entry.cookies).containsExactly("device");
        assertThat(entry.cookieValues).containsExactly("abc");
    }

    @Test
    void aStampThatBeginsARequestIsKnownAsSuch() {
        assertThat(LogFormat.of("%{begin:msec}t %r", Map.of(), new Stamps()).stampsEnd())
                .isFalse();
        assertThat(LogFormat.of("%{end:msec}t %r", Map.of(), new Stamps()).stampsEnd())
                .isTrue();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "%h %t \"%r\" %>s %{ms}T     | a [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 250      | 250000000",
                "%h %t \"%r\" %>s %{us}T     | a [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 250      | 250000",
                "%h %t \"%r\" %>s %T         | a [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 0.25     | 250000000",
                "%h %t \"%r\" %s %b %D       | a [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 - 250    | 250000",
                "$remote_addr [$time_local] \"$request\" $status $request_time | a [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 0.250 | 250000000",
                "json | {\"@timestamp\":\"2026-11-22T10:00:00Z\",\"url\":{\"path\":\"/\"},\"event\":{\"duration\":250}} | 250",
                "$remote_addr $msec \"$request\" ${status}x $request_time | a 1764000000.5 \"GET / HTTP/1.1\" 200x - | -1"
            })
    void durationsHaveTheUnitOfTheirField(String format, String line, long nanos) {
        assertThat(read(format, line).durationNanos).isEqualTo(nanos);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"time_iso8601\":\"2026-11-22T10:00:00+00:00\",\"remote_addr\":\"10.0.0.1\",\"remote_user\":\"\","
                        + "\"request\":\"GET /items?a=1 HTTP/1.1\",\"status\":\"200\",\"http_x_plan\":\"pro\"}",
                "{\"time\":\"[22/Nov/2026:10:00:00 +0000]\",\"host\":\"a\",\"remoteAddr\":\"10.0.0.1\",\"method\":\"GET\",\"path\":"
                        + "\"/items\",\"query\":\"?a=1\",\"statusCode\":\"200\",\"headers\":{\"x-plan\":\"pro\"}}",
                "{\"level\":\"info\",\"ts\":1795341600.0,\"request\":{\"remote_ip\":\"10.0.0.1\",\"method\":\"GET\","
                        + "\"uri\":\"/items?a=1\",\"headers\":{\"X-Plan\":[\"pro\",\"free\",[{}]]}},\"status\":200}",
                "{\"ClientHost\":\"10.0.0.1\",\"RequestMethod\":\"GET\",\"RequestPath\":\"/items?a=1\",\"DownstreamStatus\":200,"
                        + "\"StartUTC\":\"2026-11-22T10:00:00Z\",\"headers\":{\"X-Plan\":\"pro\"},\"more\":[1,{\"status\":1}]}",
                " {\"@timestamp\":\"2026-11-22T10:00:00.000Z\",\"source\":{\"ip\":\"10.0.0.1\"},\"http\":{\"request\":{"
                        + "\"method\":\"GET\"},\"response\":{\"status_code\":200}},\"url\":{\"path\":\"/items\",\"query\":\"a=1\"},"
                        + "\"headers\":{\"X-Plan\":\"pro\"}}"
            })
    void jsonOfUsualServersNeedsNoNames(String line) {
        LogEntry entry = read("json", line);

        assertThat(start(entry)).isEqualTo("2026-11-22T10:00:00Z");
        assertThat(entry.host).isEqualTo("10.0.0.1");
        assertThat(entry.user).isNull();
        assertThat(entry.method + " " + entry.path + "?" + entry.query).isEqualTo("GET /items?a=1");
        assertThat(entry.status).isEqualTo(200);
        assertThat(entry.header("x-plan")).isEqualTo("pro");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "'ts':1795341600.9,'@timestamp':'2026-11-22T10:00:00.9Z'        | 2026-11-22T10:00:00.900Z",
                "'StartUTC':'2026-11-22T10:00:00.9Z','time':'2026-11-22T10:00:00Z' | 2026-11-22T10:00:00Z",
                "'ts':1795341600.9,'time':'22/Nov/2026:10:00:00 +0000'          | 2026-11-22T10:00:00Z",
            })
    void ofTwoTimesOneCounts(String times, String start) {
        LogEntry entry = read("json", "{" + times.replace('\'', '"') + ",\"uri\":\"/items\",\"method\":\"GET\"}");

        assertThat(start(entry)).isEqualTo(start);
    }

    @ParameterizedTest
    @CsvSource({"ss.SSS, 00.000, false", "ss, 00, true"})
    void theFormatOfATimeContainsFractionsOrNot(String seconds, String written, boolean whole) {
        LogEntry entry =
                read("%{yyyy-MM-dd'T'HH:mm:" + seconds + "}t %r", "2026-11-22T10:00:" + written + " GET / HTTP/1.1");

        assertThat(entry.wholeSeconds).isEqualTo(whole);
    }

    @Test
    void jsonWithOtherNamesIsReadByThem() {
        LogEntry entry = read(
                "json",
                "{\"when\":1795341600123,\"to\":{\"uri\":\"/items\"},\"verb\":\"PUT\",\"took\":12,\"time\":\"noon\"}",
                Map.of("time", "when", "uri", "to.uri", "method", "verb", "duration", "took:ms"));

        assertThat(start(entry)).isEqualTo("2026-11-22T10:00:00.123Z");
        assertThat(entry.method + entry.path).isEqualTo("PUT/items");
        assertThat(entry.durationNanos).isEqualTo(12_000_000);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "a - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" two 1",
                "a - - [31/Feb/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 1",
                "a - - [22/Nov/2026:25:00:00 +0000] \"GET / HTTP/1.1\" 200 1",
                "a - - [22/Nox/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 1",
                "a - - [22/Nov/2026:10:00:00 +9900] \"GET / HTTP/1.1\" 200 1",
                "a - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1",
                "a - - [22/Nov/2026] \"GET / HTTP/1.1\" 200 1",
                "{\"time\":\"2026-11-22T10:00:00Z\"",
                "{\"time\":\"2026-11-22T10:00:00Z\",\"status\":200}",
                "{} {}",
                "a - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 20 1",
                "a - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 0.2 1",
                "a - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 2000 1"
            })
    void otherLinesAreNotRead(String line) {
        assertThat(LogFormat.of("common", Map.of(), new Stamps()).read(line)).isNull();
        assertThat(LogFormat.of("json", Map.of(), new Stamps()).read(line)).isNull();
    }

    /** Caddy and nginx log such a status if the client went away before the answer, and nginx of HTTP/0.9. */
    @ParameterizedTest
    @CsvSource({"000, 0", "0, 0", "009, 0", "-, 0", "100, 100", "599, 599"})
    void aRequestWithoutAnAnswerIsRead(String written, int status) {
        LogEntry entry = read("common", "a - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" " + written + " 1");

        assertThat(entry.status).isEqualTo(status);
        assertThat(entry.path).isEqualTo("/");
    }

    @ParameterizedTest
    @ValueSource(strings = {"-", "\\x16\\x03\\x01", "GET"})
    void aConnectionWithoutARequestIsReadAsSuch(String request) {
        LogEntry entry = read("common", "a - - [22/Nov/2026:10:00:00 +0000] \"" + request + "\" 400 1");

        assertThat(entry.hasRequest()).isFalse();
    }

    @ParameterizedTest
    @CsvSource({"http://example.com/items?a, /items", "http://example.com, /", "*, *", "/a//b/../c, /a//b/../c"})
    void aRequestLineMayHaveAnAbsoluteUri(String uri, String path) {
        LogEntry entry = read("common", "a - - [22/Nov/2026:10:00:00 +0000] \"GET " + uri + " HTTP/1.1\" 400 1");

        assertThat(entry.path).isEqualTo(path);
    }

    @Test
    void aFormatWithoutTimeOrRequestIsRejected() {
        assertThatThrownBy(() -> LogFormat.of("%h %t", Map.of(), new Stamps()))
                .hasMessageContaining("a pattern with the time and the request");
        assertThatThrownBy(() -> LogFormat.of("json", Map.of("colour", "x"), new Stamps()))
                .hasMessageContaining("--field must begin with time");
        assertThatThrownBy(() -> LogFormat.of("%{bcd}t %r", Map.of(), new Stamps()))
                .hasMessageContaining("'%{bcd}t', which can't be read");
    }
}
