package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp.Response;
import java.math.BigDecimal;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.format.annotation.NumberFormat;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Compares the number that a controller gets with the number that the request was charged, for unusual spellings. */
class NumberAttackTests {

    private static final String YAML = """
            ratelimit:
              policies:
                rows: { key: ip, rate: 1000000/365d, cost: query('rows'), exclude-paths: /bound/** }
                capped: { key: ip, rate: 1000000/365d, cost: query('rows'), max-cost: 70, paths: /bound/** }
                large: { key: ip, rate: 1000/365d, condition: "number(query('rows')) >= 100" }
                called: { rate: 1000000/365d, applies-to: annotated }
            logging.level.org.springframework.web.servlet: ERROR
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    private static final String Z = "0".repeat(41);
    private static final List<String> SPELLINGS = List.of(
            "100 +100 -100 0100 0x64 0X64 #64 -0x64 +0x64 0x-64 #-64 1_00 1,000 1'000 1e2 1E+2 10000e-2 .1e3 1.e2",
            "1e\u0662 \u0661e\u0662 1e99999999 1e2147483648 0e99999999999 NaN Infinity -Infinity \u221e 100d 100F 100L",
            "0x1p7 0x1.9p6 0x.64p8 0x64P0d 0x1p999999999 100.9 100% 1\u00b2 \u216c \uff11\uff10\uff10 \u0661\u0660\u0660",
            "\ud835\udfcf\ud835\udfce\ud835\udfce \u2212100 \uff0b100 0x\uff16\uff14 \uff0364 \u200b100 \ufeff100 100\u00a0",
            "\u3000100 \u0000100 100\u0000 \u001f100 \u007f100 1\t0\r0 0_x64 #_64 -_100 1_e_2 0x1_p7 1_0_0_d I_nfinity",
            Z + "100 +" + Z + "100 0x" + Z + "64 #" + Z + "64 1e" + Z + "2 0." + Z + "1e44 " + "9".repeat(2000),
            "\u0660".repeat(41) + "100 " + "0".repeat(2000) + "100 1" + "0".repeat(2000) + "e-1998 " + "_".repeat(500)
                    + "100",
            "9223372036854775807 9223372036854775808 2147483647 0x7fffffff 4294967396 100, ,100 100;1 [100] 100/1 '100'");

    private static final String QUERIES =
            "rows=1&rows=100 rows=100&rows=1 rows=&rows=100 rows&rows=100 rows=%zz&rows=100 rows=%ff&rows=100"
                    + " rows[]=100 rows%5b%5d=100 rows=1&rows[]=100 %72ows=%31%30%30 rows%00=100 +rows=100 ROWS=100 _rows=1&!rows=100"
                    + " =5&rows=100 rows=1%2600 a=b;rows=100 rows=%C0%B1%C0%B0%C0%B0 rows=%u0031%u0030%u0030 x=%zz&rows=100 "
                    + "a=1&".repeat(999) + "rows=100 rows=1&" + "a=1&".repeat(1000) + "rows=100";

    @Test
    void noSpellingIsCheaperThanTheNumberOfTheController() {
        List<String> queries = new ArrayList<>(List.of(QUERIES.split(" ")));
        for (String line : SPELLINGS) {
            for (String text : line.split(" ")) {
                queries.add("rows=" + URLEncoder.encode(text.replace('_', ' '), StandardCharsets.UTF_8));
            }
        }
        List<String> cheaper = new ArrayList<>();
        int answers = 0;
        for (String type : List.of("long", "double", "decimal")) {
            for (String query : queries) {
                Response response = get("/" + type + "?" + query);
                BigDecimal value = response.status() == 200 ? number(response.body()) : BigDecimal.ZERO;
                answers += value.signum();
                boolean isCheaper = value.compareTo(BigDecimal.valueOf(taken("rows"))) > 0
                        || value.compareTo(BigDecimal.valueOf(100)) >= 0
                                && server.available("large", "127.0.0.1") == 1000;
                if (isCheaper) {
                    cheaper.add(type + " " + query.substring(0, Math.min(query.length(), 60)) + " is " + value);
                }
            }
        }
        assertThat(cheaper).isEmpty();
        assertThat(answers).as("numbers that reached a controller").isGreaterThan(50);
    }

    /** Binding knows more than the query string: the annotation charges the number that was bound. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "GET     | /bound/array?rows=1000,1 |     | 1000 | 70",
                "GET     | /bound/format?rows=1,000 |     | 1000 | 70",
                "GET     | /bound/long?rows=1       | 500 | 500  | 70",
                "DELETE  | /bound/long              | 500 | 500  | 70",
                "QUERY   | /bound/long              | 500 | 500  | 70",
                "POST    | /bound/long?rows=1       | 500 | 500  | 1",
            })
    void aNumberThatTheQueryDoesNotShowIsChargedByTheAnnotation(
            String method, String target, String field, String rows, long capped) {
        String form = field == null
                ? ""
                : "--b\r\nContent-Disposition: form-data; name=\"rows\"\r\n\r\n" + field + "\r\n--b--\r\n";
        reset();
        Response response = server.http()
                .send(method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + form.length()
                        + (field == null ? "" : "\r\nContent-Type: Multipart/form-data; boundary=b") + "\r\n\r\n"
                        + form);
        assertThat(response.status()).isEqualTo(200);
        assertThat(response.body()).isEqualTo(rows);
        assertThat(server.available("called")).isEqualTo(1_000_000 - Long.parseLong(rows));
        assertThat(taken("capped")).isEqualTo(capped);
        assertThat(server.available("large", "127.0.0.1"))
                .as("condition")
                .isEqualTo(field != null && capped == 70 ? 999 : 1000);
    }

    private static Response get(String target) {
        reset();
        return server.http().get(target);
    }

    private static void reset() {
        Throttlers throttlers = server.bean(Throttlers.class);
        List.of("rows", "capped", "large").forEach(policy -> throttlers.reset(policy, "127.0.0.1"));
        throttlers.reset("called");
    }

    private static BigDecimal number(String body) {
        return body.matches("-?[0-9.E-]+") ? new BigDecimal(body) : BigDecimal.ZERO;
    }

    private static long taken(String policy) {
        return 1_000_000 - server.available(policy, "127.0.0.1");
    }

    @RestController
    static class Api {

        @RequestMapping("/long")
        String number(@RequestParam long rows) {
            return "" + rows;
        }

        @RequestMapping("/double")
        String number(@RequestParam double rows) {
            return "" + rows;
        }

        @RequestMapping("/decimal")
        String number(@RequestParam BigDecimal rows) {
            return "" + rows;
        }

        @RequestMapping("/bound/long")
        @RateLimited(policy = "called", cost = "#rows")
        public String called(@RequestParam long rows) {
            return "" + rows;
        }

        @RequestMapping("/bound/array")
        @RateLimited(policy = "called", cost = "#rows[0]")
        public String called(@RequestParam Integer[] rows) {
            return "" + rows[0];
        }

        @RequestMapping("/bound/format")
        @RateLimited(policy = "called", cost = "#rows")
        public String formatted(@RequestParam @NumberFormat(pattern = "#,##0") int rows) {
            return "" + rows;
        }
    }
}
