package io.ratelimit.replay;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.ObjectReadContext;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.json.JsonFactory;

/** One JSON object a line, with the names that nginx's examples, Tomcat, Caddy, Traefik and ECS use, or with given names. */
final class JsonFormat extends LogFormat {

    /** The names of each fact. If a line has several of them, the first one counts. */
    private static final String NAMES = """
            TIME @timestamp time_iso8601 timestamp time ts msec time_local StartUTC
            HOST remoteAddr remote_addr request.client_ip request.remote_ip client.ip source.ip ClientHost remote_ip client_ip ip host
            USER remote_user user_id user user.name ClientUsername
            SESSION sessionId
            REQUEST request
            METHOD request_method method request.method http.request.method RequestMethod
            URI request_uri uri request.uri path url.original url.path url RequestPath
            QUERY query query_string args url.query
            STATUS status statusCode http.response.status_code DownstreamStatus
            DURATION request_time:s elapsedTime:us elapsedTimeS-us:us elapsedTimeS-ms:ms elapsedTimeS:s event.duration:ns duration_ms:ms Duration:ns
            """;

    /** The object of the headers that Tomcat's pattern names; objects of other servers have all headers. */
    private static final String SOME_HEADERS = "requestHeaders.";

    private static final List<String> HEADER_PREFIXES = List.of("request.headers.", "headers.", SOME_HEADERS, "http_");
    private static final String COOKIES = "cookies.";

    /** Tomcat's {@code host} is the client's address; in other logs it is often the name of the server. */
    private static final Pattern ADDRESS = Pattern.compile("[0-9.]+|(?:[0-9a-fA-F.]*:){2,}[0-9a-fA-F.:]*");

    private final JsonFactory json = JsonFactory.builder()
            .streamReadConstraints(
                    StreamReadConstraints.builder().maxNestingDepth(50).build())
            .build();
    private final Map<String, Target> targets = new HashMap<>();
    private final Stamps stamps;

    /** @param rank of two names of one fact, the one with the lower rank wins */
    private record Target(Fact fact, double unitNanos, int rank) {}

    /** @param fields the names of facts by the fact, such as {@code time} → {@code ts}; a duration may end with its unit */
    JsonFormat(Map<String, String> fields, Stamps stamps) {
        this.stamps = stamps;
        readNames(NAMES, this::add);
        fields.forEach(this::addField);
    }

    private void addField(String name, String field) {
        try {
            add(Fact.valueOf(name.toUpperCase(Locale.ROOT)), field, 0);
        } catch (IllegalArgumentException unknown) {
            throw new IllegalArgumentException(
                    "--field must begin with time, host, user, session, request, method, uri,"
                            + " query, status or duration, but was '" + name + "'");
        }
    }

    /** Adds a name, of a duration with its unit. */
    private void add(Fact fact, String name, int rank) {
        int colon = name.lastIndexOf(':');
        Double unit = colon < 0 ? null : UNITS.get(name.substring(colon + 1));
        targets.put(unit == null ? name : name.substring(0, colon), new Target(fact, unit == null ? 1e9 : unit, rank));
    }

    @Override
    @Nullable
    LogEntry read(String line) {
        if (!line.stripLeading().startsWith("{")) {
            return null;
        }
        try (JsonParser parser = json.createParser(ObjectReadContext.empty(), line)) {
            LogEntry entry = new LogEntry();
            Map<Fact, Integer> ranks = new HashMap<>();
            Texts headers = new Texts();
            Texts cookies = new Texts();
            parser.nextToken();
            if (!read(parser, "", entry, ranks, headers, cookies)) {
                return null;
            }
            entry.headers = headers.names;
            entry.headerValues = headers.values.toArray(String[]::new);
            entry.cookies = cookies.names;
            entry.cookieValues = cookies.values.toArray(String[]::new);
            return ranks.containsKey(Fact.TIME) && (entry.hasRequest() || ranks.containsKey(Fact.REQUEST))
                    ? entry
                    : null;
        } catch (JacksonException malformed) {
            return null;
        }
    }

    /** Reads an object. The first value of an array counts. */
    private boolean read(
            JsonParser parser, String path, LogEntry entry, Map<Fact, Integer> ranks, Texts headers, Texts cookies) {
        for (JsonToken token = parser.nextToken(); token != JsonToken.END_OBJECT; token = parser.nextToken()) {
            String name = path.isEmpty() ? parser.currentName() : path + parser.currentName();
            token = parser.nextToken();
            if (token == JsonToken.START_OBJECT) {
                entry.allHeaders |= HEADER_PREFIXES.contains(name + ".") && !SOME_HEADERS.equals(name + ".");
                if (!read(parser, name + ".", entry, ranks, headers, cookies)) {
                    return false;
                }
                continue;
            }
            boolean array = token == JsonToken.START_ARRAY;
            token = array ? parser.nextToken() : token;
            if (token != null && token.isScalarValue()) {
                String text = token == JsonToken.VALUE_NULL ? "" : parser.getString();
                if (!set(name, text, entry, ranks)) {
                    return false;
                }
                add(name, text, headers, cookies);
            } else if (token == JsonToken.END_ARRAY && !name.startsWith(COOKIES)) {
                add(name, LogEntry.REDACTED, headers, cookies); // older versions of Caddy write it so
            }
            for (int depth = array && token != JsonToken.END_ARRAY ? 1 : 0; depth > 0; ) {
                token = token != null && token.isStructStart() ? skip(parser) : parser.nextToken();
                depth = token == JsonToken.END_ARRAY ? 0 : depth;
            }
        }
        return true;
    }

    private static @Nullable JsonToken skip(JsonParser parser) {
        parser.skipChildren();
        return parser.nextToken();
    }

    private boolean set(String name, String text, LogEntry entry, Map<Fact, Integer> ranks) {
        Target target = targets.get(name);
        if (target == null
                || ranks.getOrDefault(target.fact, Integer.MAX_VALUE) <= target.rank
                || isServer(name, target, text)) {
            return true;
        }
        ranks.put(target.fact, target.rank);
        return set(entry, target.fact, target.unitNanos, text, stamps);
    }

    private static boolean isServer(String name, Target target, String text) {
        return name.equals("host") && target.rank > 0 && !ADDRESS.matcher(text).matches();
    }

    private static void add(String name, String text, Texts headers, Texts cookies) {
        if (name.startsWith(COOKIES)) {
            cookies.add(name.substring(COOKIES.length()), text);
        }
        for (String prefix : HEADER_PREFIXES) {
            if (name.startsWith(prefix)) {
                headers.add(name.substring(prefix.length()).replace('_', '-').toLowerCase(Locale.ROOT), text);
                return;
            }
        }
    }

    /** The logged headers or cookies of a request. A dash stands for one that the request doesn't have. */
    private static final class Texts {

        private final List<String> names = new ArrayList<>();
        private final List<@Nullable String> values = new ArrayList<>();

        void add(String name, String text) {
            names.add(name);
            values.add(text.equals("-") ? null : text);
        }
    }

    @Override
    boolean logs(Fact fact) {
        return true;
    }

    @Override
    public String toString() {
        return "json";
    }
}
