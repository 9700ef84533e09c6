package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;

import io.ratelimit.policy.ConfigurationFailureTests;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerResponse;

/** All lines of the start-up log. */
@Tag("slow")
class StartupLogTests extends CapturedStart {

    private static final String SITE = "INFO site: 5/1s, capacity 5, one bucket; all requests; before authentication";

    private static final String LATE_SITE = SITE.replace("before authentication", "after authentication");

    @Test
    void eachPolicyHasOneLineInTheOrderOfTheConfiguration() {
        assertThat(log("""
                ratelimit:
                  policies:
                    per-user-per-endpoint: { key: [user, endpoint], rate: 600/1m,  capacity: 800,  retry-jitter: 1ms-5ms }
                    per-endpoint:          { key: endpoint,         rate: 3000/1m, capacity: 4000, retry-jitter: 5ms-10ms }
                    global:                { rate: 6000/1m, capacity: 7000, retry-jitter: 10ms-20ms }
                    per-ip:                { key: ip, rate: 1200/1m, phase: before-authentication }
                """))
                .containsExactly(
                        "INFO per-user-per-endpoint: 600/1m, capacity 800, a bucket for each user and endpoint; all requests; after authentication",
                        "INFO per-endpoint: 3000/1m, capacity 4000, a bucket for each endpoint; all requests; before authentication",
                        "INFO global: 6000/1m, capacity 7000, one bucket; all requests; before authentication",
                        "INFO per-ip: 1200/1m, capacity 1200, a bucket for each ip; all requests; before authentication");
    }

    @Test
    void aLimitOfRequestsInFlightIsShown() {
        assertThat(log("""
                ratelimit:
                  policies:
                    exports: { key: user, in-flight: 2, paths: /exports/** }
                    chat:    { key: user, rate: 60/1m, in-flight: 4 }
                    gpu:     { in-flight: 32, max-wait: 2s }
                """))
                .containsExactly(
                        "INFO exports: 2 in flight for each user; /exports/**; after authentication",
                        "INFO chat: 60/1m, capacity 60, 4 in flight, a bucket for each user; all requests; after authentication",
                        "INFO gpu: 32 in flight in all; all requests; waits at most 2s, queue 20; after authentication, because requests may wait");
    }

    @Test
    void theSummaryComesFirst() {
        assertThat(wholeLog("""
                ratelimit:
                  exclude-paths: [/assets/**, /health]
                  policies:
                    api: { rate: 5/s }
                    trial: { rate: 5/s, mode: shadow }
                    old: { rate: 5/s, mode: off }
                """))
                .startsWith("INFO Rate limits: 1 enforced, 1 in shadow mode, 1 off; buckets in memory; client address"
                        + " from the connection; excluded: /assets/**, /health")
                .hasSize(4);
        assertThat(wholeLog(
                        "ratelimit: { client-ip.trusted-proxies: [10.0.0.0/8, 192.0.2.7], policies.api.rate: 5/s }"))
                .first()
                .asString()
                .endsWith("; client address from 'x-forwarded-for' of peers in 10.0.0.0/8, 192.0.2.7/32");
        assertThat(wholeLog("""
                server.forward-headers-strategy: native
                ratelimit.policies.api.rate: 5/s
                """))
                .first()
                .asString()
                .endsWith("; client address by 'server.forward-headers-strategy: native'");
    }

    @Test
    void theSameAdviceForSeveralPoliciesIsOneLine() {
        assertThat(log("""
                ratelimit:
                  policies:
                    b: { rate: 5/s, key: cookie:device }
                    a: { rate: 6/s, key: cookie:device }
                    c: { rate: 6/s, key: session }
                """))
                .filteredOn(line -> line.startsWith("WARN"))
                .containsExactly(
                        "WARN Throttle policies 'a', 'b': each is keyed only by what clients choose (cookie:device): a"
                                + " client that changes it gets a new bucket. Add another policy, keyed by 'ip' or 'user'",
                        "WARN Throttle policy 'c' is keyed only by what clients choose (session): a client that changes"
                                + " it gets a new bucket. Add another policy, keyed by 'ip' or 'user'");
    }

