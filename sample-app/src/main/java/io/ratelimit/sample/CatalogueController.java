package io.ratelimit.sample;

import io.ratelimit.BucketSpec;
import io.ratelimit.TimeSource;
import io.ratelimit.TokenBucket;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.springframework.core.io.InputStreamResource;
import org.springframework.core.io.Resource;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.bind.annotation.RestController;

/** A catalogue of two million bytes. All downloads together get half a million bytes a second. */
@RestController
class CatalogueController {

    private static final byte[] CATALOGUE =
            "%-99s\n".formatted("A kettle, a teapot and a cup.").repeat(20_000).getBytes(StandardCharsets.US_ASCII);

    private final TokenBucket bandwidth;

    CatalogueController(TimeSource time) {
        this.bandwidth = TokenBucket.of(BucketSpec.of("500000/s").withCapacity(50_000), time);
    }

    @GetMapping(path = "/api/catalogue", produces = MediaType.TEXT_PLAIN_VALUE)
    Resource download() {
        InputStream catalogue = new ByteArrayInputStream(CATALOGUE);
        return new InputStreamResource(bandwidth.shape(catalogue));
    }

    /** Answers HEAD without the stream; otherwise Spring MVC would read the whole download and use up the bandwidth. */
    @RequestMapping(path = "/api/catalogue", method = RequestMethod.HEAD)
    ResponseEntity<Void> head() {
        return ResponseEntity.ok()
                .contentType(MediaType.TEXT_PLAIN)
                .contentLength(CATALOGUE.length)
                .build();
    }
}
