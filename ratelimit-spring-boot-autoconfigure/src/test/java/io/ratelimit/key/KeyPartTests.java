package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class KeyPartTests {

    @ParameterizedTest
    @CsvSource({
        "ip, 203.0.113.7, AT_ONCE, false",
        "user, alice, WITH_USER, false",
        "endpoint, GET /items/{id}, AT_ONCE, false",
        "method, GET, AT_ONCE, false",
        "session, s1, PERHAPS_LATER, true",
        "header:X-Key, secret, AT_ONCE, true",
        "cookie:X-Key, c1, AT_ONCE, true",
        "query:X-Key, q1, AT_ONCE, true",
        "path-variable:X-Key, v1, AT_ONCE, true",
        "expression:method + '-' + header('X-Key'), GET-secret, AT_ONCE, false",
        "expression:user + '-' + ip, alice-203.0.113.7, WITH_USER, false",
    })
    void readsTheFactThatItNames(String text, String value, Known known, boolean chosenByClient) {
        KeyPart part = KeyPart.of(text);
        FixedFacts facts = new FixedFacts(
                "GET",
                "GET /items/{id}",
                "203.0.113.7",
                "alice",
                Map.of(
                        "X-Key", "secret",
                        "Authorization", "none",
                        "session", "s1",
                        "cookie X-Key", "c1",
                        "query X-Key", "q1",
                        "variable X-Key", "v1"));
        assertThat(part.resolver().resolve(facts)).isEqualTo(value);
        assertThat(part.known()).isEqualTo(known);
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
    @ValueSource(strings = {"", "IP", "users", "cookies:a", "parameter:a", "header", "bean", "Header:a", ":", ":a"})
    void anUnknownPartNamesThoseThereAre(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KeyPart.of(text))
                .withMessage("'" + text + "' is not a part of a key: say ip, user, endpoint, method, session,"
                        + " header:NAME, cookie:NAME, query:NAME, path-variable:NAME, bean:NAME or expression:SPEL");
    }

    @ParameterizedTest
    @ValueSource(strings = {"header:", "header: ", "header:X Key", "header:X-Key:", "header:\u00e4", "header:a,b"})
    void aHeaderNeedsAName(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KeyPart.of(text))
                .withMessage("'" + text + "' has no header's name after the colon: say 'header:X-Api-Key'");
    }

    @ParameterizedTest
    @CsvSource({
        "cookie:, cookie, cookie:device",
        "cookie:a b, cookie, cookie:device",
        "query:, parameter, query:tenant",
        "path-variable:, path variable, path-variable:tenant",
        "path-variable:{id}, path variable, path-variable:tenant",
        "bean:, bean, bean:tenantKey",
    })
    void whatIsNamedNeedsAName(String text, String kind, String example) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KeyPart.of(text))
                .withMessage("'" + text + "' has no " + kind + "'s name after the colon: say '" + example + "'");
    }

    @Test
    void aBeanIsFoundByItsName() {
        KeyPart part = KeyPart.of("bean:tenant");
        assertThat(part.known()).isEqualTo(Known.PERHAPS_LATER);
        assertThat(part.chosenByClient()).isFalse();
        assertThatIllegalStateException()
                .isThrownBy(() -> part.resolver().resolve(FixedFacts.NONE))
                .withMessage("'bean:tenant' has not been resolved");
        KeyPart resolved = part.withBean(name -> request -> name + " of " + request.ip());
        assertThat(resolved.resolver().resolve(FixedFacts.NONE)).isEqualTo("tenant of 203.0.113.7");
        assertThat(resolved.name()).isEqualTo("bean:tenant");
        KeyPart other = KeyPart.of("ip");
        assertThat(other.withBean(name -> request -> "")).isSameAs(other);
    }
}