    /** The 53 policies of a shop with the usual mistakes: each is a line or two by itself, and there are 65 in all. */
    @Test
    void manyPoliciesAreAtMost65Lines() {
        StringBuilder yaml = new StringBuilder("ratelimit:\n  policies:\n");
        for (int i = 1; i <= 53; i++) {
            yaml.append("    p%d: { rate: %d/s, key: %s, methods: %s }\n"
                    .formatted(
                            i,
                            i,
                            List.of("user", "cookie:device", "query:tenant", "[]")
                                    .get(i % 4),
                            List.of("GET", "POST").get(i / 4 % 2)));
        }

        assertThat(new YamlApplication(directory, yaml.toString())
                        .withWeb(Full.class)
                        .log(output))
                .hasSizeBetween(54, 65)
                .anyMatch(line -> line.startsWith("WARN The health path '/actuator/health' is limited by the throttle"
                        + " policies 'p11', 'p19'"));
    }

    @Test
    void aPolicyWithAllPropertiesIsLogged() {
        assertThat(log("""
                ratelimit:
                  exclude-paths: /assets/**
                  policies:
                    export:
                      rate: 10/1h
                      capacity: 20
                      refill: interval
                      cost: 5
                      key: [ip, method, endpoint]
                      paths: ['/export/{id}', /reports/]
                      exclude-paths: /export/status
                      methods: [PUT, POST, DELETE]
                      phase: after-authentication
                      mode: shadow
                """))
                .containsExactly(
                        "INFO export (shadow mode): 10/1h, capacity 20, refilled at intervals, a bucket for each ip and method and endpoint, 5 tokens a request; DELETE, POST, PUT /export/{id}, /reports except /export/status; after authentication");
    }

    @ParameterizedTest
    @ValueSource(strings = {"ratelimit", "rate-limit", "rateLimit"})
    void limitsThatAPropertySwitchesOffAreOneWarning(String prefix) {
        String oneName = " To Spring Boot, 'rate-limit', 'rateLimit' and 'ratelimit' are one prefix: rename '" + prefix
                + ".enabled' if it is not meant for this library";
        List<String> log =
                new YamlApplication(directory, """
                %s:
                  enabled: off
                ratelimit.policies.site.rate: 5/s
                """.formatted(prefix)).withWeb().log(output);
        assertThat(log)
                .containsExactly("WARN No limit is enforced, neither the policies below 'ratelimit.policies' nor"
                        + " @RateLimited: '" + prefix + ".enabled' is false (URL [file:" + directory
                        + "/application.yml] - 2:12)" + (prefix.equals("ratelimit") ? "" : "." + oneName));
    }

    @Test
    void aVariableThatSwitchesLimitsOffIsNamed() {
        assertThat(new YamlApplication(directory, "ratelimit.policies.site.rate: 5/s")
                        .withVariable("RATELIMIT_ENABLED", "false")
                        .log(output))
                .containsExactly("WARN No limit is enforced, neither the policies below 'ratelimit.policies' nor"
                        + " @RateLimited: 'RATELIMIT_ENABLED' is false (System Environment Property"
                        + " \"RATELIMIT_ENABLED\")");
    }

    @Test
    void warnsOfPropertiesOfABackendThatNoPolicyUses() {
        assertThat(new YamlApplication(directory, """
                ratelimit:
                  jdbc.timeout: 100ms
                  policies.site.rate: 5/s
                """)
                        .withVariable("RATELIMIT_REDIS_KEYSECRET", "s3cret")
                        .withWeb()
                        .log(output))
                .contains(
                        "WARN Properties below 'ratelimit.jdbc' are set, but no policy has its buckets in the database. Set"
                                + " 'ratelimit.backend: jdbc', or remove these properties",
                        "WARN Properties below 'ratelimit.redis' are set, but no policy has its buckets in Redis. Set"
                                + " 'ratelimit.backend: redis', or remove these properties");
    }

