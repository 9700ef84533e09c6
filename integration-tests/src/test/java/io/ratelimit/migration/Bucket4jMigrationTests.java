package io.ratelimit.migration;

import static org.assertj.core.api.Assertions.assertThat;

import com.giffing.bucket4j.spring.boot.starter.context.RateLimiting;
import io.github.bucket4j.Bandwidth;
import io.github.bucket4j.Bucket;
import io.github.bucket4j.TimeMeter;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TokenBucket;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.key.KeyResolver;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.security.Principal;
import java.time.Duration;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.web.context.request.RequestAttributes;
import org.springframework.web.context.request.RequestContextHolder;

/** The examples of {@code docs/migrating/bucket4j.md}; those in code on one clock. */
@Tag("slow")
class Bucket4jMigrationTests {

    private static final MigrationPage PAGE = MigrationPage.of("bucket4j");
    private static final String PATH = "/api/greeting";

    private final ManualTimeSource time = new ManualTimeSource();
    private final TimeMeter clock = new TimeMeter() {
        @Override
        public long currentTimeNanos() {
            return time.nanoTime();
        }

        @Override
        public boolean isWallClockBased() {
            return false;
        }
    };

    @Test
    void aGreedyLimitIsTheSame() {
        Bucket before = bucket(Before.greedy());
        TokenBucket after = TokenBucket.of(After.greedy(), time);

        for (int second = 0; second < 300; second++) {
            int cost = 1 + second % 3;
            assertThat(after.tryAcquire(cost)).as("second %d", second).isEqualTo(before.tryConsume(cost));
            time.advance(Duration.ofSeconds(1));
        }
        time.advance(Duration.ofHours(1));
        assertThat(allowed(() -> before.tryConsume(1))).isEqualTo(20);
        assertThat(allowed(() -> after.tryAcquire(1))).isEqualTo(20);
    }

    @Test
    void anIntervalLimitIsTheSameForABucketThatIsCreatedWithTheProcess() {
        Bucket before = bucket(Before.interval());
        TokenBucket after = TokenBucket.of(After.interval(), time);

        for (int second = 0; second < 300; second++) {
            assertThat(after.tryAcquire(1)).as("second %d", second).isEqualTo(before.tryConsume(1));
            time.advance(Duration.ofSeconds(1));
        }
    }

    @Test
    void theMinutesOfALaterBucketAreThoseOfTheProcess() {
        time.advance(Duration.ofSeconds(30));
        Bucket before = bucket(Before.interval());
        TokenBucket after = TokenBucket.of(After.interval(), time);
        assertThat(before.tryConsume(10)).isTrue();
        assertThat(after.tryAcquire(10)).isTrue();

        time.advance(Duration.ofSeconds(30));

        assertThat(before.tryConsume(1)).isFalse();
        assertThat(after.tryAcquire(10)).isTrue();
    }

    @Test
    void twoLimitsAreTwoPolicies() {
        List<Boolean> before = Before.twoLimits(clock, time);
        List<Boolean> after = After.twoLimits(time);

        assertThat(after)
                .isEqualTo(before)
                .containsExactly(true, true, true, true, true, false, true, true, true, false, false, false);
    }

    private Bucket bucket(Bandwidth limit) {
        return Bucket.builder().addLimit(limit).withCustomTimePrecision(clock).build();
    }

    private static long allowed(BooleanSupplier call) {
        return Stream.generate(call::getAsBoolean)
                .limit(40)
                .filter(allowed -> allowed)
                .count();
    }

    @Test
    void theFilterOfTheStarterIsAPolicy() {
        try (RunningApplication application = RunningApplication.start(
                CachedApplication.class, PAGE.before("The starter's filter"), "bucket4j.enabled=true", OURS_OFF)) {
            Client client = application.client();
            HttpResponse<String> first = client.get(PATH);
            assertThat(first.statusCode()).isEqualTo(200);
            assertThat(first.headers().firstValue("X-Rate-Limit-Remaining")).hasValue("2");
            assertThat(client.statuses(3, PATH)).containsExactly(200, 200, 429);
            HttpResponse<String> rejection = client.get(PATH);
            assertThat(rejection
                            .headers()
                            .firstValueAsLong("X-Rate-Limit-Retry-After-Seconds")
                            .orElse(0))
                    .isBetween(3000L, 3599L);
            assertThat(rejection.body()).isEqualTo("{ \"message\": \"Too many requests!\" }");
            exceptions(client);
        }
        try (RunningApplication application =
                RunningApplication.start(GreetingApplication.class, PAGE.after("The starter's filter"))) {
            Client client = application.client();
            HttpResponse<String> first = client.get(PATH);
            assertThat(first.statusCode()).isEqualTo(200);
            assertThat(first.headers().firstValue("RateLimit"))
                    .hasValueSatisfying(header -> assertThat(header).contains("\"api\";r=2"));
            assertThat(client.statuses(3, PATH)).containsExactly(200, 200, 429);
            HttpResponse<String> rejection = client.get(PATH);
            assertThat(rejection.headers().firstValue("Retry-After")).hasValue("3600");
            assertThat(rejection.body()).contains("\"violated-policies\":[\"api\"]");
            exceptions(client);
        }
        try (RunningApplication application = RunningApplication.start(
                GreetingApplication.class, PAGE.after("The starter's filter"), "ratelimit.headers=x-ratelimit")) {
            assertThat(application.client().get(PATH).headers().firstValue("X-RateLimit-Remaining"))
                    .hasValue("2");
        }
    }

