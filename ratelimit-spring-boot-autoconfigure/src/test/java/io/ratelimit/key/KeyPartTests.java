package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimit.key.KeyPart.Availability;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class KeyPartTests {

    @ParameterizedTest
    @CsvSource({
        "ip, 203.0.113.7, IMMEDIATE, false",
        "user, alice, NEEDS_USER, false",
        "endpoint, GET /items/{id}, IMMEDIATE, false",
        "method, GET, IMMEDIATE, false",
        "session, s1, MAY_CHANGE, true",
        "header:X-Key, secret, IMMEDIATE, true",
        "cookie:X-Key, c1, IMMEDIATE, true",
        "query:X-Key, q1, IMMEDIATE, true",
        "path-variable:X-Key, v1, IMMEDIATE, true",
        "claim:https://x/tenant, t1, NEEDS_USER, false",
        "expression:method + '-' + header('X-Key'), GET-secret, IMMEDIATE, true",
        "expression:user + '-' + ip, alice-203.0.113.7, NEEDS_USER, false",
    })
    void readsTheFactOfItsName(String text, String value, Availability availability, boolean chosenByClient) {
        KeyPart part = KeyPart.of(text);
        FixedFacts facts = new FixedFacts(
                "GET",
                "GET /items/{id}",
                "203.0.113.7",
                "alice",
                Map.of(
                        "X-Key", "secret",
                        "claim https://x/tenant", "t1",
                        "Authorization", "none",
                        "session", "s1",
                        "cookie X-Key", "c1",
                        "query X-Key", "q1",
                        "variable X-Key", "v1"));
        assertThat(part.resolver().resolve(facts)).isEqualTo(value);
        assertThat(part.availability()).isEqualTo(availability);
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
    void methodsThatHttpDoesNotDefineAreOne(String method, String key) {
        assertThat(KeyPart.of("method").resolver().resolve(FixedFacts.NONE.withMethod(method)))
                .isEqualTo(key);
    }

    @Test
    void aHeadersNameIsShownInLowerCase() {
        assertThat(KeyPart.of("header:X-Api-Key").name()).isEqualTo("header:x-api-key");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "IP", "users", "cookies:a", "parameter:a", "header", "bean", "Header:a", ":", ":a"})
    void anUnknownPartIsRejectedWithTheKnownOnes(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KeyPart.of(text))
                .withMessage(
                        "'" + text + "' is not a part of a key: write ip, user, endpoint, method, session,"
                                + " header:NAME, cookie:NAME, query:NAME, path-variable:NAME, claim:NAME, bean:NAME or expression:SPEL");
    }

    @ParameterizedTest
    @ValueSource(strings = {"header:", "header: ", "header:X Key", "header:X-Key:", "header:\u00e4", "header:a,b"})
    void aHeaderNeedsAName(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KeyPart.of(text))
                .withMessage("'" + text + "' needs the name of a header after the colon: write 'header:X-Api-Key'");
    }

    @ParameterizedTest
    @CsvSource({
        "cookie:, cookie, cookie:device",
        "cookie:a b, cookie, cookie:device",
        "query:, parameter, query:tenant",
        "path-variable:, path variable, path-variable:tenant",
        "path-variable:{id}, path variable, path-variable:tenant",
        "claim:, claim, claim:tenant",
        "'claim: ', claim, claim:tenant",
        "bean:, bean, bean:tenantKey",
    })
    void aPartWithANameNeedsOne(String text, String kind, String example) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KeyPart.of(text))
                .withMessage(
                        "'" + text + "' needs the name of a " + kind + " after the colon: write '" + example + "'");
    }

    @Test
    void aBeanIsFoundByItsName() {
        KeyPart part = KeyPart.of("bean:tenant");
        assertThat(part.availability()).isEqualTo(Availability.MAY_CHANGE);
        assertThat(part.chosenByClient()).isFalse();
        assertThatIllegalStateException()
                .isThrownBy(() -> part.resolver().resolve(FixedFacts.NONE))
                .withMessage("'bean:tenant' has not been resolved");
        KeyPart resolved = part.withBeans(name -> request -> name + " of " + request.ip());
        assertThat(resolved.resolver().resolve(FixedFacts.NONE)).isEqualTo("tenant of 203.0.113.7");
        assertThat(resolved.name()).isEqualTo("bean:tenant");
        KeyPart other = KeyPart.of("ip");
        assertThat(other.withBeans(name -> request -> "")).isSameAs(other);
    }
}
