package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The example of {@code docs/plans.md} is code of this application, which {@link SampleApplicationTests} runs. */
class PlansPageTests {

    private static final Pattern BLOCK = Pattern.compile("(?ms)^```(?:java|sql)$\\R(.*?)^```$");

    @Test
    void theExampleIsCodeOfThisApplication() throws IOException {
        String sources = Files.readString(Path.of("src/main/java/io/ratelimit/sample/Plans.java"))
                + Files.readString(Path.of("src/main/resources/schema.sql"));
        List<String> blocks = BLOCK.matcher(Files.readString(Path.of("../docs/plans.md")))
                .results()
                .map(block -> block.group(1))
                .toList();

        assertThat(blocks).hasSize(2).allMatch(sources::contains);
    }
}