    @Test
    void aPolicyWithTiersIsLogged() {
        assertThat(log("""
                ratelimit:
                  policies:
                    plans:
                      rate: 5/s
                      tiers:
                        pro: { rate: 50/s, capacity: 60 }
                        basic: { rate: 7/s }
                      tier: role
                """))
                .containsExactly(
                        "INFO plans: 5/1s, capacity 5, one bucket, in tiers (basic: 7/1s, capacity 7; pro: 50/1s, capacity 60) by role; all requests; after authentication");
    }

    @Test
    void policiesForRequestsWithoutAKeyAreLogged() {
        assertThat(log("""
                ratelimit:
                  policies:
                    a: { rate: 5/s, key: [user, endpoint], on-missing-key: deny, refund-on: [404, 5xx], status: 503, rejection-delay: 2s }
                    b: { rate: 5/s, key: user, on-missing-key: skip, refund-on: '!401' }
                    c: { rate: 5/s, key: user, on-missing-key: shared, status: 429 }
                """))
                .filteredOn(line -> line.startsWith("INFO"))
                .containsExactly(
                        "INFO a: 5/1s, capacity 5, a bucket for each user and endpoint (denies a request that lacks one); all requests; status 503; rejections delayed by 2s; after authentication; returns tokens on 404, 5xx",
                        "INFO b: 5/1s, capacity 5, a bucket for each user (skips a request that lacks one); all requests; after authentication; returns tokens on !401",
                        "INFO c: 5/1s, capacity 5, a bucket for each user; all requests; after authentication");
    }

    @Test
    void aPolicyThatReturnsTheTokensOfAuthenticatedRequestsIsLogged() {
        assertThat(log("""
                ratelimit.policies.logins: { rate: 5/s, key: ip, phase: before-authentication, refund-on: authenticated }
                """))
                .containsExactly(
                        "INFO logins: 5/1s, capacity 5, a bucket for each ip; all requests; before authentication; returns the tokens of authenticated requests");
    }

    @Test
    void warnsOfALoginLimitThatOnlyExcludesStatuses() {
        assertThat(log("""
                ratelimit:
                  policies:
                    logins: { rate: 5/s, key: ip, phase: before-authentication, refund-on: ['!401', '!403'] }
                    named: { rate: 5/s, key: ip, phase: before-authentication, refund-on: [4xx, '!401'] }
                    derived: { rate: 5/s, key: ip, refund-on: '!401' }
                    late: { rate: 5/s, key: user, refund-on: '!401' }
                """))
                .filteredOn(line -> line.startsWith("WARN"))
                .containsExactly(
                        "WARN Throttle policy 'logins' guards the authentication, and returns tokens on every status"
                                + " except 401, 403: a client pays nothing if a later filter answers a wrong"
                                + " password with another status. Set 'ratelimit.policies.logins.refund-on:"
                                + " authenticated', or list the statuses of a success, such as 2xx");
    }

    @ParameterizedTest
    @ValueSource(strings = {"key: [user, endpoint]", "key: 'ip', phase: after-authentication"})
    void warnsOfALatePolicyThatReturnsTheTokensOfUsers(String late) {
        assertThat(log("ratelimit.policies.api: { rate: 5/s, " + late + ", refund-on: authenticated }"))
                .contains("WARN Throttle policy 'api' decides after authentication, and returns the tokens of"
                        + " authenticated requests: it limits only requests without a user. Remove"
                        + " 'ratelimit.policies.api.refund-on', or set 'ratelimit.policies.api.phase:"
                        + " before-authentication' and key the policy by 'ip'");
    }

    @Test
    void warnsWhereClientsChooseTheirTier() {
        assertThat(log("ratelimit.policies.work: { rate: 5/s, tiers: { low: { rate: 1/s } }, tier:"
                        + " 'header:Priority' }"))
                .contains("WARN Clients choose their tier of the throttle policy 'work' (header:priority). Set 'tier'"
                        + " to 'role', or to 'bean:NAME' or 'expression:SPEL' that reads what clients can't"
                        + " choose");
    }

