package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.annotation.RateLimited;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** The lines of the start-up log about policies whose requests and calls may wait. */
class WaitingLogTests extends CapturedStart {

    private static final String TWO = """
            ratelimit.policies:
              a: { rate: 5/s, max-wait: 2s, queue-limit: 150 }
              b: { rate: 5/s, max-wait: 2s, queue-limit: %s, applies-to: annotated }
            """;

    private static final String ADVICE =
            " threads: while all threads wait, no other request is served, not even one that no policy limits."
                    + " Set a lower 'queue-limit', a higher 'server.tomcat.threads.max', or"
                    + " 'spring.threads.virtual.enabled: true' on Java 21 or later";

    @Test
    void aPolicyThatMayWaitIsLoggedWithItsQueueWaitAndPhase() {
        assertThat(log("""
                ratelimit.policies:
                  derived: { rate: 5/s, key: ip, max-wait: 1500ms, queue-limit: 7 }
                  written: { rate: 5/s, max-wait: 2s, phase: before-authentication }
                  user: { rate: 5/s, key: header:X-A, cost: "roles.size() + 1", max-wait: 2s }
                  none: { rate: 5/s, max-wait: 0s, queue-limit: 7 }
                  watched: { rate: 5/s, max-wait: 2s, mode: shadow }
                """))
                .filteredOn(line -> line.startsWith("INFO ") && !line.startsWith(SUMMARY))
                .containsExactly(
                        "INFO derived: 5/1s, capacity 5, a bucket for each ip; all requests; waits at most 1500ms, queue 7; after authentication, because requests may wait",
                        "INFO written: 5/1s, capacity 5, one bucket; all requests; waits at most 2s, queue 20; before authentication",
                        "INFO user: 5/1s, capacity 5, a bucket for each header:x-a, roles.size() + 1 tokens a request; all requests; waits at most 2s, queue 20; after authentication",
                        "INFO none: 5/1s, capacity 5, one bucket; all requests; before authentication",
                        "INFO watched (shadow mode): 5/1s, capacity 5, one bucket; all requests; waits at most 2s, queue 20; after authentication, because requests may wait");
    }

    @Test
    void theWaitOfAnAnnotationIsLogged() {
        assertThat(new YamlApplication(directory, "ratelimit.policies.b: { rate: 5/s, applies-to: annotated }")
                        .withWeb(Annotated.class)
                        .log(output))
                .filteredOn(line -> !line.startsWith(SUMMARY))
                .containsExactly("INFO b: 5/1s, capacity 5, one bucket; calls of " + Work.class.getName()
                        + ".work(), where at most 20 wait in the queue, for at most 3s");
    }

    @Test
    void warnsOfAQueueInWhichNoCallWaits() {
        assertThat(new YamlApplication(
                                directory, "ratelimit.policies.c: { rate: 5/s, queue-limit: 4, applies-to: annotated }")
                        .withWeb(Unwaiting.class)
                        .log(output))
                .contains("WARN Throttle policy 'c' has a queue-limit but no max-wait, so no call waits. Set the"
                        + " longest wait, for example 'ratelimit.policies.c.max-wait: 2s', or remove the"
                        + " queue-limit");
        assertThat(new YamlApplication(
                                directory, "ratelimit.policies.b: { rate: 5/s, queue-limit: 4, applies-to: annotated }")
                        .withWeb(Annotated.class)
                        .log(output))
                .noneMatch(line -> line.startsWith("WARN "));
    }

    @Test
    void warnsIfAllThreadsMayWait() {
        assertThat(warnings(TWO.formatted(50)))
                .containsExactly(
                        "WARN Up to 200 requests may wait in queues (a: 150, b: 50), and Tomcat has 200" + ADVICE);
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

    /** The server of a web archive may have any number of threads, so the log states none. */
    @Test
    void theWarningForAnUnknownServerHasNoNumberOfThreads() {
        String yaml = TWO.formatted(50) + "server.tomcat.threads.max: 1000";
        assertThat(new YamlApplication(directory, yaml).withWeb().log(output))
                .filteredOn(line -> line.startsWith("WARN Up to"))
                .containsExactly(
                        "WARN Up to 200 requests may wait in queues (a: 150, b: 50), and each occupies a thread of"
                                + " the server: while all threads wait, no other request is served, not even one"
                                + " that no"
                                + " policy limits. Set a lower 'queue-limit', more threads of the server, or"
                                + " 'spring.threads.virtual.enabled: true' on Java 21 or later");
    }

    @Test
    void doesNotWarnOfQueuesInWhichNoRequestWaits() {
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
                .contains("WARN Up to 20 requests may wait in queues (b: 20), and Tomcat has 20" + ADVICE);
    }

    @Test
    @EnabledForJreRange(min = JRE.JAVA_21)
    void virtualThreadsAreAlwaysEnough() {
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
        return new YamlApplication(directory, yaml)
                .withWeb(YamlApplication.OnTomcat.class)
                .log(output);
    }

    private List<String> warnings(String yaml) {
        return log(yaml).stream().filter(line -> line.startsWith("WARN Up to")).toList();
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
    @Import({YamlApplication.OnTomcat.class, Work.class})
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
