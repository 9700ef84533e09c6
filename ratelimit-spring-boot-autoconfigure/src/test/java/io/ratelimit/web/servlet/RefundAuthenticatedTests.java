package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.ServletException;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.ResponseEntity;
import org.springframework.security.authentication.AuthenticationManager;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.AuthenticationException;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.core.context.SecurityContextImpl;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** {@code refund-on: authenticated}: the tokens of authenticated requests are given back, and no others. */
@Tag("slow")
class RefundAuthenticatedTests {

    private static final String YAML = """
            ratelimit:
              policies:
                logins: { key: ip, rate: 100/1h, phase: before-authentication, refund-on: authenticated }
                late: { key: endpoint, rate: 100/1h, phase: after-authentication, refund-on: authenticated }
                narrow: { key: user, rate: 1/1h, paths: /basic/narrow }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, AuthenticationChains.class, Api.class);

    private static final String FORM = "Content-Type: application/x-www-form-urlencoded";

    private final RawHttp http = server.http();

    @ParameterizedTest
    @CsvSource({
        "/basic/hello, 200",
        "/basic/nowhere, 404",
        "/basic/exception, 500",
        "/basic/admin, 403",
        "/basic/async, 200",
        "/remembered/hello, 200",
    })
    void aRightPasswordCostsNothingWithAnyStatus(String path, int status) {
        assertThat(http.get(path, basic("alice")).status()).isEqualTo(status);
        assertReturned();
    }

    @ParameterizedTest
    @ValueSource(strings = {"/basic/hello", "/basic/nowhere", "/basic/admin", "/remembered/hello"})
    void aWrongPasswordCosts(String path) {
        assertThat(http.get(path, basic("alice", "guess")).status()).isEqualTo(401);
        assertKept();
    }

    @ParameterizedTest
    @ValueSource(strings = {"/form", "/stored", "/forwarded"})
    void aFormLoginIsAnsweredBeforeTheSecondFilterAndCostsNothing(String chain) {
        Response login = login(chain, "alice", "alice");
        assertThat(login.status()).isEqualTo(302);
        assertThat(login.header("Location")).doesNotContain("error");
        assertReturned();
    }

    @ParameterizedTest
    @CsvSource({"/form, 302", "/stored, 302", "/forwarded, 200"})
    void aFailedFormLoginCosts(String chain, int status) {
        assertThat(login(chain, "alice", "guess").status()).isEqualTo(status);
        assertKept();
    }

    @ParameterizedTest
    @ValueSource(strings = {"/bearer/hello", "/own/hello"})
    void aTokenCostsNothingIfItIsRight(String path) {
        assertThat(http.get(path, "Authorization: Bearer alice").status()).isEqualTo(200);
        assertReturned();
        assertThat(http.get(path, "Authorization: Bearer guess").status()).isEqualTo(401);
        assertKept();
    }

    @Test
    void aRequestWithoutCredentialsCosts() {
        assertThat(http.get("/basic/hello").status()).isEqualTo(401);
        assertKept();
    }

    @Test
    void theAnonymousUserIsNotAuthenticated() {
        assertThat(http.get("/form/open").status()).isEqualTo(200);
        assertKept();
        assertThat(server.available("late", "GET /*/open")).isEqualTo(99);
    }

    @Test
    void aPolicyAfterAuthenticationGivesTokensBack() {
        assertThat(http.get("/basic/hello", basic("alice")).status()).isEqualTo(200);
        assertThat(server.available("late", "GET /*/hello")).isEqualTo(100);
    }

    @Test
    void aRequestThatALaterPolicyRejectsCountsAsAuthenticated() {
        assertThat(http.get("/basic/narrow", basic("alice")).status()).isEqualTo(200);
        assertThat(http.get("/basic/narrow", basic("alice")).status()).isEqualTo(429);
        assertReturned();
    }

    static Stream<Arguments> guesses() {
        return Stream.of(
                        "X-Requested-With: \u0080",
                        "X-Requested-With: XMLHttpRequest",
                        "Accept: \u0080",
                        "Accept: image/png",
                        "Accept: a/b/c",
                        "Content-Type: \u0085",
                        "Origin: https://elsewhere.example",
                        "Range: bytes=9-1",
                        "If-Match: never",
                        "Accept-Language: \u009f",
                        "Cookie: JSESSIONID=\u0080",
                        "Referer: \u0080",
                        "X-HTTP-Method-Override: TRACE",
                        "Upgrade: websocket",
                        "Access-Control-Request-Method: GET")
                .flatMap(header -> Stream.of("GET", "HEAD", "POST", "OPTIONS", "TRACK", "MOVE")
                        .map(method -> Arguments.of(method, header)));
    }

    @ParameterizedTest
    @MethodSource("guesses")
    void noStatusThatAClientProvokesReturnsAGuess(String method, String header) {
        for (String path : new String[] {"/basic/hello", "/bearer/hello", "/own/hello", "/remembered/hello"}) {
            server.refill();
            boolean token = path.startsWith("/bearer") || path.startsWith("/own");
            send(method, path, token ? "Authorization: Bearer guess" : basic("alice", "guess"), header);
            assertKept();
        }
        for (String chain : new String[] {"/form", "/stored", "/forwarded"}) {
            server.refill();
            send(method, chain + "/login?username=alice&password=guess", FORM, header);
            assertKept();
        }
    }

    /** A bypass of refunds by status: the firewall answers 400 when the entry point reads the header. */
    @Test
    void theFirewallsAnswerToAWrongPasswordIsNoSuccess() {
        for (int i = 0; i < 100; i++) {
            assertThat(send("GET", "/basic/hello", basic("alice", "guess" + i), "X-Requested-With: \u0080"))
                    .isEqualTo(400);
        }
        assertThat(send("GET", "/basic/hello", basic("alice", "guess"), "X-Requested-With: \u0080"))
                .isEqualTo(429);
    }

    @Test
    void aSessionThatIsAuthenticatedCounts() {
        String session = session(login("/form", "alice", "alice"));
        assertThat(http.get("/form/hello", session).status()).isEqualTo(200);
        assertReturned();
        assertThat(http.get("/form/admin", session).status()).isEqualTo(403);
        assertReturned();
    }

    /** A client with its own account must not try the passwords of other accounts for free. */
    @ParameterizedTest
    @CsvSource({"/form, 302", "/stored, 302", "/forwarded, 200"})
    void anAuthenticatedSessionDoesNotReturnTheTokenOfAGuess(String chain, int status) {
        String session = session(login(chain, "mallory", "mallory"));
        server.refill();
        assertThat(login(chain, "alice", "guess", session).status()).isEqualTo(status);
        assertKept();
        server.refill();
        assertThat(http.get(chain + "/hello", session, basic("alice", "guess")).status())
                .isEqualTo(401);
        assertKept();
        server.refill();
        assertThat(http.post(chain + "/check?username=alice&password=guess", session)
                        .status())
                .as("in a controller that asks the authentication manager")
                .isEqualTo(401);
        assertKept();
    }

    @Test
    void aBearerTokenDoesNotReturnTheTokenOfAGuessInAForm() {
        assertThat(login("/mixed", "alice", "guess", "X-Client: mallory").status())
                .isEqualTo(302);
        assertKept();
        server.refill();
        assertThat(login("/mixed", "alice", "alice", "X-Client: mallory").status())
                .isEqualTo(302);
        assertReturned();
    }

    @Test
    void aControllerThatLogsItsUserInCostsNothing() {
        assertThat(http.post("/form/enter?username=alice&password=alice").status())
                .isEqualTo(200);
        assertReturned();
        assertThat(http.post("/form/enter?username=alice&password=guess").status())
                .isEqualTo(401);
        assertKept();
    }

    @Test
    void aRememberedUserCountsAndAnInventedCookieDoesNot() {
        Response login = login("/form", "alice", "alice", "X-Remember: yes");
        String cookie = login.all("Set-Cookie").stream()
                .filter(set -> set.startsWith("remember-me="))
                .findFirst()
                .orElseThrow();
        assertThat(http.get("/form/hello", "Cookie: " + cookie.substring(0, cookie.indexOf(';')))
                        .status())
                .isEqualTo(200);
        assertReturned();
        assertThat(http.get("/form/hello", "Cookie: remember-me=YWxpY2U6OTk5OTk5OTk5OTk5OTphYmM")
                        .status())
                .isEqualTo(401);
        assertKept();
    }

    @Test
    void untilAnAsynchronousAnswerIsCompleteItsTokenIsTaken() throws Exception {
        Api api = server.bean(Api.class);
        try (RawHttp.Connection connection = http.open()) {
            connection.write(RawHttp.text("GET", "/basic/waiting", basic("alice"), "Connection: close"));
            api.waiting.await();
            assertThat(server.available("logins", "127.0.0.1")).isEqualTo(99);
            assertThat(server.available("late", "GET /*/waiting")).isEqualTo(99);
            api.answer.countDown();
            assertThat(connection.readToEnd().status()).isEqualTo(200);
        }
        assertReturned();
        assertThat(server.available("late", "GET /*/waiting")).isEqualTo(100);
    }

    /** A request leaves no state on its thread for the next request, which may be another client's. */
    @Test
    void aSuccessCountsForItsOwnRequestAlone() {
        try (RawHttp.Connection connection = http.open()) {
            for (int i = 1; i <= 50; i++) {
                assertThat(connection.get("/basic/hello", basic("alice")).status())
                        .isEqualTo(200);
                assertThat(connection
                                .get("/basic/hello", basic("alice", "guess"))
                                .status())
                        .isEqualTo(401);
                assertThat(server.available("logins", "127.0.0.1")).isEqualTo(100 - i);
            }
        }
    }

    private static void assertReturned() {
        server.awaitEnds();
        assertThat(server.available("logins", "127.0.0.1")).isEqualTo(100);
    }

    private static void assertKept() {
        server.awaitEnds();
        assertThat(server.available("logins", "127.0.0.1")).isEqualTo(99);
    }

    /** Returns the status of a response. Some of these responses have no body, or no end. */
    private int send(String method, String target, String... headers) {
        try (RawHttp.Connection connection = http.open()) {
            connection.write(RawHttp.text(method, target, headers));
            return connection.readHead().status();
        }
    }

    private Response login(String chain, String user, String password, String... headers) {
        String body = "username=" + user + "&password=" + password + "&remember-me="
                + (headers.length > 0 && headers[0].equals("X-Remember: yes"));
        StringBuilder text = new StringBuilder("POST " + chain + "/login HTTP/1.1\r\nHost: localhost\r\n" + FORM
                + "\r\nContent-Length: " + body.length() + "\r\n");
        for (String header : headers) {
            text.append(header).append("\r\n");
        }
        return http.send(text + "\r\n" + body);
    }

    private static String session(Response login) {
        String cookie = login.header("Set-Cookie");
        return "Cookie: " + cookie.substring(0, cookie.indexOf(';'));
    }

    @RestController
    static class Api {

        final CountDownLatch waiting = new CountDownLatch(1);
        final CountDownLatch answer = new CountDownLatch(1);
        private final AuthenticationManager manager;

        Api(AuthenticationManager manager) {
            this.manager = manager;
        }

        @GetMapping({"/*/hello", "/*/open", "/*/narrow", "/*/admin"})
        String hello() {
            return "hello";
        }

        @PostMapping("/*/failed")
        String failed() {
            return "failed";
        }

        @GetMapping("/*/exception")
        String exception() throws ServletException {
            throw new ServletException("on purpose");
        }

        @GetMapping("/*/async")
        Callable<String> async() {
            return () -> "done";
        }

        @GetMapping("/*/waiting")
        Callable<String> waiting() {
            return () -> {
                waiting.countDown();
                answer.await();
                return "done";
            };
        }

        /** Checks a password without a change of the request's user. */
        @PostMapping("/*/check")
        ResponseEntity<String> check(@RequestParam String username, @RequestParam String password) {
            return authenticate(username, password) == null
                    ? ResponseEntity.status(401).build()
                    : ResponseEntity.ok("right");
        }

        @PostMapping("/*/enter")
        ResponseEntity<String> enter(@RequestParam String username, @RequestParam String password) {
            var user = authenticate(username, password);
            if (user == null) {
                return ResponseEntity.status(401).build();
            }
            SecurityContextHolder.setContext(new SecurityContextImpl(user));
            return ResponseEntity.ok("entered");
        }

        private Authentication authenticate(String username, String password) {
            try {
                return manager.authenticate(UsernamePasswordAuthenticationToken.unauthenticated(username, password));
            } catch (AuthenticationException wrong) {
                return null;
            }
        }
    }
}
