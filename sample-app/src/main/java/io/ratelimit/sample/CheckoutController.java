package io.ratelimit.sample;

import java.util.concurrent.atomic.AtomicLong;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** The till: two customers a second, and the others wait in the queue. */
@RestController
class CheckoutController {

    private final AtomicLong served = new AtomicLong();

    @PostMapping("/api/checkout")
    Receipt checkout() {
        return new Receipt(served.incrementAndGet());
    }

    record Receipt(long number) {}
}
