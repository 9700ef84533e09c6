package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** The examples of {@code docs/java-api.md} compile and run, each on its own. */
class JavaApiDocumentationTests {

    private static final Path PAGE = Path.of("../docs/java-api.md");
    private static final Pattern BLOCK = Pattern.compile("(?ms)^```java$\\R(.*?)^```$");

    @TempDir
    Path directory;

    @TestFactory
    Stream<DynamicTest> theExamplesRun() throws IOException {
        List<String> examples = BLOCK.matcher(Files.readString(PAGE))
                .results()
                .map((MatchResult block) -> block.group(1))
                .toList();
        assertThat(examples).hasSizeGreaterThanOrEqualTo(4);
        AtomicInteger count = new AtomicInteger();
        return examples.stream().map(example -> {
            String name = "Example" + count.incrementAndGet();
            return DynamicTest.dynamicTest(name, () -> run(name, example));
        });
    }

    private void run(String name, String example) throws Exception {
        Path source = Files.writeString(directory.resolve(name + ".java"), """
                import io.ratelimit.*;
                import java.io.*;
                import java.time.*;

                public class %s {
                    public static void run() throws Exception {
                %s    }
                }
                """.formatted(name, example));
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
        try (URLClassLoader loader = new URLClassLoader(classes, getClass().getClassLoader())) {
            loader.loadClass(name).getMethod("run").invoke(null);
        } catch (InvocationTargetException thrown) {
            throw new AssertionError(example, thrown.getCause());
        }
    }
}
