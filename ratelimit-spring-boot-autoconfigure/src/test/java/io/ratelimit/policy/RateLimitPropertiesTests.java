package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Rate;
import io.ratelimit.RetryJitter;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.YamlApplication;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.policy.RateLimitProperties.GuaranteedShare;
import io.ratelimit.policy.RateLimitProperties.Headers;
import io.ratelimit.policy.RateLimitProperties.Lease;
import io.ratelimit.policy.RateLimitProperties.MaxWait;
import io.ratelimit.policy.RateLimitProperties.NamedShare;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.policy.RateLimitProperties.RejectionDelay;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.ConfigurableApplicationContext;

/** The reading of an {@code application.yml}. */
class RateLimitPropertiesTests {

    @TempDir
    private Path directory;

    @Test
    void allPropertiesHaveDefaults() {
        RateLimitProperties properties = bind("server.port: 0");

        assertThat(properties.enabled()).isTrue();
        assertThat(properties.mode()).isEqualTo(Mode.ENFORCE);
        assertThat(properties.headers()).isEqualTo(Headers.DRAFT_11);
        assertThat(properties.excludePaths()).isEmpty();
        assertThat(properties.filter().afterAuthenticationOrder()).isNull();
        assertThat(properties.policies()).isEmpty();
    }

    @Test
    void aPolicyNeedsNoMoreThanItsRate() {
        Policy policy = bind("ratelimit.policies.api.rate: 600/1m").policies().get("api");

        assertThat(policy.rate()).isEqualTo(Rate.of("600/1m"));
        assertThat(policy.capacity()).isNull();
        assertThat(policy.refill()).isEqualTo(Refill.GREEDY);
        assertThat(policy.cost().constant()).isEqualTo(1);
        assertThat(policy.maxCost()).isNull();
        assertThat(policy.settle()).isNull();
        assertThat(policy.condition()).isNull();
        assertThat(policy.key()).isEmpty();
        assertThat(policy.ignoreCase()).isTrue();
        assertThat(policy.onMissingKey()).isEqualTo(MissingKey.CLIENT_IP);
        assertThat(policy.maxKeys()).isEqualTo(100_000);
        assertThat(policy.paths()).isEmpty();
        assertThat(policy.excludePaths()).isEmpty();
        assertThat(policy.methods()).isEmpty();
        assertThat(policy.phase()).isNull();
        assertThat(policy.rejectionDelay().isNone()).isTrue();
        assertThat(policy.maxWait()).isNull();
        assertThat(policy.queueLimit()).isNull();
        assertThat(policy.lease()).isNull();
        assertThat(policy.retryJitter()).isNull();
        assertThat(policy.status()).isEqualTo(429);
        assertThat(policy.mode()).isEqualTo(Mode.ENFORCE);
    }

    /** An absent group of properties has the same defaults as an incomplete one. */
    @Test
    void absentGroupsHaveTheDefaultsOfIncompleteOnes() {
        RateLimitProperties none = bind("ratelimit.mode: enforce");

        assertThat(none.clientIp())
                .isEqualTo(bind("ratelimit.client-ip.ipv6-prefix: 64").clientIp());
        assertThat(none.clientIp())
                .isEqualTo(bind("ratelimit.client-ip.header: x-forwarded-for").clientIp());
        assertThat(none.redis())
                .isEqualTo(bind("ratelimit.redis.strategy: script").redis());
        assertThat(none.redis())
                .isEqualTo(bind("ratelimit.redis.timeout: 100ms").redis());
        assertThat(none.filter().afterAuthenticationOrder()).isNull();
        assertThat(none.policies()).isEmpty();
        assertThat(none.excludePaths()).isEmpty();
    }

    @Test
    void readsEveryPropertyInBlockStyle() {
        assertThatAllIsRead(bind("""
                ratelimit:
                  enabled: true
                  mode: shadow
                  headers: x-ratelimit
                  exclude-paths:
                    - /actuator/health/**
                    - /assets/{*path}
                  policies:
                    everything:
                      rate: 600/1m
                      capacity: 800
                      refill: interval
                      cost: 3
                      max-cost: 50
                      settle: response-header:X-Tokens
                      key:
                        - ip
                        - endpoint
                        - method
                        - header:X-Api-Key
                      ignore-case: false
                      on-missing-key: deny
                      max-keys: 5000
                      paths:
                        - /items/{id}
                        - /orders/**
                      exclude-paths:
                        - /orders/open
                      methods:
                        - GET
                        - POST
                      condition: contentLength > 0
                      phase: after-authentication
                      rejection-delay: 2s
                      max-wait: 1500ms
                      queue-limit: 7
                      lease: 0s
                      retry-jitter: 1ms-5ms
                      status: 503
                      mode: shadow
                """));
    }

