package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.GlobalThrottler;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.key.ip.ClientIp;
import io.ratelimit.policy.Phase;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import io.ratelimit.web.servlet.endpoint.RequestPath;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.http.server.PathContainer;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

class RequestPolicyTests {

    private static final Endpoints ENDPOINTS = new Endpoints("", "", List.of());
    private static final ClientIp ADDRESSES = new ClientIp(List.of(), "x-forwarded-for", 64);

    private static RequestPolicy policy(List<String> paths, List<String> excludePaths) {
        return new RequestPolicy(
                new GlobalThrottler(ThrottlePolicy.of("policy", BucketSpec.of("1/1s"))),
                new RequestKey(List.of(), MissingKey.DENY, RequestPolicyTests::failed, ThrottleListener.NONE),
                RequestCost.of(1),
                Phase.BEFORE_AUTHENTICATION,
                new RequestPolicy.Selection(patterns(paths), patterns(excludePaths), Set.of(), null),
                new RequestPolicy.Afterwards(false, null, null));
    }

    private static void failed(String policy, String what, String why) {
        throw new AssertionError(policy + what + why);
    }

    private static List<PathPattern> patterns(List<String> texts) {
        return texts.stream().map(PathPatternParser.defaultInstance::parse).toList();
    }

    private static boolean charges(RequestPolicy policy, String path) {
        return charges(policy, path, path);
    }

    private static boolean charges(RequestPolicy policy, String path, String pathOfContainer) {
        return charges(policy, request(path, pathOfContainer));
    }

    private static boolean charges(RequestPolicy policy, MockHttpServletRequest request) {
        RequestPolicies policies = new RequestPolicies(List.of(policy), ENDPOINTS, ADDRESSES, ThrottleListener.NONE);
        return !policies.charges(Phase.BEFORE_AUTHENTICATION, policies.facts(request))
                .isEmpty();
    }

    private static MockHttpServletRequest request(String path, String pathOfContainer) {
        MockHttpServletRequest request = new MockHttpServletRequest("GET", path);
        request.setServletPath(pathOfContainer);
        return request;
    }

    private static List<String> readings(String path, String pathOfContainer) {
        return new ServletRequestFacts(request(path, pathOfContainer), ENDPOINTS, new ClientIpResolver(ADDRESSES))
                .paths().stream().map(reading -> reading.parsed().value()).toList();
    }

    @Test
    void aTrailingSlashMakesNoPathEscape() {
        RequestPolicy login = policy(List.of("/login"), List.of());
        RequestPolicy below = policy(List.of("/dir/*"), List.of());
        assertThat(charges(login, "/login/")).isTrue();
        assertThat(charges(below, "/dir/")).isTrue();
        assertThat(charges(below, "/dir/a")).isTrue();
        assertThat(charges(below, "/dir/a/")).isTrue();
        assertThat(charges(below, "/dir")).isFalse();
    }

    @Test
    void theEmptyPathIsTheRoot() {
        assertThat(charges(policy(List.of("/"), List.of()), "")).isTrue();
    }

    @Test
    void aPathIsReadLikeMvcAndWhereTheyMayDifferLikeTheContainer() {
        assertThat(readings("/a/b", "/a/b")).containsExactly("/a/b");
        for (String odd : List.of("/a//b", "/a/./b", "/x/%2e%2e/a/b", "/;x=1/a/b", "/a%2fb", "/a%5cb", "/x/..;y/a/b")) {
            // Path parameters are left out, since no pattern matches by them.
            assertThat(readings(odd, "/a/b")).containsExactly(odd.replaceAll(";[^/]*", ";"), "/a/b");
        }
        assertThat(readings("/;x=1/a/b", "/a/b")).containsExactly("/;/a/b", "/a/b");
        assertThat(readings("/a//%25", "/a/%")).containsExactly("/a//%25", "/a/%");
        assertThat(readings("/a%zz", "/a")).isEmpty();
    }

    @Test
    void aPolicyAppliesWhereOneReadingIsCovered() {
        RequestPolicy rest = policy(List.of("/rest/**"), List.of());
        assertThat(charges(rest, "/x/../rest/y", "/rest/y")).isTrue();
        assertThat(charges(rest, "/rest/../x", "/x")).isTrue();
        assertThat(charges(rest, "/assets//1.png", "/assets/1.png")).isFalse();
        assertThat(charges(rest, "/x%zz", "/x")).isTrue();
    }

    @Test
    void anExclusionHoldsOnlyWhereAllReadingsAreExcluded() {
        RequestPolicy all = policy(List.of(), List.of("/health/**"));
        assertThat(charges(all, "/health/live")).isFalse();
        assertThat(charges(all, "/health//live", "/health/live")).isFalse();
        assertThat(charges(all, "/health/../rest/x", "/rest/x")).isTrue();
        assertThat(charges(all, "/rest/../health", "/health")).isTrue();
        assertThat(charges(all, "/health%zz", "/health")).isTrue();
    }

    @ParameterizedTest
    @CsvSource({"Authorization, Basic YTpi", "Cookie, SESSION=x"})
    void aPreflightWithCredentialsIsNone(String header, String value) {
        RequestPolicy all = policy(List.of(), List.of());
        MockHttpServletRequest preflight = new MockHttpServletRequest("OPTIONS", "/login");
        preflight.addHeader("Origin", "http://page.example");
        preflight.addHeader("Access-Control-Request-Method", "POST");
        assertThat(charges(all, preflight)).isFalse();

        preflight.addHeader(header, value);
        assertThat(charges(all, preflight)).isTrue();
    }

    @RepeatedTest(200)
    void theIndexFindsThePoliciesThatCoverAPath(RepetitionInfo run) {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        List<RequestPolicy> all = Stream.generate(() -> policy(patterns(random), patterns(random)))
                .limit(random.nextInt(1, 80))
                .toList();
        PolicyPaths index = new PolicyPaths(all, false);
        for (int i = 0; i < 50; i++) {
            String text = path(random);
            PathContainer path = PathContainer.parsePath(text);
            List<RequestPath> readings =
                    List.of(text.contains(";") || text.contains("//") ? RequestPath.of(path) : RequestPath.plain(text));
            assertThat(index.covering(readings).stream().mapToObj(all::get))
                    .as("seed %d, request %d, %s", run.getCurrentRepetition(), i, text)
                    .containsExactlyElementsOf(
                            all.stream().filter(policy -> policy.covers(path)).toList());
        }
    }

    private static List<String> patterns(SplittableRandom random) {
        return Stream.generate(() -> path(random).replaceAll(";v|(?<=.)/+$", "").replaceAll("//+", "/") + end(random))
                .map(pattern -> pattern.replaceAll("^//", "/"))
                .limit(random.nextInt(3))
                .toList();
    }

    private static String path(SplittableRandom random) {
        StringBuilder path = new StringBuilder("/");
        for (int i = random.nextInt(4); i > 0; i--) {
            path.append(List.of("a/", "b/", "c/", "A/", "a;v/", "/", "b").get(random.nextInt(7)));
        }
        return path.toString();
    }

    private static String end(SplittableRandom random) {
        return List.of("", "", "/**", "/*", "/{v}", "/{*rest}", "/{v}/a").get(random.nextInt(7));
    }
}
