package io.ratelimit.web.servlet.endpoint;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.springframework.web.util.pattern.PathPattern;

/**
 * Path patterns, found by the segments of a path. The time to find them depends on the path, and not on how many patterns
 * there are. Not changed after its construction, and then thread-safe.
 *
 * @param <T> the values that patterns have
 */
public final class PathIndex<T> {

    /*
     * Which of ten thousand patterns match a path? Trying each one costs 40 ns a pattern. A tree of literal beginnings
     * finds those of /items/{id}, but has all patterns such as /{tenant}/items at its root.
     *
     * Each pattern therefore has one path through the tree: a segment without wildcards is a branch with its text, and a
     * segment that matches exactly one segment of a path, whatever its text, is the branch "any". A path is followed down
     * the branch with its segment's text, and down the branch "any". With /{tenant}/items and /{tenant}/orders, the path
     * /acme/items passes three nodes. A pattern ends at the node of its last segment. From /** on, and from a segment
     * that may match none or several segments of a path, a pattern is tried for all paths that reach its node.
     *
     * The tree only selects: it ignores the case of letters, empty segments and trailing slashes, because some patterns do.
     * PathPattern decides. It needs a parsed path, so a pattern of literals and variables compares the text of a path in
     * which nothing is escaped, first: if they agree, PathPattern would agree, too.
     */

    private final Node<T> root = new Node<>("");
    private boolean empty = true;

    public void add(PathPattern pattern, T value) {
        Entry<T> entry = new Entry<>(pattern, value);
        Node<T> node = root;
        List<String> segments = segments(pattern.getPatternString());
        empty = false;
        for (int i = 0; i < segments.size(); i++) {
            String segment = segments.get(i);
            if (isLiteral(segment)) {
                node = node.literal(segment);
            } else if (segment.equals("*") && i == segments.size() - 1) {
                node.ending = with(node.ending, entry); // matches a path that ends with a slash, too
                node = node.any();
            } else if (matchesOneSegment(segment)) {
                node = node.any();
            } else {
                node.open = with(node.open, entry);
                return;
            }
        }
        node.ending = with(node.ending, entry);
    }

    /** Most nodes have one pattern or none: a list that can grow would take more memory than the node. */
    private static <T> List<Entry<T>> with(List<Entry<T>> entries, Entry<T> entry) {
        List<Entry<T>> longer = new ArrayList<>(entries);
        longer.add(entry);
        return List.copyOf(longer);
    }

    /** Returns whether there is no pattern. */
    public boolean isEmpty() {
        return empty;
    }

    /** Passes each pattern that may match the path. Few of those passed don't match. */
    public void candidates(RequestPath path, Consumer<Entry<T>> candidates) {
        follow(root, path.segments(), 1, candidates);
    }

    private static <T> void follow(Node<T> node, String path, int start, Consumer<Entry<T>> candidates) {
        pass(node.open, candidates);
        if (start >= path.length()) {
            pass(node.ending, candidates);
            return;
        }
        int slash = path.indexOf('/', start);
        int end = slash < 0 ? path.length() : slash;
        Node<T> child = node.child(path, start, end);
        if (child != null) {
            follow(child, path, end + 1, candidates);
        }
        if (node.any != null) {
            follow(node.any, path, end + 1, candidates);
        }
    }

    private static <T> void pass(List<Entry<T>> entries, Consumer<Entry<T>> candidates) {
        for (int i = 0; i < entries.size(); i++) {
            candidates.accept(entries.get(i));
        }
    }

    private static List<String> segments(String pattern) {
        List<String> segments = new ArrayList<>();
        for (String segment : pattern.split("/")) {
            if (!segment.isEmpty()) {
                segments.add(segment);
            }
        }
        return segments;
    }

    private static boolean isLiteral(String segment) {
        for (int i = 0; i < segment.length(); i++) {
            if ("{}*?".indexOf(segment.charAt(i)) >= 0) {
                return false;
            }
        }
        return true;
    }

    /**
     * Returns whether a segment of a pattern matches exactly one segment of a path, which isn't empty: it is {@code *}, one
     * variable, or needs a certain character. {@code {a}{b}} may match nothing.
     */
    private static boolean matchesOneSegment(String segment) {
        if (segment.equals("*")) {
            return true;
        }
        int variables = 0;
        boolean needsCharacter = false;
        for (int i = 0; i < segment.length(); i++) {
            char c = segment.charAt(i);
            if (c == '{') {
                i = endOfVariable(segment, i);
                variables++;
            } else {
                needsCharacter |= c != '*';
            }
            if (i < 0) {
                return false;
            }
        }
        boolean severalSegments = segment.startsWith("{*");
        return !severalSegments
                && (needsCharacter || variables == 1 && segment.startsWith("{") && segment.endsWith("}"));
    }

    /** Returns the index of a variable's closing brace; -1 if there is none, as when its expression contains a slash. */
    private static int endOfVariable(String segment, int start) {
        int depth = 0;
        for (int i = start; i < segment.length(); i++) {
            switch (segment.charAt(i)) {
                case '\\' -> i++;
                case '{' -> depth++;
                case '}' -> depth--;
                default -> {}
            }
            if (depth == 0) {
                return i;
            }
        }
        return -1;
    }

