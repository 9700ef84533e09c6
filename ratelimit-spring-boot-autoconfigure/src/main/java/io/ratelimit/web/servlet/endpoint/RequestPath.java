package io.ratelimit.web.servlet.endpoint;

import io.ratelimit.Keys;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.PathContainer.Element;
import org.springframework.http.server.PathContainer.PathSegment;
import org.springframework.http.server.PathContainer.Separator;

/**
 * The path of a request, as patterns match it. Parsed only if a pattern needs it. A long path is shortened: it costs no more
 * than one of {@value #MAX_SEGMENTS} segments, and patterns match it exactly where they match the whole path. Used by one
 * thread at a time.
 */
public final class RequestPath {

    /*
     * Why a long path is shortened. A request line has room for thousands of segments, and a rejection must not cost
     * more than the answer would have. A limit above which a path is not read at all would be a way around a limit:
     * "/login;aaaa..." and "/api/a/a/a..." still reach their handlers, and a key with the endpoint, a path variable or
     * a condition must see which.
     *
     * But a path pattern has "**" or "{*name}" only at its beginning or at its end. A pattern thus compares the first
     * segments of a path, or the last segments, or all segments of a path that has exactly as many. Segments in the
     * middle of a path that is longer than twice the longest pattern can't change the result. Path parameters never
     * do.
     */

    /** Path patterns with half as many segments are unheard of. */
    static final int MAX_SEGMENTS = 64;

    private static final PathContainer.Options WITHOUT_DECODING = PathContainer.Options.create('/', false);

    private final String text;
    private final boolean plain;
    private @Nullable PathContainer parsed;

    private RequestPath(String text, boolean plain, @Nullable PathContainer parsed) {
        this.text = text;
        this.plain = plain;
        this.parsed = parsed;
    }

    /**
     * Returns a path whose segments are equal to their decoded texts.
     *
     * @param text begins with a slash, and has no escapes, no path parameters, and no empty segment but the last
     */
    public static RequestPath plain(String text) {
        return new RequestPath(withoutMiddle(text), true, null);
    }

    /** Returns the path that a client sent, as Spring MVC parses it. */
    public static RequestPath sent(String path) {
        return of(PathContainer.parsePath(withoutParameters(withoutMiddle(path))));
    }

    /** Returns a path that the container has decoded. */
    public static RequestPath decoded(String path) {
        return of(PathContainer.parsePath(withoutMiddle(path), WITHOUT_DECODING));
    }

    public static RequestPath of(PathContainer path) {
        StringBuilder text = new StringBuilder(path.value().length() + 1);
        for (Element element : path.elements()) {
            if (element instanceof PathSegment segment) {
                text.append('/').append(segment.valueToMatch().replace('/', '\0'));
            }
        }
        return new RequestPath(text.toString(), false, path);
    }

    /**
     * Returns the path without the segments in its middle, if there are more than {@value #MAX_SEGMENTS}. A variable such
     * as {@code {*path}} then lacks them, too.
     */
    private static String withoutMiddle(String path) {
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
    private static String withoutParameters(String path) {
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

    /** Returns the path in Spring MVC's form. */
    public PathContainer parsed() {
        if (parsed == null) {
            parsed = PathContainer.parsePath(text);
        }
        return parsed;
    }

    /**
     * Returns the segments, each behind a slash. An escaped slash within a segment is another character, and a slash
     * without a segment behind it has no meaning: the text selects patterns, but only {@link #parsed} decides.
     */
    String segments() {
        return text;
    }

    /** Returns whether {@link #segments} is the whole path. */
    boolean isPlain() {
        return plain;
    }

    /** Returns the path without its trailing slash; this path if it has none. */
    public RequestPath withoutTrailingSlash() {
        if (plain) {
            int last = text.length() - 1;
            return last > 0 && text.charAt(last) == '/' ? new RequestPath(text.substring(0, last), true, null) : this;
        }
        PathContainer path = parsed();
        int last = path.elements().size() - 1;
        return last > 0 && path.elements().get(last) instanceof Separator ? of(path.subPath(0, last)) : this;
    }

    /**
     * Returns the path with its letters folded as {@link String#equalsIgnoreCase} compares them, and without parameters, empty
     * segments and a trailing slash; this path if it has ASCII letters alone, which patterns compare by themselves.
     */
    public RequestPath folded() {
        for (int i = 0; i < text.length(); i++) {
            if (text.charAt(i) >= 128) {
                return of(PathContainer.parsePath(Keys.part(text, true), WITHOUT_DECODING));
            }
        }
        return this;
    }

    /** Returns the path below a prefix, or null if it does not begin with the prefix. */
    @Nullable
    RequestPath below(PathContainer prefix) {
        List<Element> beginning = prefix.elements();
        if (beginning.isEmpty()) {
            return this;
        }
        List<Element> elements = parsed().elements();
        if (elements.size() < beginning.size()) {
            return null;
        }
        for (int i = 0; i < beginning.size(); i++) {
            if (!text(elements.get(i)).equals(text(beginning.get(i)))) {
                return null;
            }
        }
        return of(parsed().subPath(beginning.size()));
    }

    private static String text(Element element) {
        return element instanceof PathSegment segment ? segment.valueToMatch() : element.value();
    }
}