    @Test
    void readsEveryPropertyInFlowStyle() {
        assertThatAllIsRead(bind("""
                ratelimit: { enabled: true, mode: shadow, headers: x-ratelimit, exclude-paths: [/actuator/health/**, '/assets/{*path}'], policies: {
                  everything: { rate: 600/1m, capacity: 800, refill: interval, cost: 3, max-cost: 50, settle: 'response-header:X-Tokens', condition: contentLength > 0, key: [ip, endpoint, method, 'header:X-Api-Key'],
                    ignore-case: false, on-missing-key: deny, max-keys: 5000, paths: ['/items/{id}', /orders/**],
                    exclude-paths: /orders/open, methods: [GET, POST], phase: after-authentication, max-wait: 1500ms, queue-limit: 7, lease: 0s,
                    rejection-delay: 2s, retry-jitter: 1ms-5ms, status: 503, mode: shadow } } }
                """));
    }

    @Test
    void readsEveryPropertyWithCommasForLists() {
        assertThatAllIsRead(bind("""
                ratelimit:
                  enabled: yes
                  mode: SHADOW
                  headers: xRatelimit
                  exclude-paths: /actuator/health/**, /assets/{*path}
                  policies:
                    everything:
                      rate: " 600 / 1m "
                      capacity: "800"
                      refill: INTERVAL
                      cost: "3"
                      maxCost: "50"
                      settle: " response-header: X-Tokens "
                      condition: contentLength > 0
                      key: ip, endpoint, method, header:X-Api-Key
                      ignoreCase: off
                      on_missing_key: DENY
                      maxKeys: 5_000
                      paths: /items/{id},/orders/**
                      excludePaths: /orders/open
                      methods: GET,POST
                      phase: AFTER_AUTHENTICATION
                      rejectionDelay: PT2S
                      maxWait: PT1.5S
                      queueLimit: "7"
                      lease: PT0S
                      retryJitter: 1ms - 5ms
                      status: "503"
                      mode: Shadow
                """));
    }

    private static void assertThatAllIsRead(RateLimitProperties properties) {
        Policy policy = properties.policies().get("everything");
        assertThat(properties.enabled()).isTrue();
        assertThat(properties.mode()).isEqualTo(Mode.SHADOW);
        assertThat(properties.headers()).isEqualTo(Headers.X_RATELIMIT);
        assertThat(properties.excludePaths()).containsExactly("/actuator/health/**", "/assets/{*path}");
        assertThat(properties.policies()).containsOnlyKeys("everything");
        assertThat(policy.rate()).isEqualTo(Rate.of("600/1m"));
        assertThat(policy.capacity()).isEqualTo(800);
        assertThat(policy.refill()).isEqualTo(Refill.INTERVAL);
        assertThat(policy.cost().constant()).isEqualTo(3);
        assertThat(policy.maxCost()).isEqualTo(50);
        assertThat(policy.settle()).hasToString("response-header:X-Tokens");
        assertThat(policy.condition()).hasToString("contentLength > 0");
        assertThat(policy.key())
                .extracting(KeyPart::name)
                .containsExactly("ip", "endpoint", "method", "header:x-api-key");
        assertThat(policy.ignoreCase()).isFalse();
        assertThat(policy.onMissingKey()).isEqualTo(MissingKey.DENY);
        assertThat(policy.maxKeys()).isEqualTo(5000);
        assertThat(policy.paths()).containsExactly("/items/{id}", "/orders/**");
        assertThat(policy.excludePaths()).containsExactly("/orders/open");
        assertThat(policy.methods()).containsExactly("GET", "POST");
        assertThat(policy.phase()).isEqualTo(Phase.AFTER_AUTHENTICATION);
        assertThat(policy.rejectionDelay()).isEqualTo(RejectionDelay.of("2s"));
        assertThat(policy.maxWait()).isEqualTo(MaxWait.of("1500ms"));
        assertThat(policy.queueLimit()).isEqualTo(7);
        assertThat(policy.lease()).isEqualTo(Lease.of("0s"));
        assertThat(policy.retryJitter()).isEqualTo(RetryJitter.of("1ms-5ms"));
        assertThat(policy.status()).isEqualTo(503);
        assertThat(policy.mode()).isEqualTo(Mode.SHADOW);
    }

    @Test
    void readsARateInEachOfItsSpellings() {
        assertThat(bind("""
                ratelimit.policies:
                  units: { rate: 600/1m }
                  bare: { rate: 10/s }
                  word: { rate: 600/minute }
                  slow: { rate: 1/2s }
                  fast: { rate: 5/100ms }
                  iso: { rate: 3/PT1M }
                  second: { rate: 1/second }
                  h: { rate: 7/h }
                  hour: { rate: 7/hour }
                  d: { rate: 2/d }
                  day: { rate: 2/day }
                  us: { rate: 4/500us }
                """).policies().values())
                .extracting(policy -> String.valueOf(policy.rate()))
                .containsExactly(
                        "600/1m", "10/1s", "600/1m", "1/2s", "5/100ms", "3/1m", "1/1s", "7/1h", "7/1h", "2/1d", "2/1d",
                        "4/500us");
    }

