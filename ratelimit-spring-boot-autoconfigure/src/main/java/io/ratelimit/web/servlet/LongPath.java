package io.ratelimit.web.servlet;

/**
 * Shortens a path for path patterns, so that a long path costs no more than a path of {@value #MAX_SEGMENTS} segments.
 * A policy and an endpoint match the shortened path exactly where they match the whole path.
 */
final class LongPath {

    /*
     * A request line has room for thousands of segments, and a rejection must not cost more than the answer would have.
     * A limit above which a path is not read at all would be a way around a limit: "/login;aaaa..." and "/api/a/a/a..."
     * still reach their handlers, and a key with the endpoint, a path variable or a condition must see which.
     *
     * But a path pattern has "**" or "{*name}" only at its beginning or at its end. A pattern thus compares the first
     * segments of a path, or the last segments, or all segments of a path that has exactly as many. Segments in the
     * middle of a path that is longer than twice the longest pattern can't change the result. Path parameters never do.
     */

    /** Path patterns with half as many segments are unheard of. */
    static final int MAX_SEGMENTS = 64;

    private LongPath() {}

    /**
     * Returns the path without the segments in its middle, if there are more than {@value #MAX_SEGMENTS}. A variable such
     * as {@code {*path}} then lacks them, too.
     */
    static String withoutMiddle(String path) {
        int head = 0;
        int tail = path.length();
        for (int i = 0; i < MAX_SEGMENTS / 2; i++) {
            head = path.indexOf('/', head + 1);
            tail = path.lastIndexOf('/', tail - 1);
            if (head < 0 || tail <= head) {
                return path;
            }
        }
        return path.substring(0, head) + path.substring(tail);
    }

    /**
     * Returns the path, as a client sent it, with empty path parameters. Each semicolon stays: a segment that consists of
     * parameters alone is empty, but still a segment.
     */
    static String withoutParameters(String path) {
        int semicolon = path.indexOf(';');
        if (semicolon < 0) {
            return path;
        }
        StringBuilder kept = new StringBuilder(path.length());
        int start = 0;
        while (semicolon >= 0) {
            kept.append(path, start, semicolon + 1);
            int slash = path.indexOf('/', semicolon);
            start = slash < 0 ? path.length() : slash;
            semicolon = path.indexOf(';', start);
        }
        return kept.append(path, start, path.length()).toString();
    }
}
