package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

class KeysTests {

    /** Characters that resemble a length, a mark or an end. */
    private static final String TRICKY = "\0smrho0123:9a";

    /** Letters whose cases are unusual: dotless and dotted i, Kelvin, sharp s, final sigma, title case, Deseret. */
    private static final int[] LETTERS = {
        'i', 'I', 'ı', 'İ', 'k', 'K', '\u212a', 's', 'ſ', 'ß', 'ẞ', 'σ', 'ς', 'Σ', 'ǆ', 'ǅ', 'Ǆ', 'µ', 'μ', 'Μ', 'ÿ',
        'Ÿ', 'é', 'É', '1', ':', 0x10400, 0x10428, 0x1f600, 0xd800, 0xdc00
    };

    @Test
    void aKeyOfOnePartIsThePartItself() {
        assertThat(Keys.join(Keys.part("alice", true))).isEqualTo("alice");
    }

    @Test
    void partsDoNotRunIntoEachOther() {
        assertThat(Keys.join("a:b", "c")).isNotEqualTo(Keys.join("a", "b:c"));
        assertThat(Keys.join("a", "")).isNotEqualTo(Keys.join("", "a"));
        assertThat(Keys.join("a", "b", "c")).isNotEqualTo(Keys.join("a", "b:1:c"));
    }

    @RepeatedTest(20)
    void differentPartsGiveDifferentKeys(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        Map<String, List<String>> keys = new HashMap<>();
        for (int i = 0; i < 20_000; i++) {
            List<String> sent = randomParts(random);
            // The test marks a placeholder, so that it differs from the same text as a part.
            String[] parts = sent.stream()
                    .map(part -> part.startsWith("<") ? Keys.placeholder(part.substring(1)) : Keys.part(part, false))
                    .toArray(String[]::new);
            List<String> earlier = keys.putIfAbsent(Keys.join(parts), sent);
            assertThat(earlier == null || earlier.equals(sent))
                    .as("seed %d, step %d: %s and %s", run.getCurrentRepetition(), i, earlier, sent)
                    .isTrue();
        }
    }

    @RepeatedTest(20)
    void aKeyIsSplitIntoItsPartsAgain(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        for (int i = 0; i < 5_000; i++) {
            List<String> sent = randomParts(random);
            String[] parts = sent.stream()
                    .map(part -> part.startsWith("<") ? Keys.placeholder(part.substring(1)) : Keys.part(part, false))
                    .toArray(String[]::new);
            String key = Keys.join(parts);
            for (String kept : List.of(key, Keys.reserved(key), Keys.inTier("pro:1", key))) {
                assertThat(Keys.parts(kept).stream()
                                .map(part -> (Keys.isPlaceholder(part) ? "<" : "") + Keys.text(part))
                                .toList())
                        .as("seed %d, step %d", run.getCurrentRepetition(), i)
                        .isEqualTo(sent);
            }
            assertThat(Keys.tier(key)).isEmpty();
            assertThat(Keys.tier(Keys.inTier("pro:1", key))).isEqualTo("pro:1");
        }
    }

    @Test
    void aKeyThatWasCutHasItsRemainingParts() {
        String key = Keys.inTier("pro", Keys.join("alice", "GET /items"));
        assertThat(Keys.parts(key.substring(0, key.length() - 3))).containsExactly("alice", "GET /it");
    }

    private static List<String> randomParts(SplittableRandom random) {
        List<String> parts = new ArrayList<>();
        int count = 1 + random.nextInt(3);
        for (int i = 0; i < count; i++) {
            StringBuilder part = new StringBuilder(random.nextInt(4) == 0 ? "<" : "");
            int length = random.nextInt(5);
            for (int j = 0; j < length; j++) {
                part.append(TRICKY.charAt(random.nextInt(TRICKY.length())));
            }
            parts.add(part.toString());
        }
        return parts;
    }

    @Test
    void noTextThatIsSentEqualsAPlaceholder() {
        String standIn = Keys.placeholder("client-ip");
        for (String sent : List.of("client-ip", standIn, "s" + standIn, "\0s", "\0rclient-ip", "\0r" + standIn)) {
            assertThat(Keys.part(sent, false)).isNotEqualTo(standIn);
            assertThat(Keys.part(sent, true)).isNotEqualTo(standIn);
        }
    }

    @Test
    void keysOfCallersNeverHaveAFormOfTheStore() {
        assertThat(Keys.part("\0o17", false)).isNotEqualTo("\0o17").startsWith("\0r");
        assertThat(Keys.part("\0h0123456789abcdef", false)).startsWith("\0r");
    }

    @RepeatedTest(20)
    void ignoringCaseAgreesWithEqualsIgnoreCase(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        for (int i = 0; i < 5_000; i++) {
            String one = randomText(random);
            String other = randomText(random);
            assertThat(Keys.part(one, true).equals(Keys.part(other, true)))
                    .as("seed %d, step %d: '%s' and '%s'", run.getCurrentRepetition(), i, one, other)
                    .isEqualTo(one.equalsIgnoreCase(other));
        }
    }

    private static String randomText(SplittableRandom random) {
        StringBuilder text = new StringBuilder();
        int length = random.nextInt(3);
        for (int i = 0; i < length; i++) {
            text.appendCodePoint(LETTERS[random.nextInt(LETTERS.length)]);
        }
        return text.toString();
    }

    @Test
    void everyLetterSharesAKeyWithItsOtherCases() {
        for (int c = 0; c <= Character.MAX_CODE_POINT; c++) {
            int other = Character.isLowerCase(c) ? Character.toUpperCase(c) : Character.toLowerCase(c);
            String one = Character.toString(c);
            String two = Character.toString(other);
            if (Keys.part(one, true).equals(Keys.part(two, true)) != one.equalsIgnoreCase(two)) {
                fail("U+%04X and U+%04X", c, other);
            }
        }
    }

    @Test
    void caseCountsUnlessIgnored() {
        assertThat(Keys.part("Alice", false)).isEqualTo("Alice");
        assertThat(Keys.part("Alice", true)).isEqualTo("alice");
    }

    @Test
    void aKeyInATierIsNoKeyInAnotherTierAndNoneOutside() {
        assertThat(Keys.inTier("a", "1:bc")).isNotEqualTo(Keys.inTier("a1", ":bc"));
        assertThat(Keys.inTier("pro", "alice")).isNotEqualTo(Keys.part(Keys.inTier("pro", "alice"), false));
        assertThat(Keys.reserved("alice")).isNotEqualTo(Keys.part(Keys.reserved("alice"), false));
    }

    @Test
    void theTierOfAKeyCanBeRead() {
        assertThat(Keys.tierPrefix(Keys.inTier("a:b", "c"))).isEqualTo(Keys.inTier("a:b", ""));
        assertThat(Keys.tierPrefix("alice")).isEmpty();
        assertThat(Keys.tierPrefix(Keys.join("a", "b"))).isEmpty();
    }
}
