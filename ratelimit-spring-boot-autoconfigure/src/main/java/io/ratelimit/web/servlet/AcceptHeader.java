package io.ratelimit.web.servlet;

import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.http.InvalidMediaTypeException;
import org.springframework.http.MediaType;

/** What a client prefers of what a refusal can be. */
final class AcceptHeader {

    private AcceptHeader() {}

    /** Whether plain text is more welcome than JSON. */
    static boolean prefersText(@Nullable String accept) {
        if (accept == null || accept.equals("*/*")) {
            return false;
        }
        try {
            List<MediaType> ranges = MediaType.parseMediaTypes(accept);
            double json = Math.max(
                    quality(ranges, MediaType.APPLICATION_PROBLEM_JSON), quality(ranges, MediaType.APPLICATION_JSON));
            return quality(ranges, MediaType.TEXT_PLAIN) > json;
        } catch (InvalidMediaTypeException malformed) {
            return false;
        }
    }

    /** The quality of the most specific range that includes the type (RFC 9110, 12.5.1). */
    private static double quality(List<MediaType> ranges, MediaType type) {
        return ranges.stream()
                .filter(range -> range.includes(type))
                .max(Comparator.comparingInt(range -> range.isWildcardType() ? 0 : range.isWildcardSubtype() ? 1 : 2))
                .map(MediaType::getQualityValue)
                .orElse(0.0);
    }
}
