package io.ratelimit.web.servlet.rejection;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.InvalidMediaTypeException;
import org.springframework.http.MediaType;

/**
 * The body of a rejection: a problem (RFC 9457), or one line of text for clients that prefer text.
 *
 * @param text whether the body is the line of text
 */
record RejectionBody(boolean text, String content) {

    /** The longest Accept header that is parsed, because a rejection has to stay cheap. Browsers send about 150 characters. */
    private static final int MAX_ACCEPT_LENGTH = 500;

    /**
     * Returns the body that the client of a request prefers.
     *
     * @param detail the line of text
     * @param problem supplies the problem
     */
    static RejectionBody of(HttpServletRequest request, String detail, Supplier<String> problem) {
        return prefersText(request.getHeader(HttpHeaders.ACCEPT))
                ? new RejectionBody(true, detail + "\n")
                : new RejectionBody(false, problem.get());
    }

    /** Returns whether plain text has a higher quality than JSON. A malformed or too long header prefers the problem. */
    private static boolean prefersText(@Nullable String accept) {
        if (accept == null || accept.equals("*/*") || accept.length() > MAX_ACCEPT_LENGTH) {
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

    /** Returns the quality of the most specific range that includes the type (RFC 9110, 12.5.1). */
    private static double quality(List<MediaType> ranges, MediaType type) {
        return ranges.stream()
                .filter(range -> range.includes(type))
                .max(Comparator.comparingInt(range -> range.isWildcardType() ? 0 : range.isWildcardSubtype() ? 1 : 2))
                .map(MediaType::getQualityValue)
                .orElse(0.0);
    }

    void write(HttpServletRequest request, HttpServletResponse response) throws IOException {
        byte[] bytes = content.getBytes(StandardCharsets.UTF_8);
        response.setContentType(text ? "text/plain;charset=UTF-8" : "application/problem+json");
        response.setContentLength(bytes.length);
        if (!request.getMethod().equals("HEAD")) {
            write(response, bytes);
        }
    }

    /** Writes to the stream, or to the writer if the application has already called {@code getWriter}. */
    private void write(HttpServletResponse response, byte[] bytes) throws IOException {
        ServletOutputStream stream;
        try {
            stream = response.getOutputStream();
        } catch (IllegalStateException hasWriter) {
            response.getWriter().write(content);
            return;
        }
        stream.write(bytes);
    }
}
