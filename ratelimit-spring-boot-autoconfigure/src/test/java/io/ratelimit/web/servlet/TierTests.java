package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.annotation.RateLimited;
import io.ratelimit.key.KeyResolver;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Requests of one policy that belong to tiers. */
class TierTests {

    private static final String YAML = """
            ratelimit:
              policies:
                plans:
                  key: user
                  rate: 2/1h
                  tiers:
                    pro: { rate: 10/1h, capacity: 12 }
                    team: { rate: 5/1h }
                  tier: role
                  overrides:
                    - { keys: [boss], rate: 20/1h }
                  paths: /api
                work:
                  rate: 3/1h
                  tiers:
                    critical: { rate: 100/1h }
                    low: { rate: 1/1h }
                  tier: "expression:header('Priority')"
                  paths: /work
                by-bean:
                  key: ip
                  rate: 1/1h
                  tiers: { fast: { rate: 4/1h }, very-fast: { rate: 6/1h } }
                  tier: bean:speed
                  paths: /bean
                called:
                  applies-to: annotated
                  key: user
                  rate: 1/1h
                  tiers: { pro: { rate: 4/1h }, team: { rate: 2/1h }, free-trial: { rate: 3/1h } }
                  tier: role
                slots:
                  key: user
                  in-flight: 4
                  tiers: { pro: { rate: 10/1h } }
                  tier: role
                  paths: /slots
                queue: { rate: 10/1h, tier: role, shares: { batch: { leave: 40% } }, paths: /queue }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, RoleUsers.class, Resolvers.class, Api.class);

    private int allowed(String path, String... headers) {
        int allowed = 0;
        while (server.http().get(path, headers).status() == 200) {
            allowed++;
        }
        return allowed;
    }

    @ParameterizedTest
    @CsvSource({"free, 2", "pro, 12", "team, 5", "pro-and-team, 12", "boss, 20"})
    void eachPlanHasItsRate(String user, int requests) {
        assertThat(allowed("/api", basic(user))).isEqualTo(requests);
    }

    @Test
    void rejectionAndHeadersShowTheLimitOfTheTier() {
        assertThat(server.http().get("/api", basic("team")).header("RateLimit-Policy"))
                .isEqualTo("\"plans\";q=5;w=3600");
    }

    @Test
    void aFloodOfOneTierLeavesTheOthersAlone() {
        assertThat(allowed("/work", "Priority: low", basic("free"))).isEqualTo(1);
        assertThat(allowed("/work", "Priority: nonsense", basic("free"))).isEqualTo(3);
        assertThat(allowed("/work", basic("free"))).as("the same bucket").isZero();
        assertThat(allowed("/work", "Priority: CRITICAL", basic("free"))).isEqualTo(100);
    }

    @Test
    void aTierBelongsToTheKey() {
        assertThat(allowed("/bean", "Speed: fast", basic("free"))).isEqualTo(4);
        assertThat(allowed("/bean", "Speed: slow", basic("free"))).isEqualTo(1);
        assertThat(allowed("/bean", "Speed: very_fast", basic("free"))).isEqualTo(6);
        assertThat(server.http()
                        .from("127.0.0.2")
                        .get("/bean", "Speed: fast", basic("free"))
                        .status())
                .isEqualTo(200);
    }

    @ParameterizedTest
    @CsvSource({"free, 1, 2", "pro, 4, 2", "team, 2, 0"})
    void anAnnotatedPolicyHasItsTiersUnlessTheAnnotationNamesOne(String user, int byRole, int asTeam) {
        assertThat(allowed("/called", basic(user))).isEqualTo(byRole);
        assertThat(allowed("/called-as-team", basic(user))).isEqualTo(asTeam);
        assertThat(allowed("/called-as-trial", basic(user))).isEqualTo(3);
    }

    @Test
    void aTierHasALevelWhereThePolicyHasNoRate() {
        assertThat(server.http().get("/slots", basic("pro")).header("RateLimit-Policy"))
                .isEqualTo("\"slots\";q=10;w=3600");
        assertThat(server.http().get("/slots", basic("free")).header("RateLimit-Policy"))
                .isNull();
    }

    @Test
    void aRoleSelectsAShareWhereAllSharesLeave() {
        assertThat(allowed("/queue", basic("batch"))).isEqualTo(6);
        assertThat(allowed("/queue", basic("free"))).isEqualTo(4);
    }

    @Test
    void aTierThatFailsIsTheRateOfThePolicy() {
        assertThat(allowed("/bean", basic("free"))).isEqualTo(1);
    }

    @Configuration(proxyBeanMethods = false)
    static class Resolvers {

        @Bean
        KeyResolver speed() {
            return request -> request.header("Speed").toUpperCase(Locale.ROOT);
        }
    }

    @RestController
    static class Api {

        @GetMapping({"/api", "/work", "/bean", "/slots", "/queue"})
        String answer() {
            return "done";
        }

        @GetMapping("/called")
        @RateLimited("called")
        public String called() {
            return "done";
        }

        @GetMapping("/called-as-trial")
        @RateLimited(policy = "called", tier = "'FREE_TRIAL'")
        public String calledAsTrial() {
            return "done";
        }

        @GetMapping("/called-as-team")
        @RateLimited(policy = "called", tier = "'TEAM'")
        public String calledAsTeam() {
            return "done";
        }
    }
}