    private static void exceptions(Client client) {
        assertThat(client.get(PATH, "X-Internal", "yes").statusCode()).isEqualTo(200);
        assertThat(client.get("/greeting").statusCode()).isEqualTo(200);
    }

    @Test
    void theAnnotationOfTheStarterIsOurs() {
        List<String> expected =
                List.of("found for alice", "found for alice", "busy, alice", "busy, alice", "found for bob");

        try (RunningApplication application = RunningApplication.start(
                TheirAnnotatedApplication.class,
                PAGE.before("The starter's annotation"),
                "bucket4j.enabled=true",
                OURS_OFF)) {
            Before search = application.bean(Before.class);
            assertThat(Stream.of("alice", "alice", "alice", "alice", "bob").map(search::search))
                    .containsExactlyElementsOf(expected);
        }
        try (RunningApplication application =
                RunningApplication.start(OurAnnotatedApplication.class, PAGE.after("The starter's annotation"))) {
            After search = application.bean(After.class);
            assertThat(Stream.of("alice", "alice", "alice", "alice", "bob").map(search::search))
                    .containsExactlyElementsOf(expected);
        }
    }

    @Test
    void methodsWithOneNameShareTheLimitOnlyHere() {
        try (RunningApplication application = RunningApplication.start(
                TheirAnnotatedApplication.class,
                PAGE.before("The starter's annotation"),
                "bucket4j.enabled=true",
                OURS_OFF)) {
            Before search = application.bean(Before.class);
            assertThat(Stream.of("alice", "alice", "alice").map(search::search)).endsWith("busy, alice");
            assertThat(search.list("alice")).isEqualTo("list for alice");
        }
        try (RunningApplication application =
                RunningApplication.start(OurAnnotatedApplication.class, PAGE.after("The starter's annotation"))) {
            After search = application.bean(After.class);
            assertThat(Stream.of("alice", "alice", "alice").map(search::search)).endsWith("busy, alice");
            assertThat(search.list("alice")).isEqualTo("busy, alice");
        }
    }

    @Test
    void visitorsWithoutALoginHaveAnotherLimit() {
        try (RunningApplication application = RunningApplication.start(
                CachedApplicationWithLogin.class,
                PAGE.before("One of several limits"),
                "bucket4j.enabled=true",
                OURS_OFF)) {
            onlyOneLimitAppliesTo(application.client());
        }
        try (RunningApplication application =
                RunningApplication.start(ApplicationWithLogin.class, PAGE.after("One of several limits"))) {
            onlyOneLimitAppliesTo(application.client());
        }
    }

    private static void onlyOneLimitAppliesTo(Client client) {
        assertThat(client.statuses(3, PATH)).containsExactly(200, 200, 429);
        assertThat(client.statuses(4, PATH, "X-User", "alice")).containsExactly(200, 200, 200, 429);
        assertThat(client.statuses(4, PATH, "X-User", "bob")).containsExactly(200, 200, 200, 429);
    }

    @Test
    void aKeyResolverReadsAnAttributeOfTheRequest() {
        String yaml = "ratelimit.policies.tenants: { key: 'bean:tenant', rate: 1/1h, paths: /api/** }";
        try (RunningApplication application = RunningApplication.start(ApplicationWithTenants.class, yaml)) {
            Client client = application.client();
            assertThat(client.statuses(2, PATH, "X-User", "alice")).containsExactly(200, 429);
            assertThat(client.statuses(2, PATH, "X-User", "bob")).containsExactly(200, 429);
        }
    }

