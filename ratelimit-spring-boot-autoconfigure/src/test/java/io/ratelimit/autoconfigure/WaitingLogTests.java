package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.annotation.RateLimited;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** What the log says at the start of policies that let requests and calls wait. */
@ExtendWith(OutputCaptureExtension.class)
class WaitingLogTests {

    private static final String TWO = """
            ratelimit.policies:
              a: { rate: 5/s, max-wait: 2s, queue-limit: 150 }
              b: { rate: 5/s, max-wait: 2s, queue-limit: %s, applies-to: annotated }
            """;

    private static final String ADVICE =
            " threads: while so many wait, nobody else is served, not even whom no policy limits."
                    + " Say a lower 'queue-limit', a higher 'server.tomcat.threads.max', or"
                    + " 'spring.threads.virtual.enabled: true' on Java 21 or later";

    @TempDir
    private Path directory;

    private CapturedOutput output;

    @BeforeEach
    void capture(CapturedOutput output) {
        this.output = output;
    }

    @Test
    void howManyWaitAndHowLongAndWhereTheyAreAsked() {
        assertThat(log("""
                ratelimit.policies:
                  derived: { rate: 5/s, key: ip, max-wait: 1500ms, queue-limit: 7 }
                  written: { rate: 5/s, max-wait: 2s, phase: before-authentication }
                  user: { rate: 5/s, key: header:X-A, cost: "roles.size() + 1", max-wait: 2s }
                  none: { rate: 5/s, max-wait: 0s, queue-limit: 7 }
                  watched: { rate: 5/s, max-wait: 2s, mode: shadow }
                """))
                .filteredOn(line -> line.startsWith("INFO "))
                .containsExactly(
                        "INFO Throttle policy 'derived' is enforced: 5/1s, capacity 5, a bucket for each ip, at most 7"
                                + " wait in line, for at most 1500ms, in memory; all methods, all paths, after"
                                + " authentication, since it lets requests wait",
                        "INFO Throttle policy 'user' is enforced: 5/1s, capacity 5, a bucket for each header:x-a,"
                                + " roles.size() + 1 tokens a request, at most 20 wait in line, for at most 2s, in memory;"
                                + " all methods, all paths, after authentication",
                        "INFO Throttle policy 'none' is enforced: 5/1s, capacity 5, one bucket, in memory; all methods,"
                                + " all paths, before authentication",
                        "INFO Throttle policy 'watched' is in shadow mode (refuses nothing, keeps nobody waiting): 5/1s,"
                                + " capacity 5, one bucket, at most 20 wait in line, for at most 2s, in memory; all"
                                + " methods, all paths, after authentication, since it lets requests wait",
                        "INFO Throttle policy 'written' is enforced: 5/1s, capacity 5, one bucket, at most 20 wait in"
                                + " line, for at most 2s, in memory; all methods, all paths, before authentication");
    }

    @Test
    void whatAnAnnotationSaysOfItsCalls() {
        assertThat(new YamlApplication(directory, "ratelimit.policies.b: { rate: 5/s, applies-to: annotated }")
                        .withWeb(Annotated.class)
                        .log(output))
                .containsExactly(
                        "INFO Throttle policy 'b' is enforced: 5/1s, capacity 5, one bucket, in memory; calls of "
                                + Work.class.getName() + ".work(), where at most 20 wait in line, for at most 3s");
    }

    @Test
    void aQueueOfCallsWhereNobodyWaits() {
        assertThat(new YamlApplication(
                                directory, "ratelimit.policies.c: { rate: 5/s, queue-limit: 4, applies-to: annotated }")
                        .withWeb(Unwaiting.class)
                        .log(output))
                .contains(
                        "WARN Throttle policy 'c' has a queue-limit, but lets no call wait. Say for how long they may, as"
                                + " in 'ratelimit.policies.c.max-wait: 2s', or remove the queue-limit");
        assertThat(new YamlApplication(
                                directory, "ratelimit.policies.b: { rate: 5/s, queue-limit: 4, applies-to: annotated }")
                        .withWeb(Annotated.class)
                        .log(output))
                .noneMatch(line -> line.startsWith("WARN "));
    }

    @Test
    void warnsWhereAsManyMayWaitAsThereAreThreads() {
        assertThat(warnings(TWO.formatted(50)))
                .containsExactly(
                        "WARN As many as 200 requests may wait in line (a: 150, b: 50), and Tomcat has 200" + ADVICE);
        assertThat(warnings(TWO.formatted(49))).isEmpty();
    }

    @Test
    void theThreadsAreThoseOfTheServersProperties() {
        assertThat(warnings(TWO.formatted(50) + "server.tomcat.threads.max: 201"))
                .isEmpty();
        assertThat(warnings(TWO.formatted(4) + "server.tomcat.threads.max: 154"))
                .hasSize(1);
        assertThat(new YamlApplication(directory, TWO.formatted(4) + "server.jetty.threads.max: 154")
                        .withWeb(OnJetty.class)
                        .log(output))
                .anyMatch(line -> line.contains("and Jetty has 154 threads")
                        && line.contains("a higher 'server.jetty.threads.max'"));
    }

    @Test
    void doesNotWarnOfQueuesInWhichNobodyWaits() {
        assertThat(warnings("""
                server.tomcat.threads.max: 50
                ratelimit.policies:
                  a: { rate: 5/s, max-wait: 2s, queue-limit: 500, mode: shadow }
                  b: { rate: 5/s, max-wait: 0s, queue-limit: 500 }
                  c: { rate: 5/s }
                """)).isEmpty();
    }

    @Test
    void warnsOfCallsThatWaitByTheirAnnotationAlone() {
        assertThat(new YamlApplication(directory, """
                server.tomcat.threads.max: 20
                ratelimit.policies.b: { rate: 5/s, applies-to: annotated }
                """).withWeb(Annotated.class).log(output))
                .contains("WARN As many as 20 requests may wait in line (b: 20), and Tomcat has 20" + ADVICE);
    }

    @Test
    @EnabledForJreRange(min = JRE.JAVA_21)
    void withVirtualThreadsThereAreEnough() {
        assertThat(warnings(TWO.formatted(5000) + "spring.threads.virtual.enabled: true"))
                .isEmpty();
    }

    /** Spring Boot uses platform threads then, whatever the property says. */
    @Test
    @EnabledForJreRange(max = JRE.JAVA_20)
    void beforeJava21ThereAreNone() {
        assertThat(warnings(TWO.formatted(50) + "spring.threads.virtual.enabled: true"))
                .hasSize(1);
    }

    private List<String> log(String yaml) {
        return new YamlApplication(directory, yaml).withWeb().log(output);
    }

    private List<String> warnings(String yaml) {
        return log(yaml).stream()
                .filter(line -> line.startsWith("WARN As many"))
                .toList();
    }

    static class Work {

        @RateLimited(policy = "b", maxWait = "3s")
        public void work() {}
    }

    static class Other {

        @RateLimited("c")
        public void work() {}
    }

    @Configuration(proxyBeanMethods = false)
    @Import({YamlApplication.WebMvc.class, Work.class})
    static class Annotated {}

    @Configuration(proxyBeanMethods = false)
    @Import({YamlApplication.WebMvc.class, Other.class})
    static class Unwaiting {}

    @Configuration(proxyBeanMethods = false)
    @Import(YamlApplication.WebMvc.class)
    static class OnJetty {

        @Bean
        Object jettyServletWebServerFactory() {
            return new Object();
        }
    }
}
