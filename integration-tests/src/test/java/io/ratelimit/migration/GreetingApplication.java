package io.ratelimit.migration;

import io.ratelimit.ManualTimeSource;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The smallest application. Its configuration limits it, by one library or another. */
@SpringBootConfiguration(proxyBeanMethods = false)
@EnableAutoConfiguration
@Import(GreetingApplication.Greetings.class)
class GreetingApplication {

    @Bean
    ManualTimeSource time() {
        return new ManualTimeSource();
    }

    @RestController
    static class Greetings {

        @GetMapping({"/api/greeting", "/greeting"})
        String greeting(@RequestParam(defaultValue = "you") String name) {
            return "Hello " + name;
        }
    }
}
