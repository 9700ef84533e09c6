package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Compiles the Java of the documentation, each block as a class of its own: its members, or the statements of a method.
 * Dots in braces stand for omitted code.
 */
class DocumentationJavaTests {

    private static final Path DOCS = Path.of("../docs");
    private static final Pattern BLOCK = Pattern.compile("(?ms)^```java$\\R(.*?)^```$");
    private static final Pattern IMPORT = Pattern.compile("(?m)^import .*;$\\R?");
    private static final Pattern MEMBER = Pattern.compile("(?m)^(?:@|class |import )");

    /** The pages whose Java is that of other tests. */
    private static final Set<String> TESTED_ELSEWHERE = Set.of(
            "getting-started.md", // GettingStartedTests
            "java-api.md", // JavaApiDocumentationTests
            "own-store.md", // OwnStorePageTests
            "plans.md", // PlansPageTests
            "stacks.md", // StacksPageTests
            "testing.md"); // TestingPageTests

    private static final String HEAD = """
            package docs;

            import io.micrometer.common.KeyValue;
            import io.micrometer.observation.ObservationFilter;
            import io.ratelimit.*;
            import io.ratelimit.annotation.*;
            import io.ratelimit.key.*;
            import io.ratelimit.web.servlet.rejection.*;
            import java.io.*;
            import java.math.BigDecimal;
            import java.util.*;
            import java.util.concurrent.CompletableFuture;
            import java.util.function.Consumer;
            import org.springframework.aot.hint.annotation.RegisterReflectionForBinding;
            import org.springframework.beans.factory.ObjectProvider;
            import org.springframework.beans.factory.annotation.Qualifier;
            import org.springframework.boot.security.autoconfigure.actuate.web.servlet.EndpointRequest;
            import org.springframework.context.annotation.Bean;
            import org.springframework.core.io.*;
            import org.springframework.http.ResponseEntity;
            import org.springframework.http.server.observation.ServerRequestObservationContext;
            import org.springframework.security.config.annotation.web.builders.HttpSecurity;
            import org.springframework.web.bind.annotation.*;
            import org.springframework.web.service.annotation.*;
            import org.springframework.web.servlet.HandlerExceptionResolver;
            import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
            """;

    /** The application around the blocks. */
    private static final String APPLICATION = """
            record Answer(String text, long totalTokens) {}

            record Document() {}

            record Export() {}

            record Item() {}

            record NewItem() {}

            record Order(String customer, int pieces) {}

            record Report() {}

            record Results() {}

            record Tenant() {}

            interface ApiKeys {
                String ownerOf(String key);
            }

            interface Codes {
                boolean matches(String code);
            }

            interface Model {
                Answer ask(String question);

                void askInPieces(String question, Words words, Consumer<Answer> end);

                interface Words {
                    void add(String word) throws IOException;
                }
            }

            interface Tenants {
                String ofApiKey(String key);
            }

            abstract class Application {
                Codes codes;
                HttpSecurity http;
                Model model;
                Throttlers throttlers;

                abstract void export();

                abstract InputStream openCatalogue();
            }
            """;

    @TempDir
    Path directory;

    @Test
    void eachBlockCompiles() throws IOException {
        List<Path> sources = new ArrayList<>();
        sources.add(Files.writeString(directory.resolve("Application.java"), HEAD + APPLICATION));
        for (Path page : pages()) {
            String text = Files.readString(page);
            for (MatchResult block : BLOCK.matcher(text).results().toList()) {
                String name = page.getFileName().toString().replaceAll("\\W", "_")
                        + (text.substring(0, block.start()).lines().count() + 1);
                sources.add(Files.writeString(directory.resolve(name + ".java"), source(name, block.group(1))));
            }
        }
        assertThat(sources).hasSizeGreaterThan(15);

        StringWriter messages = new StringWriter();
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
            List<String> options = List.of("-d", directory.toString(), "-proc:none");
            boolean compiled = compiler.getTask(
                            messages, files, null, options, null, files.getJavaFileObjectsFromPaths(sources))
                    .call();
            assertThat(compiled).as("%s", messages).isTrue();
        }
    }

    private static List<Path> pages() throws IOException {
        try (Stream<Path> pages = Files.list(DOCS)) {
            return Stream.concat(Stream.of(DOCS.resolve("../README.md")), pages)
                    .filter(page -> page.toString().endsWith(".md"))
                    .filter(page ->
                            !TESTED_ELSEWHERE.contains(page.getFileName().toString()))
                    .toList();
        }
    }

    /** Returns the source of a class around a block. */
    private static String source(String name, String block) {
        String imports = IMPORT.matcher(block).results().map(MatchResult::group).collect(Collectors.joining());
        String code =
                IMPORT.matcher(block).replaceAll("").replace("{ … }", "{ throw new UnsupportedOperationException(); }");
        boolean hasMembers = MEMBER.matcher(block).find();
        return HEAD + imports + "abstract class " + name + " extends Application {\n"
                + (hasMembers ? code : "void run() throws Exception {\n" + code + "}\n") + "}\n";
    }
}
