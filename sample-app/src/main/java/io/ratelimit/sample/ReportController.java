package io.ratelimit.sample;

import java.security.Principal;
import java.util.stream.IntStream;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A report that takes the shop a while, and so costs its reader ten tokens. */
@RestController
class ReportController {

    @GetMapping("/api/report")
    Report report(Principal reader) {
        long primes = IntStream.range(2, 30_000)
                .filter(n -> IntStream.rangeClosed(2, (int) Math.sqrt(n)).noneMatch(d -> n % d == 0))
                .count();
        return new Report(reader.getName(), primes);
    }

    record Report(String reader, long primes) {}
}
