package io.ratelimit.aot;

import io.ratelimit.annotation.RateLimited;
import io.ratelimit.sample.SampleApplication;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.springframework.aot.hint.MemberCategory;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.TypeReference;
import org.springframework.aot.hint.annotation.RegisterReflectionForBinding;
import org.springframework.aot.hint.predicate.RuntimeHintsPredicates;
import org.springframework.aot.test.agent.RuntimeHintsInvocations;
import org.springframework.aot.test.agent.RuntimeHintsRecorder;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringApplicationAotProcessor;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.aot.AbstractAotProcessor.Settings;

/**
 * The sample application with an annotated service, in a JVM of its own: processed ahead of time, and then run from the
 * generated code while Spring's agent records reflection and access to resources.
 */
final class AheadOfTimeRun {

    private static final String CAFFEINE = "com.github.benmanes.caffeine.cache.";

    private final HttpClient client = HttpClient.newHttpClient();
    private final int port;

    private AheadOfTimeRun(int port) {
        this.port = port;
    }

    /** @param arguments an empty directory on the class path, followed by the arguments of the application */
    @SuppressWarnings("removal") // Spring offers no successor of the agent that runs on a JVM
    public static void main(String[] arguments) throws Exception {
        Path generated = Path.of(arguments[0]);
        String[] settings = Stream.of(arguments).skip(1).toArray(String[]::new);
        Processor processor = new Processor(generated, settings);
        processor.process();
        compile(generated);
        System.setProperty("spring.aot.enabled", "true");
        RuntimeHintsInvocations recorded = RuntimeHintsRecorder.record(() -> run(settings));
        recorded.assertThat().notMatching(processor.hints).satisfies(invocations -> {
            for (Object invocation : invocations) {
                System.out.println("UNMATCHED " + invocation.toString().replace("\n", " | "));
            }
        });
        for (String factories : List.of("LocalCacheFactory", "NodeFactory")) {
            printUnmatchedCaches(factories, processor.hints);
        }
        System.exit(0);
    }

    /** Prints the classes that Caffeine chose by the options of builders, and that lack a hint. */
    private static void printUnmatchedCaches(String factories, RuntimeHints hints) throws ReflectiveOperationException {
        Field loaded = Class.forName(CAFFEINE + factories).getField("FACTORIES");
        loaded.setAccessible(true);
        for (Object name : ((Map<?, ?>) loaded.get(null)).keySet()) {
            boolean matched = RuntimeHintsPredicates.reflection()
                    .onType(TypeReference.of(CAFFEINE + name))
                    .withMemberCategories(
                            MemberCategory.INVOKE_DECLARED_CONSTRUCTORS, MemberCategory.ACCESS_DECLARED_FIELDS)
                    .test(hints);
            System.out.println((matched ? "CACHE " : "UNMATCHED cache ") + name);
        }
    }

    private static final class Processor extends SpringApplicationAotProcessor {

        private RuntimeHints hints = new RuntimeHints();

        Processor(Path generated, String[] settings) {
            super(
                    Application.class,
                    Settings.builder()
                            .sourceOutput(generated)
                            .resourceOutput(generated)
                            .classOutput(generated)
                            .groupId("io.ratelimit")
                            .artifactId("sample-app")
                            .build(),
                    settings);
        }

        @Override
        protected void writeHints(RuntimeHints found) {
            hints = found;
        }
    }

    private static void compile(Path generated) throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null);
                Stream<Path> found = Files.walk(generated)) {
            List<Path> sources =
                    found.filter(file -> file.toString().endsWith(".java")).toList();
            List<String> options = List.of("-proc:none", "-nowarn", "-d", generated.toString());
            if (!compiler.getTask(null, files, null, options, null, files.getJavaFileObjectsFromPaths(sources))
                    .call()) {
                throw new IllegalStateException("the generated code doesn't compile");
            }
        }
    }

    private static void run(String[] settings) {
        try (ConfigurableApplicationContext context = SpringApplication.run(Application.class, settings)) {
            int port = context.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
            new AheadOfTimeRun(port).requests();
            Orders orders = context.getBean(Orders.class);
            for (int i = 0; i < 3; i++) {
                System.out.println("ORDER " + placed(orders));
            }
        }
    }

    private static String placed(Orders orders) {
        try {
            return orders.place(new Order("alice", 2));
        } catch (RuntimeException denied) {
            return denied.getClass().getSimpleName();
        }
    }

    private void requests() {
        for (int i = 0; i < 7; i++) {
            print("report", send("alice", "/api/report", "GET", ""));
        }
        for (int i = 0; i < 6; i++) {
            print("item", send("alice", "/api/items/1", "PUT", "{\"name\":\"kettle\"}"));
        }
        print("endpoint", send("admin", "/actuator/ratelimits", "GET", ""));
        print("policy", send("admin", "/actuator/ratelimits/report", "GET", ""));
        print("bucket", send("admin", "/actuator/ratelimits/report?key=alice", "GET", ""));
        print("change", send("admin", "/actuator/ratelimits/report", "POST", "{\"rate\":\"120/1m\"}"));
        print("reset", send("admin", "/actuator/ratelimits/report?key=alice", "DELETE", ""));
        print("mistake", send("admin", "/actuator/ratelimits/unknown", "GET", ""));
        for (String file : List.of("", "/dashboard.js", "/dashboard.css", "/uplot.js", "/uplot.css", "/data")) {
            print("dashboard" + file, send("admin", "/actuator/ratelimitdashboard" + file, "GET", ""));
        }
        print("health", send("admin", "/actuator/health", "GET", ""));
        print("prometheus", send("admin", "/actuator/prometheus", "GET", ""));
    }

    private static void print(String name, HttpResponse<String> response) {
        String body = response.body().lines().map(String::strip).collect(Collectors.joining(" "));
        System.out.println(
                name + " " + response.statusCode() + " " + body.substring(0, Math.min(body.length(), 4_000)));
    }

    private HttpResponse<String> send(String user, String path, String method, String body) {
        byte[] credentials = (user + ":" + user).getBytes(StandardCharsets.UTF_8);
        try {
            return client.send(
                    HttpRequest.newBuilder(URI.create("http://localhost:" + port + path))
                            .method(method, BodyPublishers.ofString(body))
                            .header("Content-Type", "application/json")
                            .header(
                                    "Authorization",
                                    "Basic " + Base64.getEncoder().encodeToString(credentials))
                            .build(),
                    BodyHandlers.ofString());
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @Import({SampleApplication.class, Orders.class})
    static class Application {

        public static void main(String[] settings) {
            SpringApplication.run(Application.class, settings);
        }
    }

    record Order(String customer, int pieces) {}

    /** An application registers the types whose properties its expressions read. */
    @RegisterReflectionForBinding(Order.class)
    static class Orders {

        @RateLimited(name = "orders", rate = "5/1m", key = "#order.customer", cost = "#order.pieces")
        String place(Order order) {
            return "placed";
        }
    }
}
