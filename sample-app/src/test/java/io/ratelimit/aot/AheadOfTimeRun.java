package io.ratelimit.aot;

import io.ratelimit.aot.AheadOfTimeApplication.Order;
import io.ratelimit.aot.AheadOfTimeApplication.Orders;
import io.ratelimit.sample.SampleApplication;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.StackWalker.StackFrame;
import java.lang.reflect.Field;
import java.lang.reflect.Member;
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
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.springframework.aot.agent.RecordedInvocation;
import org.springframework.aot.agent.RecordedInvocationsListener;
import org.springframework.aot.agent.RecordedInvocationsPublisher;
import org.springframework.aot.hint.MemberCategory;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.TypeReference;
import org.springframework.aot.hint.predicate.RuntimeHintsPredicates;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringApplicationAotProcessor;
import org.springframework.context.ConfigurableApplicationContext;
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
        Queue<RecordedInvocation> recorded = new ConcurrentLinkedQueue<>();
        RecordedInvocationsListener listener = recorded::add;
        RecordedInvocationsPublisher.addListener(listener);
        run(settings);
        RecordedInvocationsPublisher.removeListener(listener);
        System.out.println("RECORDED " + recorded.size());
        recorded.stream()
                .filter(invocation -> isOurs(invocation) && !matches(invocation, processor.hints))
                .map(AheadOfTimeRun::describe)
                .distinct()
                .forEach(System.out::println);
        for (String factories : List.of("LocalCacheFactory", "NodeFactory")) {
            printUnmatchedCaches(factories, processor.hints);
        }
        System.exit(0);
    }

    /** The agent fails for classes that no hint can name, such as those of lambda expressions. */
    @SuppressWarnings("removal")
    private static boolean matches(RecordedInvocation invocation, RuntimeHints hints) {
        try {
            return invocation.matches(hints);
        } catch (IllegalArgumentException unnamed) {
            return false;
        }
    }

    /**
     * Returns whether ratelimit made the call, or had one of its own members called or resources read. Spring itself looks
     * for methods of all beans and properties, and so does the scanner for annotations: what is missing there is skipped.
     */
    @SuppressWarnings("removal")
    private static boolean isOurs(RecordedInvocation invocation) {
        String caller = invocation
                .getStackFrames()
                .map(StackFrame::getClassName)
                .filter(name -> !name.startsWith("java.") && !name.startsWith("org.springframework.util."))
                .findFirst()
                .orElse("");
        String subject = subject(invocation);
        return isOurs(caller) && !caller.endsWith("RateLimitedScanner")
                || invocation.getMethodReference().toString().startsWith("java.lang.reflect.") && isOurs(subject)
                || subject.startsWith("io/ratelimit/");
    }

    private static boolean isOurs(String type) {
        return type.startsWith("io.ratelimit.")
                && !type.startsWith(SampleApplication.class.getPackageName())
                && !type.startsWith(AheadOfTimeRun.class.getPackageName());
    }

    /** Returns the class of the member that was used, or the name that was looked up. */
    @SuppressWarnings("removal")
    private static String subject(RecordedInvocation invocation) {
        Object subject = invocation.isStatic() ? invocation.getArgument(0) : invocation.getInstance();
        if (subject instanceof Member member) {
            return member.getDeclaringClass().getName();
        }
        return subject instanceof Class<?> type
                ? type.getName()
                : invocation.getArguments().stream().findFirst().orElse("").toString();
    }

    @SuppressWarnings("removal")
    private static String describe(RecordedInvocation invocation) {
        return "UNMATCHED " + invocation.getMethodReference() + " " + subject(invocation) + " from "
                + invocation.getStackFrames().limit(8).toList();
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
                    AheadOfTimeApplication.class,
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

    /** Finds the generated code by the name of the main class, which Spring Boot would take from the stack. */
    private static SpringApplication application() {
        SpringApplication application = new SpringApplication(AheadOfTimeApplication.class);
        application.setMainApplicationClass(AheadOfTimeApplication.class);
        return application;
    }

    private static void run(String[] settings) {
        try (ConfigurableApplicationContext context = application().run(settings)) {
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
}
