package io.ratelimit.web.servlet.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.springframework.http.server.PathContainer;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

class RequestPathTests {

    @RepeatedTest(200)
    void patternsMatchAShortenedPathLikeTheWholePath(RepetitionInfo run) {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        for (int i = 0; i < 200; i++) {
            String text = pattern(random);
            String path = path(random);
            PathPattern pattern = PathPatternParser.defaultInstance.parse(text);
            PathContainer shortened = RequestPath.sent(path).parsed();
            assertThat(pattern.matches(shortened))
                    .as("seed %d: %s, %s", run.getCurrentRepetition(), text, path)
                    .isEqualTo(pattern.matches(PathContainer.parsePath(path)));
            assertThat(shortened.elements()).hasSizeLessThanOrEqualTo(2 * RequestPath.MAX_SEGMENTS + 2);
        }
    }

    private static String pattern(SplittableRandom random) {
        String anywhere = random.nextBoolean() ? "/**" : "/{*rest}";
        String fixed = segments(random, random.nextInt(5), "a", "b", "{v%d}", "*", "a*", "?");
        return switch (random.nextInt(3)) {
            case 0 -> anywhere + fixed;
            case 1 -> fixed + anywhere;
            default -> fixed + (fixed.isEmpty() || random.nextInt(4) == 0 ? "/" : "");
        };
    }

    /** Lengths around the one from which a path is shortened, and far above it. */
    private static String path(SplittableRandom random) {
        int most = random.nextBoolean() ? 6 : random.nextBoolean() ? RequestPath.MAX_SEGMENTS + 4 : 600;
        String path = segments(random, random.nextInt(most), "a", "b", "ab", "", ";a=b;c", "a;a=", "x%%61", ".");
        return path + (path.isEmpty() || random.nextInt(3) == 0 ? "/" : "");
    }

    private static String segments(SplittableRandom random, int count, String... words) {
        StringBuilder path = new StringBuilder();
        for (int i = 0; i < count; i++) {
            path.append('/').append(words[random.nextInt(words.length)].formatted(i));
        }
        return path.toString();
    }
}
