package io.ratelimit.sample;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** Whether a voucher is good. Who guesses codes too fast is refused, and that late. */
@RestController
class VoucherController {

    @GetMapping("/api/vouchers/{code}")
    Voucher check(@PathVariable String code) {
        return new Voucher(code.equals("tea-time"));
    }

    record Voucher(boolean good) {}
}
