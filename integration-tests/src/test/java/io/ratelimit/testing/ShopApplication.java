package io.ratelimit.testing;

import io.ratelimit.annotation.RateLimited;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** An application whose tests are those of {@code docs/testing.md}. */
@SpringBootApplication
class ShopApplication {

    @RestController
    static class Orders {

        @GetMapping("/orders/{id}")
        String order(String id) {
            return "order";
        }

        @GetMapping("/search")
        @RateLimited("search")
        public String search() {
            return "found";
        }
    }
}