    @Test
    void warnsWhereAllOfALimitIsGuaranteed() {
        assertThat(log("ratelimit.policies.api: { rate: 50/s, guaranteed: { key: user, rate: 5/s, for: 10 } }"))
                .contains("WARN The guaranteed shares of the throttle policy 'api' reserve 50 of its capacity of 50:"
                        + " no share can use what others leave, and requests without a share are always rejected. Set"
                        + " 'ratelimit.policies.api.capacity' to at least 51, or guarantee smaller capacities");
        assertThat(log("ratelimit.policies.api: { rate: 50/s, capacity: 51, guaranteed: { key: user, rate: 5/s, for:"
                        + " 10 } }"))
                .noneMatch(line -> line.startsWith("WARN"));
    }

    @Test
    void aPolicyThatIsOffIsLogged() {
        assertThat(log("ratelimit: { mode: off, policies: { api: { rate: 5/s, key: ip } } }"))
                .containsExactly(
                        "INFO api (off): 5/1s, capacity 5, a bucket for each ip; all requests; before authentication");
    }

    /** A policy with a written early phase applies to the excluded paths. */
    @Test
    void aPolicyWithAWrittenEarlyPhaseIsLoggedWithoutTheExcludedPathsOfTheApplication() {
        assertThat(log("""
                ratelimit:
                  exclude-paths: /assets/**
                  policies:
                    per-ip: { rate: 5/s, key: ip, phase: before-authentication }
                """))
                .containsExactly(
                        "INFO per-ip: 5/1s, capacity 5, a bucket for each ip; all requests, excluded ones too; before authentication");
    }

    @Test
    void warnsWhereNothingIsLimited() {
        assertThat(log("ratelimit.mode: enforce"))
                .containsExactly(
                        "WARN There are no policies below 'ratelimit.policies': nothing is limited. Add a policy,"
                                + " for example 'ratelimit.policies.api.rate: 600/1m', and check the indentation of"
                                + " 'policies'");
    }

    @Test
    void warnsWhereClientsMayChooseTheAddressTheyAreCountedBy() {
        assertThat(log("""
                server.forward-headers-strategy: framework
                ratelimit.policies.per-ip: { key: ip, rate: 5/1s }
                """)).anyMatch(line -> line.startsWith("WARN 'server.forward-headers-strategy' is 'framework'"));
    }

    @Test
    void warnsOfPathsWithTheContextPath() {
        assertThat(log("""
                server.servlet.context-path: /shop
                ratelimit:
                  exclude-paths: /shop/assets/**
                  policies:
                    api: { rate: 5/1s, paths: [/shop/items, /shop, /shopping, /other] }
                    site: { rate: 5/1s }
                """))
                .filteredOn(line -> line.startsWith("WARN"))
                .containsExactly(
                        beginsWithContextPath("/shop/items", "/items"),
                        beginsWithContextPath("/shop", "/"),
                        beginsWithContextPath("/shop/assets/**", "/assets/**"));
    }

    private static String beginsWithContextPath(String pattern, String below) {
        return "WARN The path pattern '" + pattern
                + "' begins with the context path, but patterns are relative to it: no endpoint matches. Write '"
                + below + "'";
    }

    @Test
    void doesNotWarnWhereAnEndpointHasTheNameOfTheContext() {
        assertThat(new YamlApplication(directory, """
                        server.servlet.context-path: /files
                        ratelimit.policies.api: { rate: 5/1s, paths: /files/** }
                        """).withWeb(Variables.class).log(output))
                .noneMatch(line -> line.startsWith("WARN"));
    }

    /** A network is probably meant to match addresses. */
    @Test
    void warnsOfANetworkThatIsTheNameOfAUser() {
        assertThat(log("""
                ratelimit:
                  policies:
                    per-user:
                      rate: 5/s
                      key: ['header:X-Api-Key', endpoint, method]
                      overrides:
                        - { keys: [[10.0.0.0/8, none, GET], [a/b, none, GET], [10.0.0.1, none, GET]], mode: off }
                    per-ip: { rate: 5/s, key: ip, overrides: [{ keys: 10.0.0.0/8, mode: off }] }
                    mixed: { rate: 5/s, key: [ip, method], overrides: [{ keys: [[10.0.0.0/8, GET]], mode: off }] }
                """))
                .filteredOn(line -> line.contains("overrides[0]"))
                .containsExactly(
                        "WARN 'ratelimit.policies.per-user.overrides[0].keys[0]' has '10.0.0.0/8', which looks like a network but is compared with the text of header:x-api-key: the policy's key has no ip");
    }

