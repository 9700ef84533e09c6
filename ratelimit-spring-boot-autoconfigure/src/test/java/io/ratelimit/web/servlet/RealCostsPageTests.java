package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.annotation.ActualCost;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The example of {@code docs/real-costs.md}: its configuration and its handler, with the numbers of its text. */
class RealCostsPageTests {

    private static final Path PAGE = Path.of("../docs/real-costs.md");
    private static final Path SOURCE = Path.of("src/test/java/io/ratelimit/web/servlet/RealCostsPageTests.java");

    private static String block(String language) throws IOException {
        String text = Files.readString(PAGE);
        int start = text.indexOf("```" + language + "\n") + language.length() + 4;
        return text.substring(start, text.indexOf("```", start));
    }

    @Test
    void theHandlerIsTheOneOfThePage() throws IOException {
        assertThat(Files.readString(SOURCE)).contains(block("java").strip().indent(8));
    }

    @Test
    void aUserHasFiftyThousandTokensADay() throws IOException {
        try (TestServer server = TestServer.secured(block("yaml"), BasicSecurity.class, Chat.class)
                .start()) {
            server.refill();
            ask(server, 300);
            assertThat(server.available("tokens-per-day", "alice")).isEqualTo(49_700);
            ask(server, 60_000);
            assertThat(server.available("tokens-per-day", "alice")).isZero();
            assertThat(server.http().get("/chat?question=1", basic("alice")).header("Retry-After"))
                    .isEqualTo("" + (11_300 * 86_400L / 50_000 + 1));
            assertThat(server.http().get("/chat?question=1", basic("bob")).status())
                    .isEqualTo(200);
            server.advance(Duration.ofHours(5).plusMinutes(26));
            ask(server, 1);
        }
    }

    private static void ask(TestServer server, long tokens) {
        assertThat(server.http().get("/chat?question=" + tokens, basic("alice")).status())
                .isEqualTo(200);
    }

    record Answer(String text, long totalTokens) {}

    /** A language model that answers a number with as many tokens. */
    static class Model {

        Answer ask(String question) {
            return new Answer("answered", Long.parseLong(question));
        }
    }

    @RestController
    static class Chat {

        private final Model model = new Model();

        @GetMapping("/chat")
        String chat(@RequestParam String question, ActualCost cost) {
            Answer answer = model.ask(question);
            cost.settle("tokens-per-day", answer.totalTokens());
            return answer.text();
        }
    }
}
