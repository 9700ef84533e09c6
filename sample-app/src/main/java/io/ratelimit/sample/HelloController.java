package io.ratelimit.sample;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A greeting that needs no login. */
@RestController
class HelloController {

    @GetMapping("/api/hello")
    Greeting hello() {
        return new Greeting("hello");
    }

    record Greeting(String text) {}
}
