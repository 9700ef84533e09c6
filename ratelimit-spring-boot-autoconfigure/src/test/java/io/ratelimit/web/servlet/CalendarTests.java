package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Quotas of days, weeks and months. */
class CalendarTests {

    private static final String YAML = """
            ratelimit:
              policies:
                month: { key: ip, rate: 3/month, refill: calendar, zone: Europe/Berlin, paths: /month }
                week: { key: ip, rate: 2/week, refill: calendar, paths: /week }
                autumn: { key: ip, rate: 2/day, refill: calendar, zone: Europe/Berlin, paths: /autumn }
                gap: { key: ip, rate: 2/day, refill: calendar, zone: America/Sao_Paulo, paths: /gap }
                twice: { key: ip, rate: 2/day, refill: calendar, zone: America/Havana, paths: /twice }
                day:
                  key: ip
                  rate: 2/day
                  capacity: 4
                  refill: calendar
                  zone: America/New_York
                  overrides: [{ keys: [127.0.0.9], rate: 3/day }]
                  paths: /day
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    private static RawHttp.Response drained(String path) {
        RawHttp.Response response = server.http().get(path);
        while (response.status() == 200) {
            response = server.http().get(path);
        }
        return response;
    }

    private static void setClock(String now) {
        server.bean(ManualTimeSource.class).setWallClock(Instant.parse(now));
    }

    @Test
    void headersAndRetryTimeAreTheTrueMoment() {
        setClock("2026-03-31T12:00:00Z");
        assertThat(server.http().get("/month").header("RateLimit")).isEqualTo("\"month\";r=2;t=36000");

        RawHttp.Response rejected = drained("/month");

        assertThat(rejected.header("RateLimit")).isEqualTo("\"month\";r=0;t=36000");
        assertThat(rejected.header("RateLimit-Policy")).isEqualTo("\"month\";q=3;w=2629746");
        assertThat(rejected.header("Retry-After")).isEqualTo("36000");
        server.advance(Duration.ofHours(10).minusMillis(1));
        assertThat(server.http().get("/month").status()).isEqualTo(429);
        server.advance(Duration.ofMillis(1));
        assertThat(server.http().get("/month").header("RateLimit")).startsWith("\"month\";r=2;");
    }

    @Test
    void aWeekBeginsOnMondayAndADayAtMidnightOfItsZone() {
        setClock("2026-03-06T22:00:00Z");
        assertThat(drained("/week").header("Retry-After")).isEqualTo("" + 50 * 3600);

        setClock("2026-03-07T22:00:00Z");
        assertThat(drained("/day").header("Retry-After")).isEqualTo("" + 7 * 3600);
        server.advance(Duration.ofHours(7));
        assertThat(drained("/day").header("Retry-After"))
                .as("a day of 23 hours")
                .isEqualTo("" + 23 * 3600);
        for (int i = 0; i < 3; i++) {
            assertThat(server.http().from("127.0.0.9").get("/day").status()).isEqualTo(200);
        }
        assertThat(server.http().from("127.0.0.9").get("/day").header("Retry-After"))
                .isEqualTo("" + 23 * 3600);
    }

    /** A day of 25 hours, a midnight that doesn't exist, and one that comes twice. */
    @ParameterizedTest
    @CsvSource({
        "/gap, 2018-11-03T12:00:00Z, 2018-11-04T03:00:00Z, 2018-11-05T02:00:00Z",
        "/autumn, 2026-10-24T12:00:00Z, 2026-10-24T22:00:00Z, 2026-10-25T23:00:00Z",
        "/twice, 2026-10-31T12:00:00Z, 2026-11-01T04:00:00Z, 2026-11-02T05:00:00Z"
    })
    void aDayBeginsAtItsFirstMomentOverAChangeOfTheClock(String path, Instant now, Instant begin, Instant end) {
        setClock(now.toString());
        RawHttp.Response rejected = drained(path);
        assertThat(rejected.header("Retry-After")).isEqualTo(seconds(now, begin));
        assertThat(rejected.header("RateLimit")).isEqualTo("\"%s\";r=0;t=%s", path.substring(1), seconds(now, begin));

        server.advance(Duration.between(now, begin).minusMillis(1));
        assertThat(server.http().get(path).status()).isEqualTo(429);
        server.advance(Duration.ofMillis(1));
        assertThat(server.http().get(path).header("RateLimit"))
                .isEqualTo("\"%s\";r=1;t=%s", path.substring(1), seconds(begin, end));
        assertThat(drained(path).header("Retry-After")).isEqualTo(seconds(begin, end));
        server.advance(Duration.between(begin, end));
        assertThat(server.http().get(path).status()).isEqualTo(200);
    }

    private static String seconds(Instant from, Instant to) {
        return Long.toString(Duration.between(from, to).toSeconds());
    }

    @RestController
    static class Api {

        @GetMapping({"/month", "/week", "/day", "/gap", "/autumn", "/twice"})
        String answer() {
            return "done";
        }
    }
}
