package io.ratelimit.sample;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** Checks vouchers. Clients that guess codes too fast get a delayed rejection. */
@RestController
class VoucherController {

    @GetMapping("/api/vouchers/{code}")
    Voucher check(@PathVariable String code) {
        return new Voucher(code.equals("tea-time"));
    }

    record Voucher(boolean good) {}
}