    @Test
    void warnsOfAPolicyKeyedOnlyByWhatClientsChoose() {
        assertThat(log("""
                ratelimit:
                  policies:
                    per-key: { rate: 5/s, key: ['header:X-Api-Key', 'header:X-Tenant'] }
                    per-key-and-ip: { rate: 5/s, key: ['header:X-Api-Key', ip] }
                """))
                .containsExactly(
                        "INFO per-key: 5/1s, capacity 5, a bucket for each header:x-api-key and header:x-tenant; all requests; before authentication",
                        "INFO per-key-and-ip: 5/1s, capacity 5, a bucket for each header:x-api-key and ip; all requests; before authentication",
                        "WARN Throttle policy 'per-key' is keyed only by what clients choose (header:x-api-key and"
                                + " header:x-tenant): a client that changes it gets a new bucket. Add another"
                                + " policy, keyed by 'ip' or 'user'");
    }

    @Test
    void namesGuaranteedSharesAndWarnsIfClientsChooseThem() {
        assertThat(log("""
                ratelimit:
                  policies:
                    chosen: { rate: 5/s, guaranteed: { key: 'header:X-Tenant', rate: 1/s, for: 3 } }
                    shop:
                      rate: 5/s
                      tier: role
                      shares: { checkout: { guaranteed: 1/s }, batch: { leave: 30% } }
                """))
                .containsExactly(
                        "INFO chosen: 5/1s, capacity 5, one bucket, in shares (1/1s, capacity 1, guaranteed to each of 3"
                                + " (header:x-tenant)); all requests; before authentication",
                        "INFO shop: 5/1s, capacity 5, one bucket, in shares (checkout 1/1s, capacity 1; batch leaves 30%)"
                                + " by role; all requests; after authentication",
                        "WARN Clients choose whose guaranteed share of the throttle policy 'chosen' they use"
                                + " (header:x-tenant): one client can take many shares. Key the shares by 'user' or"
                                + " 'claim:NAME', or check what clients send before");
    }

    @Test
    void theEndpointAndTheMethodDoNotBindAKeyToAClient() {
        assertThat(log("""
                ratelimit.policies.api: { rate: 5/s, key: ['header:X-Api-Key', endpoint] }
                ratelimit.policies.site: { rate: 5/s, key: [endpoint, method] }
                """))
                .filteredOn(line -> line.contains("clients choose"))
                .singleElement()
                .asString()
                .startsWith("WARN Throttle policy 'api' is keyed only by what clients choose (header:x-api-key and"
                        + " endpoint): a client that changes it gets a new bucket.");
    }

    @Test
    void warnsOfEveryPartThatClientsChoose() {
        for (String part :
                List.of("cookie:device", "query:tenant", "session", "path-variable:tenant", "expression:path")) {
            assertThat(log("ratelimit.policies.chosen: { rate: 5/s, key: '" + part + "' }"))
                    .anyMatch(line -> line.startsWith(
                            "WARN Throttle policy 'chosen' is keyed only by what clients choose (" + part + "): "));
        }
        for (String part : List.of("ip", "user", "expression:ip + header(\"X\")")) {
            assertThat(log("ratelimit.policies.chosen: { rate: 5/s, key: [session, '" + part + "'] }"))
                    .noneMatch(line -> line.contains("clients choose"));
        }
    }