    private static final String OURS_OFF = "ratelimit.enabled=false";

    @Import(ApplicationWithLogin.class)
    static class ApplicationWithTenants {

        @Bean
        KeyResolver tenant() {
            return request -> (String) RequestContextHolder.currentRequestAttributes()
                    .getAttribute("tenant", RequestAttributes.SCOPE_REQUEST);
        }
    }

    @EnableCaching
    @Import(ApplicationWithLogin.class)
    static class CachedApplicationWithLogin {}

    @Import({GreetingApplication.class, HeaderLogin.class})
    static class ApplicationWithLogin {}

    /** Takes the names of the user and the tenant from a header. */
    @Order(Ordered.HIGHEST_PRECEDENCE)
    static class HeaderLogin extends HttpFilter {

        @Override
        protected void doFilter(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            String name = request.getHeader("X-User");
            request.setAttribute("tenant", name);
            HttpServletRequest authenticated = new HttpServletRequestWrapper(request) {
                @Override
                public @Nullable Principal getUserPrincipal() {
                    return name == null ? null : () -> name;
                }
            };
            chain.doFilter(authenticated, response);
        }
    }

    @EnableCaching
    @Import(GreetingApplication.class)
    static class CachedApplication {}

    @Import({CachedApplication.class, Before.class})
    static class TheirAnnotatedApplication {}

    @Import({GreetingApplication.class, After.class})
    static class OurAnnotatedApplication {}

    /** Public, since the starter calls the fallback by reflection. */
    public static class Before {

        static Bandwidth greedy() {
            Bandwidth limit = Bandwidth.builder()
                    .capacity(20)
                    .refillGreedy(10, Duration.ofMinutes(1))
                    .build();
            return limit;
        }

        static Bandwidth interval() {
            Bandwidth limit = Bandwidth.builder()
                    .capacity(10)
                    .refillIntervally(10, Duration.ofMinutes(1))
                    .build();
            return limit;
        }

        static List<Boolean> twoLimits(TimeMeter clock, ManualTimeSource time) {
            Bucket bucket = Bucket.builder()
                    .addLimit(limit -> limit.capacity(5).refillGreedy(5, Duration.ofSeconds(1)))
                    .addLimit(limit -> limit.capacity(8).refillGreedy(8, Duration.ofHours(1)))
                    .withCustomTimePrecision(clock)
                    .build();
            return twice(time, () -> {
                boolean allowed = bucket.tryConsume(1);
                return allowed;
            });
        }

        @RateLimiting(name = "search", cacheKey = "#user", fallbackMethodName = "busy")
        public String search(String user) {
            return "found for " + user;
        }

        public String busy(String user) {
            return "busy, " + user;
        }

        @RateLimiting(name = "search", cacheKey = "#user", fallbackMethodName = "busy")
        public String list(String user) {
            return "list for " + user;
        }
    }

    static class After {

        static BucketSpec greedy() {
            BucketSpec limit = BucketSpec.of("10/1m").withCapacity(20);
            return limit;
        }

        static BucketSpec interval() {
            BucketSpec limit = BucketSpec.of("10/1m").withRefill(Refill.INTERVAL);
            return limit;
        }

        static List<Boolean> twoLimits(ManualTimeSource clock) {
            Throttlers throttlers = Throttlers.local(
                    List.of(
                            ThrottlePolicy.of("per-second", BucketSpec.of("5/1s")),
                            ThrottlePolicy.of("per-hour", BucketSpec.of("8/1h"))),
                    clock);
            return twice(clock, () -> {
                boolean allowed = throttlers
                        .decide(List.of(
                                throttlers.global("per-second").charge(1),
                                throttlers.global("per-hour").charge(1)))
                        .allowed();
                return allowed;
            });
        }

        @RateLimited(policy = "search", key = "#user", fallback = "busy")
        public String search(String user) {
            return "found for " + user;
        }

        public String busy(String user) {
            return "busy, " + user;
        }

        @RateLimited(policy = "search", key = "#user", fallback = "busy")
        public String list(String user) {
            return "list for " + user;
        }
    }

    /** Six calls at once, and six more a second later. */
    private static List<Boolean> twice(ManualTimeSource time, BooleanSupplier call) {
        Stream.Builder<Boolean> answers = Stream.builder();
        for (int i = 0; i < 6; i++) {
            answers.add(call.getAsBoolean());
        }
        time.advance(Duration.ofSeconds(1));
        for (int i = 0; i < 6; i++) {
            answers.add(call.getAsBoolean());
        }
        return answers.build().toList();
    }
}
