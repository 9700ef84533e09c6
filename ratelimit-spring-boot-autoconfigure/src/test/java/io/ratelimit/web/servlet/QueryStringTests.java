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
    void anAbsentParameterIsAMissingKey(String query) {
        assertThat(QueryString.first("key", query)).isNull();
        assertThat(QueryString.first("key", null)).isNull();
    }

    /** A search for the next {@code =} behind each name takes 256 times as long for 16 times as many names. */
    @Test
    void namesWithoutValuesCostLinearTime() {
        bestNanos(1_000);
        long few = bestNanos(1_000);
        assertThat(bestNanos(16_000)).isLessThan(60 * few);
    }

    private static long bestNanos(int names) {
        String query = "a&".repeat(names);
        long best = Long.MAX_VALUE;
        for (int i = 0; i < 300; i++) {
            long start = System.nanoTime();
            String none = QueryString.first("x", query);
            best = Math.min(best, System.nanoTime() - start);
            assertThat(none).isNull();
        }
        return best;
    }

    @ParameterizedTest
    @CsvSource({"%C3%A4=one", "ä=one", "%c3%a4%=two&%C3%A4=one", "%C3=two&ä=one", "a%C3%A4=two&%C3%A4=one"})
    void aNameThatIsNotAsciiIsDecoded(String query) {
        assertThat(QueryString.first("ä", query)).isEqualTo("one");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"ke%79%79=a", "ke%=a", "ke%7=a", "ke%=79&=a", "%6bey%00=a", "ke%F9=a", "ke%C1%B9=a", "k+ey=a"})
    void aNameThatIsAlmostTheSameIsAnother(String query) {
        assertThat(QueryString.first("key", query)).isNull();
        assertThat(QueryString.first("key", query + "&key=one")).isEqualTo("one");
    }

    @ParameterizedTest
    @ValueSource(strings = {"key=%", "key=%2", "key=%zz", "key=a%", "key=%&key=two", "key=%u0041", "%6bey=%-1"})
    void anUndecodableValueIsMissing(String query) {
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