    @Test
    void hintsAtKeysThatAreTextWhereAControllerMayTakeANumber() {
        assertThat(log("ratelimit.policies.api: { rate: 5/s, key: [ip, 'query:tenant', 'path-variable:id'] }"))
                .contains("INFO Throttle policy 'api' is keyed by the text of query:tenant and path-variable:id. Where"
                        + " the"
                        + " controller takes a number, 5, 05 and 0x5 are one value but three keys: write"
                        + " \"expression:number(query('tenant'))\" and"
                        + " \"expression:number(pathVariable('id'))\" in the key, or limit the method by"
                        + " @RateLimited(key = \"#argument\")");
        assertThat(log("ratelimit.policies.api:\n  rate: 5/s\n  key: [ip,"
                        + " \"expression:number(query('id'))\", 'header:X']"))
                .noneMatch(line -> line.contains("is keyed by the text of"));
    }

    @Test
    void warnsOfAPathVariableThatNoEndpointHas() {
        assertThat(log("ratelimit.policies.api: { rate: 5/s, key: [ip, 'path-variable:tenant'] }"))
                .contains(
                        "WARN No endpoint has the path variable 'tenant', by which the throttle policy 'api' is keyed:"
                                + " 'on-missing-key' decides for all requests");
        assertThat(log("""
                ratelimit.policies.guaranteed: { rate: 5/s, guaranteed: { key: path-variable:tenant, rate: 1/s, for: 2 } }
                ratelimit.policies.tiers: { rate: 5/s, key: ip, tiers.pro.rate: 9/s, tier: path-variable:plan }
                ratelimit.policies.shares: { rate: 5/s, shares.pro.leave: 20%, tier: path-variable:plan }
                """))
                .contains(
                        "WARN No endpoint has the path variable 'tenant', by which the throttle policy 'guaranteed'"
                                + " guarantees shares: no request has one",
                        "WARN No endpoint has the path variable 'plan', by which the throttle policy 'tiers' selects"
                                + " tiers: no request has one",
                        "WARN No endpoint has the path variable 'plan', by which the throttle policy 'shares' selects"
                                + " shares: no request has one");
        assertThat(new YamlApplication(
                                directory,
                                "ratelimit.policies.api: { rate: 5/s, key: [ip, 'path-variable:tenant',"
                                        + " 'path-variable:id',"
                                        + " 'path-variable:rest'] }")
                        .withWeb(Variables.class)
                        .log(output))
                .noneMatch(line -> line.startsWith("WARN"));
    }

    /** Only facts about the user are always unknown before authentication. */
    @Test
    void aSessionAndABeanMakeThePhaseLateUnlessItIsWritten() {
        assertThat(log("ratelimit.policies.api: { rate: 5/s, key: [ip, session] }"))
                .singleElement(STRING)
                .endsWith("; after authentication");
        assertThat(log("ratelimit.policies.api: { rate: 5/s, key: [ip, session], phase: before-authentication }"))
                .singleElement(STRING)
                .endsWith("; before authentication");
        YamlApplication bean =
                new YamlApplication(directory, "ratelimit.policies.api: { rate: 5/s, key: bean:tenantKey }");
        assertThat(withoutSummary(
                        bean.withWeb(ConfigurationFailureTests.Resolvers.class).log(output)))
                .singleElement(STRING)
                .endsWith("; after authentication");
    }

    @Test
    void aPolicyWithExpressionsIsLogged() {
        assertThat(log("""
                ratelimit:
                  policies:
                    export: { rate: 60/1m, key: ip, cost: contentLength / 1024.0, max-cost: 30, condition: method == 'POST' }
                    cut: { rate: 60/1m, key: [ip, session], cost: 100, max-cost: 30, paths: /a }
                    roles: { rate: 60/1m, key: ip, cost: roles.size(), paths: /a }
                    users: { rate: 60/1m, key: ip, condition: user != null }
                """))
                .containsExactly(
                        "INFO export: 60/1m, capacity 60, a bucket for each ip, contentLength / 1024.0 tokens a request, at most 30; all requests if method == 'POST'; before authentication",
                        "INFO cut: 60/1m, capacity 60, a bucket for each ip and session, 30 tokens a request; /a; after authentication",
                        "INFO roles: 60/1m, capacity 60, a bucket for each ip, roles.size() tokens a request; /a; after authentication",
                        "INFO users: 60/1m, capacity 60, a bucket for each ip; all requests if user != null; after authentication");
    }