    /** A pattern and its value. */
    public static final class Entry<T> {

        private static final String REST = "/**";

        private final PathPattern pattern;
        private final T value;
        private final @Nullable String comparable;
        private final boolean open;

        private Entry(PathPattern pattern, T value) {
            String text = pattern.getPatternString();
            this.pattern = pattern;
            this.value = value;
            this.open = text.endsWith(REST);
            String beginning = open ? text.substring(0, text.length() - REST.length()) : text;
            this.comparable = isComparable(beginning) ? beginning : null;
        }

        private static boolean isComparable(String beginning) {
            boolean slashes = beginning.isEmpty() || beginning.startsWith("/") && !beginning.endsWith("/");
            return slashes
                    && !beginning.contains("//")
                    && segments(beginning).stream().allMatch(segment -> isLiteral(segment) || isVariable(segment));
        }

        private static boolean isVariable(String segment) {
            return segment.startsWith("{")
                    && segment.endsWith("}")
                    && isLiteral(segment.substring(1, segment.length() - 1))
                    && segment.indexOf(':') < 0;
        }

        /** Returns the value of the pattern. */
        public T value() {
            return value;
        }

        PathPattern pattern() {
            return pattern;
        }

        /** Returns whether the pattern matches the path. */
        public boolean matches(RequestPath path) {
            return path.isPlain() && comparable != null && agrees(comparable, path.segments())
                    || pattern.matches(path.parsed());
        }

        /** Compares literals and variables with a plain path. Upper and lower case differ here. */
        private boolean agrees(String pattern, String path) {
            int at = 0;
            for (int i = 0; i < pattern.length(); i++) {
                char c = pattern.charAt(i);
                if (at >= path.length()) {
                    return false;
                } else if (c == '{') {
                    int slash = path.indexOf('/', at);
                    at = slash < 0 ? path.length() : slash;
                    i = pattern.indexOf('}', i);
                } else if (path.charAt(at++) != c) {
                    return false;
                }
            }
            return at == path.length() || open && path.charAt(at) == '/';
        }
    }

    /** The patterns with one beginning. */
    private static final class Node<T> {

        private final String segment;
        private final int hash;
        private @Nullable Node<T> any;
        private List<Entry<T>> ending = List.of();
        private List<Entry<T>> open = List.of();
        private @Nullable Node<T> @Nullable [] literals; // by hash, and half of it is free
        private int size;

        Node(String segment) {
            this.segment = segment;
            this.hash = hash(segment, 0, segment.length());
        }

        Node<T> any() {
            if (any == null) {
                any = new Node<>("");
            }
            return any;
        }

        Node<T> literal(String segment) {
            Node<T> child = child(segment, 0, segment.length());
            if (child == null) {
                child = new Node<>(segment);
                literals = literals == null ? table(2) : 2 * size < literals.length ? literals : larger(literals);
                put(child, literals);
                size++;
            }
            return child;
        }

        private static <T> @Nullable Node<T>[] larger(@Nullable Node<T>[] table) {
            @Nullable Node<T>[] larger = table(2 * table.length);
            for (Node<T> child : table) {
                if (child != null) {
                    put(child, larger);
                }
            }
            return larger;
        }

        @SuppressWarnings("unchecked")
        private static <T> @Nullable Node<T>[] table(int length) {
            return (@Nullable Node<T>[]) new Node<?>[length];
        }

        private static <T> void put(Node<T> child, @Nullable Node<T>[] table) {
            int i = child.hash & table.length - 1;
            while (table[i] != null) {
                i = i + 1 & table.length - 1;
            }
            table[i] = child;
        }

        /** Returns the child of a segment of a text; null if there is none. */
        @Nullable
        Node<T> child(String text, int start, int end) {
            @Nullable Node<T>[] table = literals;
            if (table == null) {
                return null;
            }
            int hash = hash(text, start, end);
            for (int i = hash & table.length - 1; ; i = i + 1 & table.length - 1) {
                Node<T> child = table[i];
                if (child == null || child.hash == hash && child.isFor(text, start, end)) {
                    return child;
                }
            }
        }

        private boolean isFor(String text, int start, int end) {
            return segment.length() == end - start && segment.regionMatches(true, 0, text, start, end - start);
        }

        private static int hash(String text, int start, int end) {
            int hash = 0;
            for (int i = start; i < end; i++) {
                int c = text.charAt(i);
                if (c >= 128) {
                    c = text.codePointAt(i);
                    i += Character.charCount(c) - 1;
                }
                hash = 31 * hash + folded(c);
            }
            int mixed = hash * 0x9E3779B9; // item1, item2 and so on would stand side by side
            return mixed ^ mixed >>> 16;
        }

        /** Folds a letter as {@link String#equalsIgnoreCase} does, by which Spring compares: a dotless i is an i. */
        private static int folded(int c) {
            if (c < 128) {
                return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
            }
            return Character.toLowerCase(Character.toUpperCase(c));
        }
    }
}
