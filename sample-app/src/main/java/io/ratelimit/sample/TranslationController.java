package io.ratelimit.sample;

import io.ratelimit.BucketSpec;
import java.util.Locale;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** Translations, as many as the customer's plan allows. The admin changes plans. */
@RestController
class TranslationController {

    private final Plans plans;

    TranslationController(Plans plans) {
        this.plans = plans;
    }

    @GetMapping("/api/translation")
    Translation translate(@RequestParam(defaultValue = "kettle") String text) {
        return new Translation(text.toUpperCase(Locale.ROOT));
    }

    @PutMapping("/api/plans/{customer}")
    @ResponseStatus(HttpStatus.NO_CONTENT)
    void change(@PathVariable String customer, @RequestBody Plan plan) {
        plans.change(customer, plan.spec());
    }

    record Translation(String text) {}

    /** @param rate the tokens and the period, such as 600/1m */
    record Plan(String rate) {

        BucketSpec spec() {
            try {
                return BucketSpec.of(String.valueOf(rate));
            } catch (IllegalArgumentException wrong) {
                throw new ResponseStatusException(HttpStatus.BAD_REQUEST, wrong.getMessage(), wrong);
            }
        }
    }
}
