package io.ratelimit.aot;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.FileVisitOption;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.aot.agent.RuntimeHintsAgent;
import redis.embedded.RedisServer;

/** The sample application, processed ahead of time and run on the JVM, with buckets in memory and in Redis. */
@Tag("slow")
class AheadOfTimeTests {

    private static List<String> lines = List.of();

    @BeforeAll
    static void run(@TempDir Path directory) throws Exception {
        int port = freePort();
        RedisServer redis = RedisServer.newRedisServer()
                .port(port)
                .bind("127.0.0.1")
                .setting("save \"\"")
                .build();
        redis.start();
        try {
            lines = run(directory, port);
        } finally {
            redis.stop();
        }
    }

    private static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    @SuppressWarnings("removal") // Spring offers no successor of the agent that runs on a JVM
    private static List<String> run(Path directory, int redis) throws Exception {
        Path generated = Files.createDirectory(directory.resolve("generated"));
        Path output = directory.resolve("output");
        Path agent = Path.of(RuntimeHintsAgent.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI());
        List<String> command = List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-javaagent:" + agent + "=+io.ratelimit,+org.springframework,-org.springframework.aot",
                "-cp",
                classPath(directory, generated),
                AheadOfTimeRun.class.getName(),
                generated.toString(),
                "--server.port=0",
                "--spring.data.redis.host=127.0.0.1",
                "--spring.data.redis.port=" + redis,
                "--ratelimit.redis.timeout=5s",
                "--ratelimit.policies.per-endpoint.backend=redis",
                "--ratelimit.policies.expressions.rate=1000/1m",
                "--ratelimit.policies.expressions.paths=/api/**",
                "--ratelimit.policies.expressions.condition={'GET','PUT'}.contains(method) and !roles.contains('ADMIN')",
                "--ratelimit.policies.expressions.cost=path.startsWith('/api/report') ? 2 : number('1')");
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        try {
            assertThat(process.waitFor(10, TimeUnit.MINUTES))
                    .as(() -> read(output).toString())
                    .isTrue();
            assertThat(process.exitValue()).as(() -> read(output).toString()).isZero();
        } finally {
            process.destroyForcibly();
        }
        return read(output);
    }

    private static List<String> read(Path output) {
        try {
            return Files.readAllLines(output);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    /** The class path with this package instead of all tests, whose configurations the application would find. */
    private static String classPath(Path directory, Path generated) throws Exception {
        Path tests = Path.of(AheadOfTimeTests.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI());
        Path folder = Path.of(AheadOfTimeTests.class.getPackageName().replace('.', '/'));
        Path copy = directory.resolve("tests");
        Files.createDirectories(copy.resolve(folder));
        try (Stream<Path> files = Files.walk(tests.resolve(folder), 1, FileVisitOption.FOLLOW_LINKS)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                Files.copy(file, copy.resolve(folder).resolve(file.getFileName()));
            }
        }
        return Stream.concat(
                        Stream.of(generated.toString(), copy.toString()),
                        Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                                .filter(entry -> !Path.of(entry).equals(tests)))
                .collect(Collectors.joining(File.pathSeparator));
    }

    private static Stream<String> beginningWith(String beginning) {
        return lines.stream().filter(line -> line.startsWith(beginning));
    }

    @Test
    void theFirst429ArrivesAndTheStartReportsEachPolicy() {
        assertThat(lines).anyMatch(line -> line.contains("Starting AOT-processed"));
        assertThat(lines)
                .anyMatch(line -> line.contains("report: 60/1m"))
                .anyMatch(line -> line.contains("Rate limits: ") && line.contains("; buckets in memory"))
                .anyMatch(line -> line.contains("per-endpoint: 3000/1m") && line.contains("; on Redis"));
        assertThat(beginningWith("report ").map(line -> line.substring(7, 10)))
                .containsExactly("200", "200", "200", "200", "200", "200", "429");
    }

    @Test
    void annotatedMethodsAreLimited() {
        assertThat(beginningWith("item ").map(line -> line.substring(5, 8)))
                .containsExactly("200", "200", "200", "200", "200", "429");
        assertThat(beginningWith("ORDER "))
                .containsExactly("ORDER placed", "ORDER placed", "ORDER RateLimitExceededException");
    }

    @Test
    void theActuatorShowsThePolicies() {
        assertThat(beginningWith("endpoint 200"))
                .singleElement()
                .asString()
                .contains("\"report\":{\"policy\":\"report\"");
        assertThat(beginningWith("policy 200")).singleElement().asString().contains("\"rate\":\"60/1m\"");
        assertThat(beginningWith("bucket 200")).singleElement().asString().contains("\"overridden\":false");
        assertThat(beginningWith("change 200")).singleElement().asString().contains("\"rate\":\"120/1m\"");
        assertThat(beginningWith("reset 200")).hasSize(1);
        assertThat(beginningWith("mistake 404")).singleElement().asString().contains("no policy has this name");
        assertThat(beginningWith("dashboard")).hasSize(6).allMatch(line -> line.contains(" 200 "));
        assertThat(beginningWith("dashboard/data 200"))
                .singleElement()
                .asString()
                .contains("\"policies\":");
    }

    @Test
    void allReflectionAndResourcesHaveHints() {
        assertThat(beginningWith("CACHE ")).contains("CACHE SSA", "CACHE PSW", "CACHE SSMWW", "CACHE PSWMW");
        assertThat(beginningWith("RECORDED ")).singleElement().isNotEqualTo("RECORDED 0");
        assertThat(beginningWith("UNMATCHED ")).isEmpty();
    }
}
