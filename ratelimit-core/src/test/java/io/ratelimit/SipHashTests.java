package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SipHashTests {

    /** The key 00 01 … 0f of the authors' test vectors. */
    private final SipHash hash = new SipHash(0x0706050403020100L, 0x0f0e0d0c0b0a0908L);

    /**
     * Vectors of the authors' vectors.h: the input is 00 01 02 …, for the short form as a text of Latin-1, for the long
     * one as UTF-16, which has an even number of bytes.
     */
    @ParameterizedTest
    @CsvSource({
        "0, 310e0edd47db6f72, a3817f04ba25a8e66df67214c7550293",
        "2, 5a4fa9d909806c0d, 8177228da4a45dc7fca38bdef60affe4",
        "4, b7877127e09427cf, f88164c12d9c8faf7d0f6e7c7bcd5579",
        "6, cee3fe586e46c9cb, 14eeca338b208613485ea0308fd7a15e",
        "8, 6224939a79f5f593, 3b62a9ba6258f5610f83e264f31497b4",
        "10, f3b9dd94c5bb5d7a, 00110dc378146956c95447d3f3d0fbba",
        "12, fbe50e86bc8f1e75, d626b266905ef35882634df68532c125",
        "14, eef27a8e90ca23f7, 31fcefac66d7de9c7ec7485fe4494902",
        "16, db9bc2577fcc2a3f, 6ee2a4ca67b054bbfd3315bf85230577",
        "18, 9cd38d96f0b3c14b, a426e5e423bf4885294da481feaef723",
        "20, 98eea21af25cd6be, 9e25fc833f2290733e9344a5e83839eb",
        "22, 883ea3e395675393, 4a29b54552d16b9a469c10528eff0aae",
        "24, 94af49f6c650adb8, 2db479ae78bd50d8882a8a178a6132ad",
        "26, f315bb5bb835d817, 9c0b53b4b3c307e87eaee08678141f66",
        "28, a5c91da7acaa4dde, 0664da1668574b88b935f3027358aef4",
        "30, 28ef495c53a387ad, ea5c7f471faf6bde2b1ad7d4686d2287",
        "62, 575ff28e60381be5, 5853542321f567a005d547a4f04759bd",
    })
    void agreesWithTheTestVectorsOfItsAuthors(int length, String hash64, String hash128) {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) {
            bytes[i] = (byte) i;
        }
        String latin1 = new String(bytes, StandardCharsets.ISO_8859_1);
        ByteBuffer result =
                ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(hash.hash64(latin1));
        assertThat(HexFormat.of().formatHex(result.array())).isEqualTo(hash64);
        assertThat(hex(hash.hash128(new String(bytes, StandardCharsets.UTF_16LE))))
                .isEqualTo(hash128);
    }

    @Test
    void aTextOfWideCharsHashesUnlikeTheLatin1TextOfTheSameBytes() {
        assertThat(hash.hash64("\u0101\u0201")).isNotEqualTo(hash.hash64("\1\1\1\2"));
        assertThat(hash.hash64("\u0100\0")).isNotEqualTo(hash.hash64("\0\1\0\0"));
        assertThat(hash.hash64("\u0141\0")).isNotEqualTo(hash.hash64("A\1"));
    }

    @Test
    void everyCharOfAWideTextCounts() {
        Set<Long> hashes = new HashSet<>();
        for (int i = 0; i < 20; i++) {
            String text = "aaaaaaaaaaaaaaaaaaaa";
            assertThat(hashes.add(hash.hash64(text.substring(0, i) + '\u0400' + text.substring(i + 1))))
                    .as("char %d", i)
                    .isTrue();
            assertThat(hashes.add(hash.hash64('\u0400' + text.substring(0, i) + 'b' + text.substring(i + 1))))
                    .as("char %d", i)
                    .isTrue();
        }
    }

    /** The hash as bytes, low byte of each word first. */
    private static String hex(String hash128) {
        ByteBuffer words = ByteBuffer.wrap(hash128.getBytes(StandardCharsets.ISO_8859_1));
        ByteBuffer result = ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN);
        result.putLong(words.getLong()).putLong(words.getLong());
        return HexFormat.of().formatHex(result.array());
    }

    @Test
    void theLongHashIsSixteenCharsOfOneByte() {
        assertThat(hash.hash128("a key")).hasSize(16).matches(text -> text.chars()
                .allMatch(c -> c < 256));
    }

    @Test
    void lengthAndEveryCharCount() {
        Set<String> hashes = new HashSet<>();
        String text = "";
        for (int i = 0; i < 300; i++) {
            assertThat(hashes.add(hash.hash128(text))).as("%d times NUL", i).isTrue();
            text += '\0';
        }
        assertThat(hash.hash64("ab\u0100")).isNotEqualTo(hash.hash64("ab\0"));
    }

    @Test
    void aRandomKeyHashesLikeNoOther() {
        SipHash one = SipHash.withRandomKey();
        SipHash other = SipHash.withRandomKey();
        assertThat(one.hash64("alice")).isEqualTo(one.hash64("alice")).isNotEqualTo(other.hash64("alice"));
        assertThat(one.hash128("alice")).isEqualTo(one.hash128("alice")).isNotEqualTo(other.hash128("alice"));
    }
}