    /** To YAML an unquoted {@code off} is a boolean. */
    @ParameterizedTest
    @ValueSource(strings = {"off", "'off'", "OFF", "false"})
    void everySpellingOfOffIsOff(String off) {
        RateLimitProperties properties =
                bind("ratelimit: { mode: " + off + ", policies: { api: { rate: 5/s, mode: " + off + " } } }");

        assertThat(properties.mode()).isEqualTo(Mode.OFF);
        assertThat(properties.policies().get("api").mode()).isEqualTo(Mode.OFF);
    }

    @ParameterizedTest
    @CsvSource({
        "enforce, enforce, ENFORCE", "enforce, shadow, SHADOW", "enforce, off, OFF",
        "shadow, enforce, SHADOW", "shadow, shadow, SHADOW", "shadow, off, OFF",
        "off, enforce, OFF", "off, shadow, OFF", "off, off, OFF"
    })
    void theWeakerModeOfApplicationAndPolicyCounts(String application, String policy, Mode mode) {
        String yaml =
                "ratelimit: { mode: " + application + ", policies: { api: { rate: 5/s, mode: " + policy + " } } }";
        try (ConfigurableApplicationContext context = new YamlApplication(directory, yaml).start()) {
            assertThat(context.getBean(Throttlers.class).get("api").policy().mode())
                    .isEqualTo(mode);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"client-ip", "CLIENT_IP", "clientIp", "client_ip", "ClientIP"})
    void readsChoicesInAnySpelling(String spelling) {
        assertThat(bind("ratelimit.policies.api: { rate: 5/s, on-missing-key: " + spelling + " }")
                        .policies()
                        .get("api")
                        .onMissingKey())
                .isEqualTo(MissingKey.CLIENT_IP);
    }

    @Test
    void aProfileChangesWhatItNamesAndListsAsAWhole() {
        RateLimitProperties properties = read(new YamlApplication(directory, """
                ratelimit:
                  policies:
                    api: { rate: 600/1m, capacity: 800, key: [user, endpoint], paths: [/a, /b, /c] }
                """).withProfile("prod", """
                ratelimit:
                  policies:
                    api: { rate: 60/1m, paths: [/d] }
                    login: { rate: 5/1m, key: ip }
                """));

        assertThat(properties.policies()).containsOnlyKeys("api", "login");
        Policy api = properties.policies().get("api");
        assertThat(api.rate()).isEqualTo(Rate.of("60/1m"));
        assertThat(api.capacity()).isEqualTo(800);
        assertThat(api.key()).extracting(KeyPart::name).containsExactly("user", "endpoint");
        assertThat(api.paths()).containsExactly("/d");
    }

    @Test
    void fillsPlaceholders() {
        String yaml = "ratelimit.policies.api.rate: ${MY_RATE:600/1m}";

        assertThat(bind(yaml).policies().get("api").rate()).hasToString("600/1m");
        assertThat(read(new YamlApplication(directory, yaml).withVariable("MY_RATE", "7/s"))
                        .policies()
                        .get("api")
                        .rate())
                .hasToString("7/1s");
    }

    /** Elements of a list are set by index. Underscores may replace dashes, as Spring Boot allows for compatibility. */
    @Test
    void variablesChangeANamedPolicy() {
        RateLimitProperties properties = read(new YamlApplication(directory, """
                ratelimit.policies.api: { rate: 5/s, key: ip }
                ratelimit.policies.per-user: { rate: 5/s, key: user }
                """)
                .withVariable("RATELIMIT_POLICIES_API_RATE", "7/s")
                .withVariable("RATELIMIT_POLICIES_API_MAXKEYS", "9")
                .withVariable("RATELIMIT_POLICIES_API_KEY_0", "endpoint")
                .withVariable("RATELIMIT_POLICIES_API_KEY_1", "method")
                .withVariable("RATELIMIT_POLICIES_PER_USER_RATE", "8/s")
                .withVariable("RATELIMIT_POLICIES_PER_USER_MAX_KEYS", "10")
                .withVariable("RATELIMIT_MODE", "shadow")
                .withVariable("RATELIMIT_SERVICE_HOST", "10.0.0.1"));

        assertThat(properties.policies()).containsOnlyKeys("api", "per-user");
        assertThat(properties.mode()).isEqualTo(Mode.SHADOW);
        assertThat(properties.policies().get("api").rate()).hasToString("7/1s");
        assertThat(properties.policies().get("api").maxKeys()).isEqualTo(9);
        assertThat(properties.policies().get("api").key())
                .extracting(KeyPart::name)
                .containsExactly("endpoint", "method");
        assertThat(properties.policies().get("per-user").rate()).hasToString("8/1s");
        assertThat(properties.policies().get("per-user").maxKeys()).isEqualTo(10);
    }

