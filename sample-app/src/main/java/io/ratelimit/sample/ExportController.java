package io.ratelimit.sample;

import java.time.LocalDate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Exports for the books, ten a month. */
@RestController
class ExportController {

    @GetMapping("/api/export")
    Export export() {
        return new Export(LocalDate.now().toString(), 3);
    }

    record Export(String date, int items) {}
}
