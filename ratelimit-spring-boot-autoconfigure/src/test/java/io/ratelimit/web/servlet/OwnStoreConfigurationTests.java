package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BucketStore;
import io.ratelimit.MapBucketStore;
import io.ratelimit.PlainStore;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.annotation.RateLimited;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A store of one's own has all buckets: {@code backend} neither permits nor forbids what the store can do. */
@ExtendWith(OutputCaptureExtension.class)
class OwnStoreConfigurationTests {

    private static final String LEASES = """
            ratelimit:
              backend: %s
              policies:
                hot: { rate: 400/1d, lease: 1m }
                costly: { rate: 100/1m, lease: 10s, paths: /nobody, backend: local }
            """;

    @ParameterizedTest
    @ValueSource(strings = {"local", "redis", "jdbc"})
    void aStoreThatLeasesNeedsNoBackend(String backend, CapturedOutput output) {
        try (TestServer server =
                TestServer.open(LEASES.formatted(backend), Leasing.class).start()) {
            for (int i = 0; i < 60; i++) {
                assertThat(server.http().get("/a").status()).isEqualTo(200);
            }
            assertThat(server.bean(Throttlers.class).leased("hot")).isPositive();
        }
        assertThat(output)
                .contains("Throttle policy 'costly' has a 'lease' of 10s: while leases are out, the tokens that come"
                        + " back within that time are missing from bursts, which is more than 5 % of the capacity."
                        + " Set a lease of at most 3s, or a larger capacity")
                .doesNotContain("'hot' has a 'lease'");
    }

    @ParameterizedTest
    @ValueSource(strings = {"local", "redis", "jdbc"})
    void aStoreThatKeepsSharesNeedsNoBackend(String backend) {
        String yaml = """
                ratelimit:
                  backend: %s
                  policies:
                    divided: { rate: 10/1d, guaranteed: { key: query:tenant, for: 2, rate: 2/1d } }
                """.formatted(backend);
        try (TestServer server = TestServer.open(yaml, Sharing.class).start()) {
            assertThat(server.http().get("/a?tenant=a").status()).isEqualTo(200);
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    lease | rate: 400/1d, lease: 1m | leases no tokens | implement LeasingBucketStore
                    in-flight | in-flight: 5 | counts no requests in flight | implement RegisterStore
                    overrides[0].in-flight | rate: 5/1d, key: user, overrides: [{ keys: [a], in-flight: 2 }] | counts no requests in flight | implement RegisterStore
                    tiers.pro.in-flight | rate: 5/1d, tier: role, tiers: { pro: { in-flight: 2 } } | counts no requests in flight | implement RegisterStore
                    guaranteed | rate: 10/1d, guaranteed: { key: query:a, for: 2, rate: 2/1d } | keeps no shares | override keepsShares
                    shares | rate: 10/1d, tier: role, shares: { a: { guaranteed: 2/1d } } | keeps no shares | override keepsShares
                    """)
    void aLimitThatTheStoreCannotKeepStopsTheStart(
            String property, String limit, String lack, String action, CapturedOutput output) {
        String yaml = "ratelimit.policies.api: { " + limit + " }\n";
        assertThatThrownBy(() -> TestServer.open(yaml, Plain.class).start().close())
                .isNotNull();
        assertThat(output)
                .contains("'ratelimit.policies.api." + property + "' is set, but the application's own PlainStore "
                        + lack + ".")
                .contains("Remove 'ratelimit.policies.api." + property + "', or " + action + ".");
    }

    @Test
    void anAnnotationThatTheStoreCannotCountStopsTheStart(CapturedOutput output) {
        String yaml = "ratelimit.policies.api.rate: 5/1d\n";
        assertThatThrownBy(() -> TestServer.open(yaml, Annotated.class).start().close())
                .isNotNull();
        assertThat(output)
                .contains("Job.run() limits the calls in flight, which its backend doesn't count.")
                .contains("'ratelimit.policies.NAME: { in-flight: 2, backend: local, applies-to: annotated }'")
                .doesNotContain("invalid name");
    }

    @Test
    void bucketsInMemoryKeepSharesAndCountCallsWithoutLeases(CapturedOutput output) {
        String yaml = """
                ratelimit.policies:
                  running: { in-flight: 5 }
                  divided: { rate: 10/1d, guaranteed: { key: query:tenant, for: 2, rate: 2/1d } }
                """;
        try (TestServer server = TestServer.open(yaml, Memory.class).start()) {
            assertThat(server.http().get("/a?tenant=a").status()).isEqualTo(200);
        }
        assertThatThrownBy(() -> TestServer.open(LEASES.formatted("local"), Memory.class)
                        .start()
                        .close())
                .isNotNull();
        assertThat(output)
                .contains("'ratelimit.policies.hot.lease' is set, but the application's own LocalBucketStore leases"
                        + " no tokens.");
    }

    @RestController
    static class Api {

        @GetMapping("/a")
        String hello() {
            return "hello";
        }
    }

    static class Leasing extends Api {

        @Bean
        BucketStore store() {
            return new MapBucketStore(() -> System.currentTimeMillis() * 1_000, Duration.ofHours(1));
        }
    }

    static class Memory extends Api {

        @Bean
        BucketStore store(TimeSource time) {
            return BucketStore.local(time);
        }
    }

    static class Plain extends Api {

        @Bean
        BucketStore store(TimeSource time) {
            return new PlainStore(BucketStore.local(time));
        }
    }

    static class Annotated extends Plain {

        @Bean
        Job job() {
            return new Job();
        }
    }

    static class Job {

        @RateLimited(inFlight = "2")
        public void run() {}
    }

    static class Sharing extends Api {

        @Bean
        BucketStore store(TimeSource time) {
            return new SharingStore(BucketStore.local(time));
        }
    }

    private static final class SharingStore extends PlainStore {

        SharingStore(BucketStore store) {
            super(store);
        }

        @Override
        public boolean keepsShares(ThrottlePolicy policy) {
            return true;
        }
    }
}
