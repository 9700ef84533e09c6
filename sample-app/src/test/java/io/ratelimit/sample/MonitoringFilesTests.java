package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.jayway.jsonpath.JsonPath;
import io.ratelimit.Throttlers;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Import;
import org.yaml.snakeyaml.Yaml;

/**
 * The dashboard for Grafana and the alert rules, against a scrape of the sample. A policy in a Redis that can't be reached
 * gives the meters of a backend and of leases.
 */
@SpringBootTest(
        webEnvironment = WebEnvironment.RANDOM_PORT,
        properties = {
            "management.endpoint.ratelimitdashboard.access=none",
            "spring.data.redis.host=127.0.0.1",
            "spring.data.redis.port=1",
            "ratelimit.policies.shared.backend=redis",
            "ratelimit.policies.shared.rate=5/1m",
            "ratelimit.policies.shared.lease=1s",
            "ratelimit.policies.shared.applies-to=annotated",
        })
@Import(StandingTime.class)
@Tag("slow")
class MonitoringFilesTests {

    private static final Path GRAFANA = Path.of("../docs/grafana/ratelimit.json");
    private static final Path ALERTS = Path.of("../docs/prometheus/ratelimit-alerts.yml");
    private static final Path ALERT_TESTS = Path.of("../docs/prometheus/ratelimit-alerts-test.yml");
    private static final Pattern METRIC = Pattern.compile("\\b((?:ratelimit|http_server)_\\w+)(?:\\{([^}]*)})?");
    private static final Pattern LABEL = Pattern.compile("(\\w+)\\s*(=~|=|!=)\\s*\"([^\"]*)\"");
    private static final String ADMIN = "Basic " + Base64.getEncoder().encodeToString("admin:admin".getBytes());

    private final HttpClient client = HttpClient.newHttpClient();
    private final int port;
    private final Throttlers throttlers;

    @TempDir
    private Path directory;

    MonitoringFilesTests(@LocalServerPort int port, @Autowired Throttlers throttlers) {
        this.port = port;
        this.throttlers = throttlers;
    }

    @Test
    void eachMetricAndLabelIsInAScrapeOfTheSample() throws Exception {
        traffic();
        String scrape = get("http://localhost:" + port + "/actuator/prometheus");
        List<String> expressions = expressions();
        assertThat(expressions).hasSizeGreaterThan(15);
        for (String expression : expressions) {
            Matcher metric = METRIC.matcher(expression);
            assertThat(metric.find()).as(expression).isTrue();
            do {
                assertIsIn(scrape, metric.group(1), metric.group(2) == null ? "" : metric.group(2));
            } while (metric.find());
            for (String label : grouped(expression)) {
                assertThat(scrape).as(expression).containsPattern("\\{[^}]*\\b" + label + "=");
            }
        }
    }

    private static void assertIsIn(String scrape, String metric, String selector) {
        List<String> series =
                scrape.lines().filter(line -> line.startsWith(metric + "{")).toList();
        assertThat(series).as(metric).isNotEmpty();
        Matcher label = LABEL.matcher(selector);
        while (label.find()) {
            String value = label.group(3).startsWith("$") ? ".*" : label.group(3);
            Pattern wanted = Pattern.compile(".*\\b" + label.group(1) + "=\"(" + value + ")\".*");
            assertThat(series).as("%s{%s}", metric, selector).anyMatch(line -> wanted.matcher(line)
                    .matches());
        }
    }

    private static Set<String> grouped(String expression) {
        Set<String> labels = new TreeSet<>();
        Matcher group = Pattern.compile("\\b(?:by|on) \\(([^)]*)\\)").matcher(expression);
        while (group.find()) {
            labels.addAll(List.of(group.group(1).split(", ")));
        }
        return labels;
    }

    /** The rules have tests of their own, for promtool. */
    @Test
    void promtoolAcceptsTheRulesAndTheirTestsPass() throws Exception {
        Path promtool = prometheus().resolveSibling("promtool");
        run(promtool, "check", "rules", ALERTS.toString());
        run(promtool, "test", "rules", ALERT_TESTS.toString());
    }

