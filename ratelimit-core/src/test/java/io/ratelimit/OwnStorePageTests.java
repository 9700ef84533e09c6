package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.StringWriter;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The store of {@code docs/own-store.md} compiles, and is a store. */
class OwnStorePageTests {

    private static final Path PAGE = Path.of("../docs/own-store.md");
    private static final Pattern BLOCK = Pattern.compile("(?ms)^```java$\\R(.*?)^```$");

    @TempDir
    Path directory;

    @Test
    void theStoreTakesFromAllBucketsOrNoneAndGivesBack() throws Exception {
        Matcher block = BLOCK.matcher(Files.readString(PAGE));
        assertThat(block.find()).isTrue();
        String example = block.group(1);
        assertThat(example.lines()).hasSizeLessThanOrEqualTo(36);

        BucketStore store = compile(example);
        Charge user = Charge.of(ThrottlePolicy.of("user", BucketSpec.of("5/1d"), "user"), "alice", 2);
        Charge all = Charge.of(ThrottlePolicy.of("all", BucketSpec.of("4/1d")), "", 2);
        Decision first = store.take(List.of(user, all));
        assertThat(first.allowed()).isTrue();
        assertThat(store.take(List.of(user.withCost(3), all.withCost(3))).allowed())
                .isFalse();
        assertThat(store.snapshot(user).available()).isEqualTo(3);
        store.giveBack(first.answers());
        assertThat(store.snapshot(all).available()).isEqualTo(4);
        assertThat(store.reserve(List.of(all.withCost(4).withMaxWait(Duration.ofDays(1))))
                        .allowed())
                .isTrue();
    }

    private BucketStore compile(String example) throws Exception {
        Path source = Files.writeString(
                directory.resolve("GridBucketStore.java"),
                """
                import io.ratelimit.*;
                import java.time.*;
                import java.util.*;

                public\s""" + example.replace("    GridBucketStore()", "    public GridBucketStore()"));
        StringWriter messages = new StringWriter();
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
            List<String> options = List.of("-d", directory.toString(), "-proc:none");
            assertThat(compiler.getTask(messages, files, null, options, null, files.getJavaFileObjects(source))
                            .call())
                    .as("%s%n%s", example, messages)
                    .isTrue();
        }
        URL[] classes = {directory.toUri().toURL()};
        URLClassLoader loader = new URLClassLoader(classes, getClass().getClassLoader());
        return (BucketStore)
                loader.loadClass("GridBucketStore").getConstructor().newInstance();
    }
}