    @ParameterizedTest
    @ValueSource(longs = {0, -1})
    void warnsOfACostBelowOne(long cost) {
        assertThat(log("ratelimit.policies.site: { rate: 5/s, cost: " + cost + " }"))
                .containsExactly(
                        "WARN Throttle policy 'site' has the cost " + cost
                                + ": each request costs 1 token. Set 'ratelimit.policies.site.cost' to 1 or more",
                        SITE);
    }

    @Test
    void warnsOfAMethodThatHttpDoesNotDefine() {
        assertThat(log("ratelimit.policies.api: { rate: 5/s, methods: [GTE, POST] }"))
                .containsExactly(
                        "WARN 'GTE' in 'ratelimit.policies.api.methods' is not a method that HTTP defines: it"
                                + " selects no request unless clients use it. HTTP has GET, HEAD, POST, PUT, PATCH,"
                                + " DELETE, OPTIONS, TRACE, CONNECT",
                        "INFO api: 5/1s, capacity 5, one bucket; GTE, POST; before authentication");
    }

    @Test
    void warnsOfAHealthPathThatAPolicyWithoutAKeyCovers() {
        assertThat(logWithActuator("ratelimit.policies.site.rate: 5/s"))
                .containsExactly(LATE_SITE, health("ratelimit.exclude-paths"));
    }

    @Test
    void aWrittenEarlyPhaseHasItsOwnExclusion() {
        assertThat(logWithActuator("ratelimit.policies.site: { rate: 5/s, phase: before-authentication }"))
                .containsExactly(SITE, health("ratelimit.policies.site.exclude-paths"));
    }

    @Test
    void doesNotWarnOfAHealthPathThatIsExcluded() {
        assertThat(logWithActuator(
                        "ratelimit: { exclude-paths: /actuator/health/**, policies: { site: { rate: 5/s } } }"))
                .hasSize(1)
                .allMatch(line -> line.startsWith("INFO "));
    }

    @Test
    void doesNotWarnOfAHealthPathThatNoPolicyRejectsForAll() {
        assertThat(logWithActuator("""
                ratelimit.policies:
                  excluded: { rate: 5/s, exclude-paths: /actuator/** }
                  elsewhere: { rate: 5/s, paths: /api/** }
                  posts: { rate: 5/s, methods: POST }
                  shadowed: { rate: 5/s, mode: shadow }
                  per-ip: { rate: 5/s, key: ip }
                """)).hasSize(5).allMatch(line -> line.startsWith("INFO "));
    }

    @Test
    void warnsOfAHealthPathOnAPortOfItsOwn() {
        assertThat(new YamlApplication(directory, "ratelimit.policies.site.rate: 5/s")
                        .withServer(Full.class)
                        .withArgument("--management.server.port=0")
                        .log(output))
                .filteredOn(line -> !line.startsWith(SUMMARY))
                .containsExactly(LATE_SITE, health("ratelimit.exclude-paths"));
    }

    private List<String> wholeLog(String yaml) {
        return new YamlApplication(directory, yaml).withWeb().log(output);
    }

    private List<String> log(String yaml) {
        return withoutSummary(wholeLog(yaml));
    }

    private List<String> logWithActuator(String yaml) {
        return withoutSummary(
                new YamlApplication(directory, yaml).withWeb(Full.class).log(output));
    }

    private static String health(String exclusion) {
        return "WARN The health path '/actuator/health' is limited by the throttle policy 'site', which has no key: under load, probes would find the application dead. Set '"
                + exclusion + ": /actuator/health/**'";
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Full {}

    @Configuration(proxyBeanMethods = false)
    @Import(YamlApplication.WebMvc.class)
    static class Variables {

        @Bean
        RouterFunction<ServerResponse> routes() {
            return RouterFunctions.route()
                    .GET("/{tenant}/items/{id:[0-9]+}", request -> ServerResponse.ok()
                            .build())
                    .GET("/files/{*rest}", request -> ServerResponse.ok().build())
                    .build();
        }
    }
}
