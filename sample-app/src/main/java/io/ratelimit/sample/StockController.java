package io.ratelimit.sample;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Counts the stock. All customers share one limit, of which each has a part that the others can't take. */
@RestController
class StockController {

    @GetMapping("/api/stock")
    Stock count() {
        return new Stock(42);
    }

    record Stock(int kettles) {}
}
