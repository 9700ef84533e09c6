package io.ratelimit.replay;

import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The request of one line of a log, with the facts that the line contains. */
final class LogEntry {

    private static final long NANOS = 1_000_000_000L;

    /** The bytes that the strings of a header take in addition to their text. */
    private static final int HEADER_BYTES = 100;

    /** What Caddy writes in place of credentials. The value isn't in the log then. */
    static final String REDACTED = "REDACTED";

    /** Null where the format has no such fact, or the line has no value. */
    @Nullable
    String host;

    @Nullable
    String user;

    @Nullable
    String session;

    String method = "";
    String path = "";

    @Nullable
    String query;

    /** The names of the logged headers in lower case, and their values in this request. */
    List<String> headers = List.of();

    @Nullable
    String[] headerValues = {};

    boolean allHeaders;
    List<String> cookies = List.of();

    @Nullable
    String[] cookieValues = {};

    int status;

    /** The nanoseconds that the request took; -1 if the line doesn't contain it. */
    long durationNanos = -1;

    /** The seconds since 1970 as if the written time were UTC, and the offset that the line writes, in seconds. */
    long localSeconds;

    int nanoOfSecond;

    @Nullable
    Integer offsetSeconds;

    boolean wholeSeconds;

    /** The position in the log, and the moment at which the request began, in nanoseconds since 1970. */
    long number;

    long startNanos;

    /** About the number of bytes that the entry takes while it waits. */
    int bytes;

    boolean hasRequest() {
        return !path.isEmpty();
    }

    /**
     * Returns whether the line seems to have a field more before the user than the format: the dash of the field that
     * servers no longer fill is then part of the user. Such a field may be the virtual host.
     */
    boolean isShifted() {
        return user != null && user.startsWith("- ");
    }

    /** Reads a request line such as {@code GET /items?page=2 HTTP/1.1}. A text that is none leaves the path empty. */
    void readRequest(String text) {
        int space = text.indexOf(' ');
        if (space > 0) {
            int end = text.lastIndexOf(' ');
            method = text.substring(0, space);
            readUri(text.substring(space + 1, end > space && text.startsWith("HTTP/", end + 1) ? end : text.length()));
        }
    }

    /** Reads a path with or without a query; of an absolute URI only what follows the authority. */
    void readUri(String text) {
        int scheme = text.indexOf("://");
        String uri = text;
        if (scheme > 0 && !text.startsWith("/")) {
            int slash = text.indexOf('/', scheme + 3);
            uri = slash < 0 ? "/" : text.substring(slash);
        }
        int question = uri.indexOf('?');
        path = question < 0 ? uri : uri.substring(0, question);
        query = question < 0 ? query : uri.substring(question + 1);
    }

    boolean logsHeader(String name) {
        int index = headers.indexOf(name.toLowerCase(Locale.ROOT));
        return index < 0 ? allHeaders : !REDACTED.equals(headerValues[index]);
    }

    @Nullable
    String header(String name) {
        int index = headers.indexOf(name.toLowerCase(Locale.ROOT));
        return index < 0 ? null : headerValues[index];
    }

    void sizeAs(String line) {
        bytes = line.length() + HEADER_BYTES * headerValues.length;
    }

    /** Sets the moment of the stamp, read with this offset. */
    void startAt(int offset) {
        startNanos = (localSeconds - offset) * NANOS + nanoOfSecond;
    }
}
