package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class QueryStringTests {

    @ParameterizedTest
    @CsvSource({
        "key=one, one",
        "key=one&key=two, one",
        "a=b&key=one, one",
        "a=key&key=one, one",
        "keys=a&ke=b&key=one, one",
        "&&&key=one&, one",
        "=x&key=one, one",
        "key=one=two, one=two",
        "key=a+b%20c, a b c",
        "key=%C3%A4%26%3D, ä&=",
        "%6Bey=one, one",
        "%6b%65%79=one&key=two, one",
        "KEY=a&key=one, one",
        "key=a;b, a;b",
        "key=one#x, one#x",
        "%zz=a&key=one, one",
        "a=%&key=one, one",
    })
    void theFirstValueCountsDecoded(String query, String value) {
        assertThat(QueryString.first("key", query)).isEqualTo(value);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "&", "=", "=one", "a=one", "a;key=one", "KEY=one", "k%65=one", "key%20=one", "a=key=one"})
    void aParameterThatIsNotThereIsMissing(String query) {
        assertThat(QueryString.first("key", query)).isNull();
        assertThat(QueryString.first("key", null)).isNull();
    }

    @ParameterizedTest
    @ValueSource(strings = {"key=%", "key=%2", "key=%zz", "key=a%", "key=%&key=two", "key=%u0041", "%6bey=%-1"})
    void whatCantBeDecodedIsMissingAndSoIsWhatFollows(String query) {
        assertThat(QueryString.first("key", query)).isNull();
    }

    @ParameterizedTest
    @ValueSource(strings = {"key", "key=", "key&key=two", "a&key&b"})
    void aParameterWithoutAValueIsEmpty(String query) {
        assertThat(QueryString.first("key", query)).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"a=b&", "&", "a&"})
    void aParameterDoesNotHideBehindOthers(String other) {
        assertThat(QueryString.first("key", other.repeat(3_000) + "key=one")).isEqualTo("one");
    }

    @Test
    void aLongValueIsReadToItsEnd() {
        String value = "x".repeat(100_000);
        assertThat(QueryString.first("key", "key=" + value + "1")).isEqualTo(value + "1");
    }

    @Test
    void aNameThatNeedsEscapesIsFound() {
        assertThat(QueryString.first("a b", "a+b=one")).isEqualTo("one");
        assertThat(QueryString.first("a b", "a%20b=one")).isEqualTo("one");
        assertThat(QueryString.first("filter[tenant]", "filter%5Btenant%5D=one"))
                .isEqualTo("one");
        assertThat(QueryString.first("filter[tenant]", "filter[tenant]=one")).isEqualTo("one");
    }
}
