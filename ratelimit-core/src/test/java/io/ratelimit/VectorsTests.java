package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** The file of vectors is what {@link Vectors} makes. {@code -Dratelimit.vectors.write=true} writes it. */
class VectorsTests {

    private static final Path FILE = Path.of("..", "vectors", "ratelimit-vectors.json");

    @Test
    void theFileHasAllSequences() throws IOException {
        if (Boolean.getBoolean("ratelimit.vectors.write")) {
            Files.writeString(FILE, Vectors.json());
        }
        assertThat(Vectors.all()).hasSizeGreaterThanOrEqualTo(500);
        assertThat(Files.readString(FILE)).isEqualTo(Vectors.json());
    }
}
