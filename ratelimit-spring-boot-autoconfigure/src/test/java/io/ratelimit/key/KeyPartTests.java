package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class KeyPartTests {

    @ParameterizedTest
    @CsvSource({
        "ip, 203.0.113.7, false, false",
        "user, alice, true, false",
        "endpoint, GET /items/{id}, false, false",
        "method, GET, false, false",
        "header:X-Key, secret, false, true",
    })
    void readsTheFactThatItNames(String text, String value, boolean needsUser, boolean chosenByClient) {
        KeyPart part = KeyPart.of(text);
        FixedFacts facts = new FixedFacts(
                "GET", "GET /items/{id}", "203.0.113.7", "alice", Map.of("X-Key", "secret", "Authorization", "none"));
        assertThat(part.resolver().resolve(facts)).isEqualTo(value);
        assertThat(part.needsUser()).isEqualTo(needsUser);
        assertThat(part.chosenByClient()).isEqualTo(chosenByClient);
    }

    @ParameterizedTest
    @CsvSource({
        "GET, GET",
        "HEAD, GET",
        "POST, POST",
        "PUT, PUT",
        "PATCH, PATCH",
        "DELETE, DELETE",
        "OPTIONS, OPTIONS",
        "TRACE, TRACE",
        "CONNECT, CONNECT",
        "get, other",
        "FOO1, other",
        "PROPFIND, other",
        "other, other",
    })
    void whatHttpDoesNotDefineIsOneMethod(String method, String key) {
        assertThat(KeyPart.of("method").resolver().resolve(FixedFacts.NONE.withMethod(method)))
                .isEqualTo(key);
    }

    @Test
    void aHeadersNameIsShownInLowerCase() {
        assertThat(KeyPart.of("header:X-Api-Key").name()).isEqualTo("header:x-api-key");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "IP", "users", "cookie:a", "query:a", "header", "Header:a"})
    void anUnknownPartNamesThoseThereAre(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KeyPart.of(text))
                .withMessage("'" + text + "' is not a part of a key: say ip, user, endpoint, method or header:NAME");
    }

    @ParameterizedTest
    @ValueSource(strings = {"header:", "header: ", "header:X Key", "header:X-Key:", "header:\u00e4", "header:a,b"})
    void aHeaderNeedsAName(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KeyPart.of(text))
                .withMessage("'" + text + "' has no header's name after the colon: say 'header:X-Api-Key'");
    }
}