    @Test
    void variablesChangeSharesTiersAndOverridesOfANamedPolicy() {
        RateLimitProperties properties = read(new YamlApplication(directory, """
                ratelimit.policies.per-user: { rate: 5/s, key: user, tier: role, tiers: { pro-plus: { rate: 50/s } } }
                ratelimit.policies.for-all: { rate: 1000/s, guaranteed: { key: user, rate: 5/s, for: 10 } }
                ratelimit.policies.shop: { rate: 100/s, tier: role, shares: { check-out: { guaranteed: 5/s } } }
                """)
                .withVariable("RATELIMIT_POLICIES_PER_USER_TIERS_PRO_PLUS_RATE", "60/s")
                .withVariable("RATELIMIT_POLICIES_PER_USER_TIERS_PRO_PLUS_IN_FLIGHT", "7")
                .withVariable("RATELIMIT_POLICIES_PER_USER_OVERRIDES_0_KEYS_0", "alice")
                .withVariable("RATELIMIT_POLICIES_PER_USER_OVERRIDES_0_IN_FLIGHT", "8")
                .withVariable("RATELIMIT_POLICIES_FOR_ALL_GUARANTEED_RATE", "6/s")
                .withVariable("RATELIMIT_POLICIES_FOR_ALL_GUARANTEED_KEY_0", "ip")
                .withVariable("RATELIMIT_POLICIES_SHOP_SHARES_CHECK_OUT_GUARANTEED", "7/s")
                .withVariable("RATELIMIT_POLICIES_SHOP_SHARES_CHECK_OUT_CAPACITY", "9")
                .withSystemProperty("ratelimit.policies.for-all.guaranteed.for", "20"));

        Policy perUser = properties.policies().get("per-user");
        assertThat(perUser.tiers()).containsOnlyKeys("pro-plus");
        assertThat(perUser.tiers().get("pro-plus").rate()).hasToString("60/1s");
        assertThat(perUser.tiers().get("pro-plus").inFlight()).isEqualTo(7);
        assertThat(perUser.overrides().get(0).inFlight()).isEqualTo(8);
        GuaranteedShare guaranteed = properties.policies().get("for-all").guaranteed();
        assertThat(guaranteed.rate()).hasToString("6/1s");
        assertThat(guaranteed.key()).extracting(KeyPart::name).containsExactly("ip");
        assertThat(guaranteed.keys()).isEqualTo(20);
        NamedShare share = properties.policies().get("shop").shares().get("check-out");
        assertThat(share.guaranteed()).hasToString("7/1s");
        assertThat(share.capacity()).isEqualTo(9);
    }

    @Test
    void systemPropertiesChangeANamedPolicy() {
        Policy policy = read(new YamlApplication(directory, "ratelimit.policies.per-user.rate: 5/s")
                        .withSystemProperty("ratelimit.policies.per-user.rate", "7/s")
                        .withSystemProperty("ratelimit.policies.per-user.maxKeys", "9")
                        .withSystemProperty("ratelimit.policies.per-user.key[0]", "ip"))
                .policies()
                .get("per-user");

        assertThat(policy.rate()).hasToString("7/1s");
        assertThat(policy.maxKeys()).isEqualTo(9);
        assertThat(policy.key()).extracting(KeyPart::name).containsExactly("ip");
    }

    /** An argument is visible at the start, so it may add a policy. */
    @Test
    void argumentsMayNameAPolicy() {
        assertThat(read(new YamlApplication(directory, "server.port: 0")
                                .withArgument("--ratelimit.policies.per-user.rate=7/s"))
                        .policies()
                        .get("per-user")
                        .rate())
                .hasToString("7/1s");
    }

    @Test
    void readsTheLargestOfItsDomain() {
        bind("""
                ratelimit.policies:
                  fastest: { rate: 10000000000/s }
                  slowest: { rate: 1/365d, capacity: 10 }
                  largest: { rate: 1000/us, capacity: 1000000000000 }
                """);
    }

    private RateLimitProperties bind(String yaml) {
        return read(new YamlApplication(directory, yaml));
    }

    private static RateLimitProperties read(YamlApplication application) {
        try (ConfigurableApplicationContext context = application.start()) {
            return context.getBean(RateLimitProperties.class);
        }
    }
}
