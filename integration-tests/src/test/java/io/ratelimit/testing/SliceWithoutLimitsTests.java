package io.ratelimit.testing;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Throttlers;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.webmvc.test.autoconfigure.WebMvcTest;
import org.springframework.test.web.servlet.assertj.MockMvcTester;

/** A slice loads no auto-configuration of ours, whatever the mode. */
@WebMvcTest(properties = "ratelimit.mode=enforce")
class SliceWithoutLimitsTests {

    @Autowired
    private MockMvcTester mvc;

    @RepeatedTest(3)
    void noRequestIsRejected() {
        assertThat(mvc.get().uri("/orders/1")).hasStatusOk();
        assertThat(mvc.get().uri("/search")).hasStatusOk();
    }

    @Test
    void noBeanIsThere(
            @Autowired ObjectProvider<Throttlers> throttlers,
            @Autowired ObjectProvider<FilterRegistrationBean<?>> filters) {
        assertThat(throttlers.stream()).isEmpty();
        assertThat(filters.stream().map(FilterRegistrationBean::getFilterName))
                .noneMatch(name -> name.startsWith("rateLimit"));
    }
}
