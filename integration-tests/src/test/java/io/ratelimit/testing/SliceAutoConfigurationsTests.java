package io.ratelimit.testing;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.autoconfigure.test.AutoConfigureRateLimit;
import java.util.List;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.context.annotation.ImportCandidates;
import org.springframework.util.ClassUtils;

/** What a slice of a test has of the auto-configurations that an application has. */
class SliceAutoConfigurationsTests {

    private static List<String> imports(Class<?> annotation) {
        ImportCandidates candidates = ImportCandidates.load(annotation, annotation.getClassLoader());
        return StreamSupport.stream(candidates.spliterator(), false)
                .filter(name -> name.startsWith("io.ratelimit."))
                .toList();
    }

    @Test
    void aSliceHasAllButThoseOfActuatorAndMeters() {
        assertThat(imports(AutoConfiguration.class))
                .filteredOn(name -> !imports(AutoConfigureRateLimit.class).contains(name))
                .extracting(ClassUtils::getShortName)
                .containsExactlyInAnyOrder("RateLimitActuateAutoConfiguration", "RateLimitMicrometerAutoConfiguration");
    }
}
