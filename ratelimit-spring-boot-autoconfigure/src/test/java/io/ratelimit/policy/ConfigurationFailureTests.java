package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.YamlApplication;
import io.ratelimit.key.KeyResolver;
import io.ratelimit.key.RequestFacts;
import io.ratelimit.policy.RateLimitProperties.Policy;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/**
 * The reports of mistakes in the configuration that stop the start. The cases are data, in
 * {@code src/test/resources/configuration-failures}: after {@code ===} the name of the case, the kind of application and
 * its variables if any, its {@code application.yml}, and after {@code --- report} the expected report.
 *
 * <p>A YAML that begins with {@code policy:} consists of properties of the policy {@code api}, from line 5 on.
 * The report has exactly these lines.
 */
@ExtendWith(OutputCaptureExtension.class)
public class ConfigurationFailureTests {

    private static final Path CASES = Path.of("src/test/resources/configuration-failures");
    private static final String POLICY = "ratelimit:\n  policies:\n    api:\n      rate: 5/s\n      ";
    private static final Pattern SHARED = Pattern.compile("(?i)backend|redis|jdbc");
    private static final String FILE = "URL [file:application.yml] - ";

    @TempDir
    private Path directory;

    @ParameterizedTest(name = "{0}")
    @MethodSource("cases")
    void aMistakeStopsTheStartWithAReport(String name, Case mistake, CapturedOutput output) {
        String report = mistake.application(directory).failure(output);

        assertThat(lines(report)).containsExactlyElementsOf(mistake.report());
    }

    private static List<String> lines(String report) {
        return report.replace(FILE, "line ")
                .lines()
                .map(String::strip)
                .filter(line -> !line.isEmpty() && !line.equals("Description:") && !line.equals("Action:"))
                .toList();
    }

    @Test
    void theLongestNameIsStillAName() {
        new YamlApplication(directory, "ratelimit.policies." + "a".repeat(64) + ".rate: 5/s")
                .start()
                .close();
    }

    static Stream<Arguments> cases() throws IOException {
        List<Arguments> cases = new ArrayList<>();
        try (Stream<Path> files = Files.list(CASES)) {
            for (Path file : files.sorted(Comparator.naturalOrder()).toList()) {
                for (String text :
                        Files.readString(file).substring("=== ".length()).split("\n=== ")) {
                    Case read = Case.read(text);
                    cases.add(arguments(file.getFileName() + ": " + read.name() + ": " + read.yaml(), read));
                }
            }
        }
        return cases.stream();
    }

    /** One mistake. */
    record Case(String name, List<String> options, String yaml, List<String> report) {

        static Case read(String text) {
            List<String> options = new ArrayList<>();
            List<String> yaml = new ArrayList<>();
            List<String> report = new ArrayList<>();
            List<String> lines = text.strip().lines().toList();
            List<String> target = yaml;
            for (String line : lines.subList(1, lines.size())) {
                if (line.equals("--- report")) {
                    target = report;
                } else if (line.startsWith("--- ")) {
                    options.add(line.substring("--- ".length()));
                } else {
                    target.add(line);
                }
            }
            return new Case(
                    lines.get(0),
                    options,
                    String.join("\n", yaml),
                    report.stream().map(Case::withNames).toList());
        }

        /** Inserts the names of all properties, so that a new property changes no case. */
        private static String withNames(String line) {
            return line.replace("${application}", names(RateLimitProperties.class))
                    .replace("${policy}", names(Policy.class));
        }

        private static String names(Class<? extends Record> properties) {
            return String.join(
                    ", ", PolicyNames.namesOf(properties).stream().sorted().toList());
        }

        YamlApplication application(Path directory) {
            String text = yaml.startsWith("policy: ") ? POLICY + yaml.substring("policy: ".length()) : yaml;
            YamlApplication application = new YamlApplication(directory, text);
            if (!SHARED.matcher(options + yaml).find()) {
                application.with(Limits.class);
            }
            for (String option : options) {
                int equals = option.indexOf('=');
                String name = equals < 0 ? option : option.substring(option.lastIndexOf(' ', equals) + 1, equals);
                if (option.equals("web")) {
                    application.withWeb();
                } else if (option.equals("web with key resolvers")) {
                    application.withWeb(Resolvers.class);
                } else if (option.startsWith("environment ")) {
                    application.withVariable(name, option.substring(equals + 1));
                } else {
                    application.withSystemProperty(name, option.substring(equals + 1));
                }
            }
            return application;
        }
    }

    /** The limits alone, for mistakes that concern no shared backend. */
    @Configuration(proxyBeanMethods = false)
    @Import(RateLimitAutoConfiguration.class)
    public static class Limits {}

    @Configuration(proxyBeanMethods = false)
    @Import(YamlApplication.WebMvc.class)
    public static class Resolvers {

        @Bean
        KeyResolver tenantKey() {
            return request -> request.header("X-Tenant");
        }

        @Bean
        KeyResolver userKey() {
            return RequestFacts::user;
        }
    }
}
