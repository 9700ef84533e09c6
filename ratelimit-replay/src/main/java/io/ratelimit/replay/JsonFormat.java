package io.ratelimit.replay;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
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
            HOST remoteAddr remote_addr request.client_ip request.remote_ip client.ip source.ip ClientHost remote_ip client_ip ip
            USER remote_user user_id user user.name ClientUsername
            SESSION sessionId
            REQUEST request
            METHOD request_method method request.method http.request.method RequestMethod
            URI request_uri uri request.uri path url.original url.path url RequestPath
            QUERY query query_string args url.query
            STATUS status statusCode http.response.status_code DownstreamStatus
            DURATION request_time:s elapsedTime:us duration_ms:ms Duration:ns
            """;

    private static final List<String> HEADER_PREFIXES = List.of("request.headers.", "headers.", "http_");

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
            List<String> headers = new ArrayList<>();
            List<String> values = new ArrayList<>();
            parser.nextToken();
            if (!read(parser, "", entry, ranks, headers, values)) {
                return null;
            }
            entry.headers = headers;
            entry.headerValues = values.toArray(String[]::new);
            return ranks.containsKey(Fact.TIME) && (entry.hasRequest() || ranks.containsKey(Fact.REQUEST))
                    ? entry
                    : null;
        } catch (JacksonException malformed) {
            return null;
        }
    }

    /** Reads an object. The first value of an array counts. */
    private boolean read(
            JsonParser parser,
            String path,
            LogEntry entry,
            Map<Fact, Integer> ranks,
            List<String> headers,
            List<String> values) {
        for (JsonToken token = parser.nextToken(); token != JsonToken.END_OBJECT; token = parser.nextToken()) {
            String name = path.isEmpty() ? parser.currentName() : path + parser.currentName();
            token = parser.nextToken();
            if (token == JsonToken.START_OBJECT) {
                entry.allHeaders |= HEADER_PREFIXES.contains(name + ".");
                if (!read(parser, name + ".", entry, ranks, headers, values)) {
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
                addHeader(name, text, headers, values);
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
        if (target == null || ranks.getOrDefault(target.fact, Integer.MAX_VALUE) <= target.rank) {
            return true;
        }
        ranks.put(target.fact, target.rank);
        return set(entry, target.fact, target.unitNanos, text, stamps);
    }

    private static void addHeader(String name, String text, List<String> headers, List<String> values) {
        for (String prefix : HEADER_PREFIXES) {
            if (name.startsWith(prefix)) {
                headers.add(name.substring(prefix.length()).replace('_', '-').toLowerCase(Locale.ROOT));
                values.add(text);
                return;
            }
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
