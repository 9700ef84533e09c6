package io.ratelimit.web.servlet.endpoint;

import io.ratelimit.Keys;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.PathContainer.Element;
import org.springframework.http.server.PathContainer.PathSegment;
import org.springframework.http.server.PathContainer.Separator;

/** The path of a request, as patterns match it. Parsed only if a pattern needs it. Used by one thread at a time. */
public final class RequestPath {

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
        return new RequestPath(text, true, null);
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
            return last > 0 && text.charAt(last) == '/' ? plain(text.substring(0, last)) : this;
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
