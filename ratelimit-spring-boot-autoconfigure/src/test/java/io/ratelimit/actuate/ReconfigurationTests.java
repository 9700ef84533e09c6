package io.ratelimit.actuate;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.RoleUsers;
import io.ratelimit.web.servlet.TestServer;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Limits of a running application are changed through its bean {@link Throttlers}. */
@ExtendWith(OutputCaptureExtension.class)
class ReconfigurationTests {

    private static final String YAML = """
            ratelimit:
              client-ip.trusted-proxies: 127.0.0.1
              policies:
                all: { rate: 3/1d, paths: /all }
                mine:
                  key: user
                  rate: 5/1d
                  paths: /mine
                  overrides:
                    - { keys: [boss], rate: 20/1d }
                    - { keys: [bot], mode: shadow }
                addresses:
                  key: ip
                  rate: 1/1d
                  paths: /addresses
                  overrides:
                    - { keys: [10.0.0.0/8], rate: 4/1d }
                    - { keys: [192.0.2.0/24], mode: shadow }
                plans:
                  key: user
                  rate: 2/1d
                  tiers: { pro: { rate: 4/1d }, team: { rate: 3/1d } }
                  tier: role
                  paths: /plans
                work: { rate: 2/1d, applies-to: annotated }
                tenants: { key: user, rate: 2/1d, tiers: { vip: { rate: 4/1d } }, tier: role, applies-to: annotated }
                priced: { rate: 50/1d, cost: 10, tiers: { low: { rate: 20/1d } }, tier: "header:Tier", paths: /priced }
                capped:
                  rate: 50/1d
                  cost: query('n')
                  max-cost: 20
                  tiers: { low: { rate: 30/1d } }
                  tier: header:Tier
                  paths: /capped
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, RoleUsers.class, Api.class);

    private final RawHttp http = server.http();
    private final Throttlers throttlers = server.bean(Throttlers.class);
    private ThrottlePolicy changed;

    /** Restores the configured limits before each test. */
    @BeforeEach
    void nothingIsChanged() {
        assertThat(throttlers.get("mine").policy().spec()).isEqualTo(BucketSpec.of("5/1d"));
    }

    @AfterEach
    void changeBack() {
        if (changed != null) {
            throttlers.get(changed.name()).reconfigure(changed.spec());
            changed.tiers()
                    .forEach((tier, spec) -> throttlers.get(changed.name()).reconfigure(tier, spec));
        }
    }

    private void reconfigure(String policy, String rate) {
        changed = throttlers.get(policy).policy();
        throttlers.get(policy).reconfigure(BucketSpec.of(rate));
    }

    private void reconfigure(String policy, String tier, String rate) {
        changed = throttlers.get(policy).policy();
        throttlers.get(policy).reconfigure(tier, BucketSpec.of(rate));
    }

    private int allowed(String path, String... headers) {
        int allowed = 0;
        for (int i = 0; i < 30; i++) {
            int status = http.get(path, headers).status();
            assertThat(status).isIn(200, 429);
            allowed += status == 200 ? 1 : 0;
        }
        return allowed;
    }

    @Test
    void aUserWithoutTokensForTheDayIsServedWithinTheMinuteAfterTheRateRises() {
        assertThat(allowed("/mine", basic("alice"))).isEqualTo(5);
        assertThat(http.get("/mine", basic("alice")).header("Retry-After")).isEqualTo("17280");

        reconfigure("mine", "5/1m");

        Response refused = http.get("/mine", basic("alice"));
        assertThat(refused.status()).isEqualTo(429);
        assertThat(refused.header("Retry-After")).isEqualTo("12");
        assertThat(refused.header("RateLimit-Policy")).isEqualTo("\"mine\";q=5;w=60");
        server.advance(Duration.ofSeconds(12));
        Response served = http.get("/mine", basic("alice"));
        assertThat(served.status()).isEqualTo(200);
        assertThat(served.header("RateLimit-Policy")).isEqualTo("\"mine\";q=5;w=60");
        assertThat(http.get("/mine", basic("bob")).header("RateLimit")).isEqualTo("\"mine\";r=4;t=12");
    }

    @ParameterizedTest
    @CsvSource({"/all, all, 3", "/mine, mine, 5", "/work, work, 2", "/tenant, tenants, 2", "/own, own, 2", "/by, by, 2"
    })
    void theNextRequestsFollow(String path, String policy, int before) {
        String alice = basic("alice");
        assertThat(allowed(path, alice)).isEqualTo(before);
        reconfigure(policy, "9/1h");
        assertThat(allowed(path, alice)).as("none come with it").isZero();
        server.advance(Duration.ofHours(1));
        assertThat(allowed(path, alice)).isEqualTo(9);
        throttlers.get(policy).reconfigure(BucketSpec.of("4/1h"));
        server.advance(Duration.ofHours(1));
        assertThat(allowed(path, alice)).isEqualTo(4);
    }

    @Test
    void aTierFollowsForItself() {
        assertThat(http.get("/plans", basic("pro")).status()).isEqualTo(200);
        reconfigure("plans", "pro", "8/1d");
        assertThat(allowed("/plans", basic("pro"))).as("those that were left").isEqualTo(3);
        assertThat(allowed("/plans", basic("pro-and-team"))).isEqualTo(8);
        assertThat(allowed("/plans", basic("team"))).isEqualTo(3);
        assertThat(allowed("/plans", basic("free"))).isEqualTo(2);
    }

    @Test
    void aUserWithRolesOfSeveralTiersBelongsToTheTierWithTheHighestLimitNow() {
        assertThat(http.get("/plans", basic("pro-and-team")).header("RateLimit-Policy"))
                .isEqualTo("\"plans\";q=4;w=86400");
        reconfigure("plans", "pro", "1/1d");
        assertThat(http.get("/plans", basic("pro-and-team")).header("RateLimit-Policy"))
                .isEqualTo("\"plans\";q=3;w=86400");
    }

    @Test
    void overriddenLimitsAreKeptAndOverriddenModesFollowTheChange(CapturedOutput output) {
        reconfigure("mine", "3/1d");
        assertThat(allowed("/mine", basic("boss"))).isEqualTo(20);
        assertThat(allowed("/mine", basic("alice"))).isEqualTo(3);
        int logged = output.getAll().length();
        assertThat(allowed("/mine", basic("bot"))).isEqualTo(30);
        assertThat(throttlers.get("mine").policy().mode()).isEqualTo(ThrottlePolicy.Mode.ENFORCE);
        server.advance(Duration.ofSeconds(11));
        http.get("/mine", basic("bot"));
        assertThat(output.getAll().substring(logged))
                .containsPattern("'mine' denied .* requests?.*; it is in shadow mode");
    }

    @Test
    void overriddenNetworksKeepTheirLimitToo() {
        reconfigure("addresses", "2/1d");
        String alice = basic("alice");
        assertThat(allowed("/addresses", alice, "X-Forwarded-For: 10.1.2.3")).isEqualTo(4);
        assertThat(allowed("/addresses", alice, "X-Forwarded-For: 11.1.2.3")).isEqualTo(2);
        assertThat(allowed("/addresses", alice, "X-Forwarded-For: 192.0.2.1")).isEqualTo(30);
    }

    @Test
    void aCapacityBelowTheCostIsRejectedAndTheOldLimitStays() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> reconfigure("priced", "9/1m"))
                .withMessage("capacity of 'priced' must be at least the cost of the policy, 10, but was 9");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> reconfigure("priced", "low", "9/1m"))
                .withMessage("capacity of the tier 'low' of 'priced' must be at least the cost of the policy, 10, but"
                        + " was 9");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> reconfigure("capped", "19/1m"))
                .withMessage("capacity of 'capped' must be at least the max-cost of the policy, 20, but was 19");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> reconfigure("capped", "low", "19/1m"))
                .withMessage("capacity of the tier 'low' of 'capped' must be at least the max-cost of the policy, 20,"
                        + " but was 19");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> reconfigure("tenants", "1/1m"))
                .withMessageMatching("capacity of 'tenants' must be at least 2, the cost of @RateLimited on .*Api"
                        + "\\.two.*, but was 1: no call could ever be allowed");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> reconfigure("tenants", "vip", "1/1m"))
                .withMessageStartingWith("capacity of the tier 'vip' of 'tenants' must be at least 2, the cost of");
        assertThat(allowed("/priced", basic("alice"))).isEqualTo(5);
        reconfigure("priced", "10/1m");
        reconfigure("capped", "20/1m");
    }

    @ParameterizedTest
    @ValueSource(strings = {"own", "by", "work"})
    void aLimitIsChangedByItsNameWhereverItIsWritten(String policy, CapturedOutput output) {
        reconfigure(policy, "9/1h");
        reconfigure(policy, "9/1h");
        assertThat(output.getAll().lines().filter(line -> line.contains("'" + policy + "' was changed")))
                .singleElement()
                .asString()
                .endsWith("Throttle policy '" + policy + "' was changed at runtime: 9/1h, capacity 9; before: 2/1d,"
                        + " capacity 2");
        changed = changed.withSpec(BucketSpec.of("2/1d"));
    }

    @Test
    void aChangeOfATierIsLogged(CapturedOutput output) {
        reconfigure("plans", "team", "9/1h");
        assertThat(output)
                .contains("Throttle policy 'plans' in tier 'team' was changed at runtime: 9/1h, capacity 9; before:"
                        + " 3/1d, capacity 3");
    }

    @RestController
    static class Api {

        @GetMapping({"/all", "/mine", "/addresses", "/plans", "/priced", "/capped"})
        String answer() {
            return "done";
        }

        @GetMapping("/work")
        @RateLimited("work")
        public String constant() {
            return "done";
        }

        @GetMapping("/tenant")
        @RateLimited(policy = "tenants", key = "'tenant-' + #p0")
        public String tenant(String name) {
            return "done";
        }

        @GetMapping("/two")
        @RateLimited(policy = "tenants", cost = "2")
        public String two() {
            return "done";
        }

        @GetMapping("/own")
        @RateLimited(name = "own", rate = "2/1d")
        public String own() {
            return "done";
        }

        @GetMapping("/by")
        @RateLimited(name = "by", rate = "2/1d", key = "#name")
        public String by(String name) {
            return "done";
        }
    }
}
