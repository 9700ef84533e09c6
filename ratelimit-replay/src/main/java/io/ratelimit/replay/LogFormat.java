package io.ratelimit.replay;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A reader of the lines of one format. httpdlog-parser 5.11 is no replacement: with it, a replay of a million lines took
 * 12.8 and 13.4 s instead of 7.3 s on two cores, and may take 10 s.
 */
abstract class LogFormat {

    static final String COMMON = "%h %l %u %t \"%r\" %s %b";
    static final String COMBINED = COMMON + " \"%{Referer}i\" \"%{User-Agent}i\"";

    enum Fact {
        HOST,
        USER,
        SESSION,
        TIME,
        REQUEST,
        METHOD,
        URI,
        QUERY,
        STATUS,
        DURATION,
        HEADER,
        COOKIE,
        OTHER
    }

    static final Map<String, Double> UNITS = Map.of("s", 1e9, "ms", 1e6, "us", 1e3, "ns", 1.0);

    /** Passes on the names of each fact from lines that begin with the fact, and the place of each name in its line. */
    static void readNames(String lines, NameReceiver receiver) {
        lines.lines().map(line -> line.split(" ")).forEach(names -> {
            for (int i = 1; i < names.length; i++) {
                receiver.add(Fact.valueOf(names[0]), names[i], i);
            }
        });
    }

    interface NameReceiver {
        void add(Fact fact, String name, int rank);
    }

    /**
     * Returns a format by its name, or by its pattern as Tomcat, httpd or nginx has it.
     *
     * @throws IllegalArgumentException if the text is neither, or the pattern lacks the time or the request
     */
    static LogFormat of(String text, Map<String, String> fields, Stamps stamps) {
        return switch (text) {
            case "common" -> new PatternFormat(text, COMMON, stamps);
            case "combined" -> new PatternFormat(text, COMBINED, stamps);
            case "json" -> new JsonFormat(fields, stamps);
            default -> new PatternFormat(text, text, stamps);
        };
    }

    /** Returns the entry of a line; null if the line doesn't have this format. */
    abstract @Nullable LogEntry read(String line);

    /** Returns whether the format contains a fact, as far as that is known before the lines. */
    abstract boolean logs(Fact fact);

    /** Returns whether stamps are by default written when a request ends, and not when it begins. */
    boolean stampsEnd() {
        return true;
    }

    /** Sets a fact. Returns false if the text can't be one. */
    static boolean set(LogEntry entry, Fact fact, double unitNanos, String text, Stamps stamps) {
        boolean missing = text.isEmpty() || text.equals("-");
        switch (fact) {
            case HOST -> entry.host = missing ? null : text;
            case USER -> entry.user = missing ? null : text;
            case SESSION -> entry.session = missing ? null : text;
            case REQUEST -> entry.readRequest(text);
            case METHOD -> entry.method = missing ? "" : text;
            case URI -> entry.readUri(missing ? "" : text);
            case QUERY -> entry.query = missing ? entry.query : text.startsWith("?") ? text.substring(1) : text;
            case TIME -> {
                return stamps.read(text, entry);
            }
            case STATUS -> {
                int status = missing || text.indexOf('.') >= 0 ? -1 : (int) number(text);
                entry.status = status >= 100 ? status : 0;
                return missing || status == 0 || status > 0 && text.length() == 3; // nginx has 009 for HTTP/0.9
            }
            case DURATION -> {
                double duration = missing ? -1 : number(text);
                entry.durationNanos = duration < 0 ? -1 : (long) (duration * unitNanos);
            }
            default -> {}
        }
        return true;
    }

