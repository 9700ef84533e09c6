package io.ratelimit.web.servlet.rejection;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.List;
import org.springframework.http.HttpHeaders;
import org.springframework.http.InvalidMediaTypeException;
import org.springframework.http.MediaType;
import org.springframework.web.util.HtmlUtils;

/** The forms of the body of a rejection: a problem (RFC 9457), one line of text, or a page, as the client prefers. */
enum RejectionBody {
    PROBLEM("application/problem+json"),
    TEXT("text/plain;charset=UTF-8"),
    PAGE("text/html;charset=UTF-8");

    /** Contains no script and loads nothing, and is readable if the application's policy for content forbids the style. */
    private static final String PAGE_TEMPLATE = """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>%s</title>
            <style>
            :root { color-scheme: light dark; font-family: system-ui, sans-serif; }
            body { max-width: 30rem; margin: 20vh auto; padding: 0 1rem; line-height: 1.5; }
            </style>
            </head>
            <body>
            <h1>%s</h1>
            %s
            <p><small>%s</small></p>
            </body>
            </html>
            """;

    /** The longest Accept header that is parsed, because a rejection has to stay cheap. Browsers send about 150 characters. */
    private static final int MAX_ACCEPT_LENGTH = 500;

    private final String type;

    RejectionBody(String type) {
        this.type = type;
    }

    /** Returns the form that the client of a request prefers. A malformed or too long header prefers the problem. */
    static RejectionBody of(HttpServletRequest request) {
        String accept = request.getHeader(HttpHeaders.ACCEPT);
        if (accept == null || accept.equals("*/*") || accept.length() > MAX_ACCEPT_LENGTH) {
            return PROBLEM;
        }
        try {
            return of(MediaType.parseMediaTypes(accept));
        } catch (InvalidMediaTypeException malformed) {
            return PROBLEM;
        }
    }

    /** Returns the form of the highest quality; of equal ones the problem, then the text. */
    private static RejectionBody of(List<MediaType> ranges) {
        double json = Math.max(
                quality(ranges, MediaType.APPLICATION_PROBLEM_JSON), quality(ranges, MediaType.APPLICATION_JSON));
        double text = quality(ranges, MediaType.TEXT_PLAIN);
        double page = quality(ranges, MediaType.TEXT_HTML);
        return page > Math.max(json, text) ? PAGE : text > json ? TEXT : PROBLEM;
    }

    /** @param retryNanos the time after which the client may retry; zero or less if time doesn't help */
    String content(String title, String detail, long retryNanos) {
        return this == PAGE ? page(title, detail, retryNanos) : detail + "\n";
    }

    private static String page(String title, String detail, long retryNanos) {
        String retry = retryNanos <= 0
                ? ""
                : "<p>Please try again in " + duration(RateLimitHeaders.seconds(retryNanos)) + ".</p>";
        return PAGE_TEMPLATE.formatted(title, title, retry, HtmlUtils.htmlEscape(detail));
    }

    /** Returns a wait as people name it, in its largest unit and rounded up. */
    private static String duration(long seconds) {
        long[] sizes = {86_400, 3600, 60};
        String[] units = {"day", "hour", "minute"};
        for (int i = 0; i < sizes.length; i++) {
            if (seconds > sizes[i]) {
                return (seconds - 1) / sizes[i] + 1 + " " + units[i] + "s";
            }
        }
        return seconds <= 1 ? "a second" : seconds + " seconds";
    }

    /** Returns the quality of the most specific range that includes the type (RFC 9110, 12.5.1). */
    private static double quality(List<MediaType> ranges, MediaType type) {
        return ranges.stream()
                .filter(range -> range.includes(type))
                .max(Comparator.comparingInt(range -> range.isWildcardType() ? 0 : range.isWildcardSubtype() ? 1 : 2))
                .map(MediaType::getQualityValue)
                .orElse(0.0);
    }

    void write(HttpServletRequest request, HttpServletResponse response, byte[]... content) throws IOException {
        int length = 0;
        for (byte[] part : content) {
            length += part.length;
        }
        response.setContentType(type);
        response.setContentLength(length);
        if (!request.getMethod().equals("HEAD")) {
            write(response, content);
        }
    }

    /** Writes to the stream, or to the writer if the application has already called {@code getWriter}. */
    private static void write(HttpServletResponse response, byte[][] content) throws IOException {
        ServletOutputStream stream;
        try {
            stream = response.getOutputStream();
        } catch (IllegalStateException hasWriter) {
            for (byte[] part : content) {
                response.getWriter().write(new String(part, StandardCharsets.UTF_8));
            }
            return;
        }
        for (byte[] part : content) {
            stream.write(part);
        }
    }
}