    @Test
    void prometheusAnswersEachExpression() throws Exception {
        Path prometheus = prometheus();
        int listens = freePort();
        Files.writeString(directory.resolve("prometheus.yml"), """
                global: { scrape_interval: 1s, evaluation_interval: 1s }
                rule_files: [%s]
                scrape_configs:
                  - job_name: sample
                    metrics_path: /actuator/prometheus
                    basic_auth: { username: admin, password: admin }
                    static_configs: [{ targets: ["localhost:%d"] }]
                """.formatted(
                        ALERTS.toAbsolutePath().normalize(), port));
        Process server = new ProcessBuilder(
                        prometheus.toString(),
                        "--config.file=" + directory.resolve("prometheus.yml"),
                        "--storage.tsdb.path=" + directory.resolve("data"),
                        "--web.listen-address=127.0.0.1:" + listens)
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve("log").toFile())
                .start();
        try {
            String api = "http://127.0.0.1:" + listens + "/api/v1";
            Map<String, String> unanswered = new TreeMap<>();
            await().atMost(Duration.ofSeconds(90))
                    .pollInterval(Duration.ofMillis(200))
                    .ignoreExceptions()
                    .until(() -> {
                        traffic();
                        unanswered.clear();
                        for (String expression :
                                JsonPath.<List<String>>read(Files.readString(GRAFANA), "$..targets[*].expr")) {
                            String answer = query(api, expression);
                            if (JsonPath.<List<?>>read(answer, "$.data.result").isEmpty()) {
                                unanswered.put(expression, answer);
                            }
                        }
                        return unanswered.isEmpty()
                                && JsonPath.<List<String>>read(get(api + "/rules"), "$..rules[*].health").stream()
                                        .allMatch("ok"::equals);
                    });
            assertThat(JsonPath.<List<String>>read(get(api + "/rules"), "$..rules[*].name"))
                    .hasSize(6);
        } finally {
            server.destroy();
            server.waitFor();
        }
    }

    private String query(String api, String expression) throws Exception {
        String ready = expression.replace("$__rate_interval", "20s").replace("$policy", ".*");
        return get(api + "/query?query=" + URLEncoder.encode(ready, StandardCharsets.UTF_8));
    }

    /** Makes each kind of decision, also of a backend that fails, and a rejected request. */
    private void traffic() throws Exception {
        for (int i = 0; i < 9; i++) {
            throttlers.get("vouchers").forKey("203.0.113.7").decide(1);
            throttlers.global("shared").decide(1);
        }
        for (int i = 0; i < 110; i++) {
            throttlers.get("items-candidate").forKey("alice").decide(1);
        }
        throttlers.global("global").decide(1);
        for (int i = 0; i < 7; i++) {
            get("http://localhost:" + port + "/api/report");
        }
    }

    private List<String> expressions() throws IOException {
        List<String> expressions =
                new ArrayList<>(JsonPath.<List<String>>read(Files.readString(GRAFANA), "$..targets[*].expr"));
        try (InputStream rules = Files.newInputStream(ALERTS)) {
            Map<String, List<Map<String, List<Map<String, String>>>>> groups = new Yaml().load(rules);
            groups.get("groups")
                    .forEach(group -> group.get("rules").forEach(rule -> expressions.add(rule.get("expr"))));
        }
        return expressions;
    }

    private String get(String url) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url))
                .header("Authorization", ADMIN)
                .build();
        return client.send(request, HttpResponse.BodyHandlers.ofString()).body();
    }

    private static void run(Path program, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(program.toString()));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(output).isZero();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    /** Returns the program that {@code RATELIMIT_TEST_PROMETHEUS} names, or the installed one; skips the test without it. */
    private static Path prometheus() {
        String named = System.getenv("RATELIMIT_TEST_PROMETHEUS");
        Optional<Path> found = named != null
                ? Optional.of(Path.of(named))
                : Stream.of(System.getenv("PATH").split(File.pathSeparator))
                        .map(folder -> Path.of(folder, "prometheus"))
                        .filter(Files::isExecutable)
                        .findFirst();
        assumeTrue(
                found.isPresent(),
                "There is no Prometheus: 'apt-get install prometheus' (Debian) or RATELIMIT_TEST_PROMETHEUS");
        return found.orElseThrow();
    }
}