    /** Returns a plain number; -1 for another text. */
    private static double number(String text) {
        boolean whole = true;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if ((c < '0' || c > '9') && c != '.') {
                return -1;
            }
            whole &= c != '.';
        }
        try {
            return whole ? Long.parseLong(text) : Double.parseDouble(text);
        } catch (NumberFormatException malformed) {
            return -1;
        }
    }

    /** A pattern of fields and the texts between them. The text after the last field is ignored. */
    private static final class PatternFormat extends LogFormat {

        private static final Pattern FIELD =
                Pattern.compile("%%|%[<>!,\\d]*(?:\\{([^}]*)\\})?([a-zA-Z])|\\$(?:\\{(\\w+)\\}|(\\w+))");

        /** The codes of Tomcat and httpd, and the variables of nginx. */
        private static final Map<String, Fact> CODES = new HashMap<>();

        static {
            readNames("""
                    HOST h a remote_addr
                    USER u remote_user
                    SESSION S
                    REQUEST r request
                    METHOD m request_method
                    URI U request_uri uri
                    QUERY q args query_string
                    STATUS s status
                    TIME t time_local time_iso8601 msec
                    DURATION request_time
                    """, (fact, name, rank) -> CODES.put(name, fact));
        }

        private final String name;
        private final Stamps stamps;
        private final List<Field> fields = new ArrayList<>();
        private final List<String> headers = new ArrayList<>();
        private final List<String> cookies = new ArrayList<>();
        private String start = "";
        private boolean end = true;

        /**
         * @param literal the text after the field; empty after the last
         * @param index the index of a header or cookie
         */
        private record Field(Fact fact, double unitNanos, int index, String literal) {}

        PatternFormat(String name, String pattern, Stamps stamps) {
            this.name = name;
            this.stamps = stamps;
            StringBuilder literal = new StringBuilder();
            Field open = null;
            Matcher matcher = FIELD.matcher(pattern);
            int last = 0;
            while (matcher.find(last)) {
                literal.append(pattern, last, matcher.start());
                last = matcher.end();
                if (matcher.group().equals("%%")) {
                    literal.append('%');
                    continue;
                }
                String code = matcher.group(2);
                if ("q".equals(code) && literal.isEmpty() && open != null && open.fact == Fact.URI) {
                    continue; // read with the path
                }
                Field field = code == null
                        ? variable(matcher.group(3) == null ? matcher.group(4) : matcher.group(3))
                        : code(code, matcher.group(1) == null ? "" : matcher.group(1));
                boolean bracketed = "t".equals(code) && matcher.group(1) == null;
                close(open, literal.append(bracketed ? "[" : ""));
                literal.append(bracketed ? "]" : "");
                open = field;
            }
            close(open, literal.append(pattern, last, pattern.length()));
            if (!logs(Fact.TIME) || !logs(Fact.REQUEST) && !(logs(Fact.METHOD) && logs(Fact.URI))) {
                throw new IllegalArgumentException("--format must be common, combined, json, or a pattern with the time"
                        + " and the request, such as '" + COMMON + "', but was '" + name + "'");
            }
        }

        private void close(@Nullable Field open, StringBuilder literal) {
            if (open == null) {
                start = literal.toString();
            } else {
                fields.add(new Field(open.fact, open.unitNanos, open.index, literal.toString()));
            }
            literal.setLength(0);
        }

        /** Returns a field of Tomcat's and httpd's patterns. */
        private Field code(String code, String argument) {
            return switch (code) {
                case "D" -> new Field(Fact.DURATION, 1e3, 0, "");
                case "T" -> new Field(Fact.DURATION, UNITS.getOrDefault(argument, 1e9), 0, "");
                case "i" -> header(argument);
                case "c", "C" -> cookie(argument);
                case "t" -> {
                    end = !argument.startsWith("begin:");
                    stamps.useFormat(argument.replaceFirst("^(begin|end):?", ""));
                    yield field(code);
                }
                default -> field(argument.isEmpty() ? code : "");
            };
        }

        /** Returns a field of nginx's patterns. */
        private Field variable(String name) {
            if (name.startsWith("cookie_")) {
                return cookie(name.substring(7));
            }
            boolean header = name.startsWith("http_")
                    || List.of("content_length", "content_type", "host").contains(name);
            return header ? header(name.replaceFirst("^http_", "").replace('_', '-')) : field(name);
        }

        private static Field field(String code) {
            return new Field(CODES.getOrDefault(code, Fact.OTHER), 1e9, 0, "");
        }

        private Field header(String name) {
            headers.add(name.toLowerCase(Locale.ROOT));
            return new Field(Fact.HEADER, 0, headers.size() - 1, "");
        }

        private Field cookie(String name) {
            cookies.add(name);
            return new Field(Fact.COOKIE, 0, cookies.size() - 1, "");
        }

        @Override
        boolean logs(Fact fact) {
            return fields.stream().anyMatch(field -> field.fact == fact);
        }

        @Override
        boolean stampsEnd() {
            return end;
        }

        @Override
        @Nullable
        LogEntry read(String line) {
            if (!line.startsWith(start)) {
                return null;
            }
            LogEntry entry = new LogEntry();
            entry.headers = headers;
            entry.headerValues = new @Nullable String[headers.size()];
            entry.cookies = cookies;
            entry.cookieValues = new @Nullable String[cookies.size()];
            int at = start.length();
            for (int i = 0; i < fields.size(); i++) {
                Field field = fields.get(i);
                boolean last = i == fields.size() - 1;
                int end = end(line, at, field.literal, last);
                if (end < 0) {
                    return null;
                }
                if (field.fact != Fact.OTHER && !set(entry, field, unescape(line.substring(at, end)))) {
                    return null;
                }
                at = end + field.literal.length();
            }
            return entry;
        }

        private boolean set(LogEntry entry, Field field, String text) {
            if (field.fact == Fact.HEADER || field.fact == Fact.COOKIE) {
                @Nullable String[] values = field.fact == Fact.HEADER ? entry.headerValues : entry.cookieValues;
                values[field.index] = text.equals("-") ? null : text;
                return true;
            }
            return LogFormat.set(entry, field.fact, field.unitNanos, text, stamps);
        }

        /** Returns the end of a field; -1 if its end is missing. An escaped quote doesn't end a quoted field. */
        private static int end(String line, int start, String literal, boolean last) {
            if (literal.isEmpty()) {
                int space = line.indexOf(' ', start);
                return last && space >= 0 ? space : line.length();
            }
            int end = line.indexOf(literal, start);
            while (end > start && literal.charAt(0) == '"' && isEscaped(line, start, end)) {
                end = line.indexOf(literal, end + 1);
            }
            return end;
        }

        private static boolean isEscaped(String line, int start, int end) {
            int backslashes = 0;
            while (end - backslashes > start && line.charAt(end - backslashes - 1) == '\\') {
                backslashes++;
            }
            return backslashes % 2 == 1;
        }

        /** Replaces the escapes of Tomcat, httpd and nginx. Bytes such as {@code \xC3\xA4} are UTF-8. */
        private static String unescape(String text) {
            if (text.indexOf('\\') < 0) {
                return text;
            }
            ByteArrayOutputStream bytes = new ByteArrayOutputStream(text.length());
            for (int i = 0; i < text.length(); i++) {
                char c = text.charAt(i);
                char next = c == '\\' && i + 1 < text.length() ? text.charAt(i + 1) : 0;
                int digits = next == 'x' ? 2 : next == 'u' ? 4 : 0;
                int code = digits == 0 || i + 1 + digits >= text.length()
                        ? -1
                        : hex(text.substring(i + 2, i + 2 + digits));
                if (code >= 0 && digits == 2) {
                    bytes.write(code);
                } else {
                    String plain =
                            code >= 0 ? String.valueOf((char) code) : String.valueOf(next == 0 ? c : plain(next));
                    bytes.writeBytes(plain.getBytes(StandardCharsets.UTF_8));
                }
                i += next == 0 ? 0 : code >= 0 ? 1 + digits : 1;
            }
            return bytes.toString(StandardCharsets.UTF_8);
        }

        private static int hex(String digits) {
            try {
                return Integer.parseUnsignedInt(digits, 16);
            } catch (NumberFormatException malformed) {
                return -1;
            }
        }

        private static char plain(char escaped) {
            return switch (escaped) {
                case 't' -> '\t';
                case 'n' -> '\n';
                case 'r' -> '\r';
                default -> escaped;
            };
        }

        @Override
        public String toString() {
            return name;
        }
    }
}
