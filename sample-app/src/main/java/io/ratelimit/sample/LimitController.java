package io.ratelimit.sample;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import io.ratelimit.Throttlers;
import io.ratelimit.UnknownPolicyException;
import org.springframework.http.HttpStatus;
import org.springframework.http.ProblemDetail;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The administrator changes limits while the shop is open. */
@RestController
class LimitController {

    private final Throttlers throttlers;

    LimitController(Throttlers throttlers) {
        this.throttlers = throttlers;
    }

    @PutMapping("/api/limits/{policy}")
    Limit put(@PathVariable String policy, @RequestParam Rate rate) {
        BucketSpec spec = throttlers.get(policy).policy().spec().withRate(rate);
        throttlers.reconfigure(policy, spec);
        return new Limit(policy, spec.rate().toString(), spec.capacity());
    }

    @ExceptionHandler
    ProblemDetail unknown(UnknownPolicyException unknown) {
        return ProblemDetail.forStatusAndDetail(HttpStatus.NOT_FOUND, unknown.getMessage());
    }

    @ExceptionHandler
    ProblemDetail refused(IllegalArgumentException refused) {
        return ProblemDetail.forStatusAndDetail(HttpStatus.BAD_REQUEST, refused.getMessage());
    }

    record Limit(String policy, String rate, long capacity) {}
}
