package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.TestServer;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** A policy without a key, whose annotation gives each tenant a bucket: no bucket is that of the policy. */
@Tag("slow")
class KeysOfAnnotationsTests {

    private static final String YAML = """
            management.endpoints.web.exposure.include: ratelimits, ratelimitdashboard
            ratelimit.policies:
              export: { rate: 1/1d, applies-to: annotated }
              shared: { rate: 2/1d, applies-to: annotated }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    @BeforeEach
    void export() {
        assertThat(server.http().get("/export/a").status()).isEqualTo(200);
        assertThat(server.http().get("/export/a").status()).isEqualTo(429);
        assertThat(server.http().get("/shared").status()).isEqualTo(200);
    }

    @Test
    void theEndpointShowsNoLevelOfThePolicy() {
        assertThat(this.<Map<String, Object>>read("ratelimits/export", "$.limit"))
                .doesNotContainKey("available");
        assertThat(this.<Integer>read("ratelimits/export?key=a", "$.limit.available"))
                .isZero();
        assertThat(this.<Integer>read("ratelimits/shared", "$.limit.available")).isOne();
    }

    @Test
    void theDashboardShowsABucketForEachKey() {
        assertThat(this.<List<Map<String, Object>>>read("ratelimitdashboard/data", "$.policies[?(@.name=='export')]"))
                .singleElement()
                .satisfies(policy ->
                        assertThat(policy).containsEntry("key", List.of("key")).containsEntry("available", null));
        assertThat(this.<List<Map<String, Object>>>read("ratelimitdashboard/data", "$.policies[?(@.name=='shared')]"))
                .singleElement()
                .satisfies(policy ->
                        assertThat(policy).containsEntry("key", List.of()).containsEntry("available", 1));
    }

    @Test
    void theDemandIsThatOfTheKeys() {
        assertThat(this.<String>read("ratelimits/export/demand", "$.demand.noSuggestion"))
                .endsWith("with requests of at least 30 keys");
        assertThat(this.<String>read("ratelimits/shared/demand", "$.demand.noSuggestion"))
                .endsWith("after ten minutes");
        assertThat(this.<List<Boolean>>read("ratelimitdashboard/demand", "$.policies.export[*].global"))
                .containsExactly(false);
        assertThat(this.<List<Boolean>>read("ratelimitdashboard/demand", "$.policies.shared[*].global"))
                .containsExactly(true);
    }

    @Test
    void theMeterIsNotANumber() {
        assertThat(gauge("ratelimit.available", "export")).isNaN();
        assertThat(gauge("ratelimit.available", "shared")).isOne();
    }

    @Test
    void theBucketsOfTheKeysAreCounted() {
        assertThat(server.http().get("/export/b").status()).isEqualTo(200);
        assertThat(gauge("ratelimit.keys", "export")).isEqualTo(2);
        assertThat(gauge("ratelimit.keys", "shared")).isOne();
    }

    private static double gauge(String name, String policy) {
        return server.bean(MeterRegistry.class)
                .get(name)
                .tag("policy", policy)
                .gauge()
                .value();
    }

    private <T> T read(String path, String found) {
        return JsonPath.read(server.http().get("/actuator/" + path).body(), found);
    }

    @RestController
    static class Api {

        @GetMapping("/export/{tenant}")
        @RateLimited(policy = "export", key = "#tenant")
        public String export(@PathVariable String tenant) {
            return tenant;
        }

        @GetMapping("/shared")
        @RateLimited(policy = "shared")
        public String shared() {
            return "";
        }
    }
}
