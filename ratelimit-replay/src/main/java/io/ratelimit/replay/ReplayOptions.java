package io.ratelimit.replay;

import io.ratelimit.demand.Demand;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The options of a command line. */
final class ReplayOptions {

    static final String USAGE = """
            Decides the requests of access logs by the policies of an application.yml.

            java -jar ratelimit-replay.jar [OPTION]... FILE...      "-" is the standard input; gzip is decompressed

              --config FILE         the configuration; by default application.yml of this directory
              --ratelimit.*=VALUE   a property instead of the one in the configuration; also --spring.*
              --format FORMAT       auto (default), common, combined, json, or a pattern of Tomcat, httpd or nginx
              --field FACT=NAME     the name of a fact in JSON: time, host, user, session, request, method, uri, query,
                                    status, or duration with its unit, as in duration=took:ms
              --stamps start|end    whether a stamp is the start of a request or its end; by default as the pattern has it
              --zone ZONE           the zone of stamps without an offset, such as Europe/Berlin; by default UTC
              --endpoints FILE      the application's endpoints, one a line: GET /items/{id}
              --authentication      the application authenticates; requests with 401 reach no policy behind that
              --touch SHARE         the share of keys that a suggested limit may affect, 0% to 50%; by default 0.1%
              --within DURATION     the time over which a suggested limit shall be tight, 1s to 30d; by default 1m
              --html FILE           writes the report as a page
              --json FILE           writes the report as JSON
              --fail-above PERCENT  the exit code is 1 if a larger share of the requests is denied
              --quiet               no progress bar

            Exit codes: 0 decided; 1 more denied than --fail-above; 2 wrong command line; 3 the configuration stops the
            start; 4 nothing could be decided, a file is damaged, the replay failed, or a report can't be written.
            """;

    final List<String> files = new ArrayList<>();
    final List<String> properties = new ArrayList<>();
    final Map<String, String> fields = new HashMap<>();
    String format = "auto";

    @Nullable
    Boolean stampsEnd;

    ZoneId zone = ZoneOffset.UTC;

    @Nullable
    Path endpoints;

    boolean authentication;
    double touch = Demand.parseTouch(null);
    Duration within = Demand.parseWithin(null);

    @Nullable
    Path html;

    @Nullable
    Path json;

    double failAbove = 1;
    boolean quiet;
    boolean help;

    /** @throws IllegalArgumentException if an option is unknown or has no readable value, or a file is missing */
    ReplayOptions(List<String> arguments) {
        Iterator<String> rest = arguments.iterator();
        while (rest.hasNext()) {
            String argument = rest.next();
            int equals = argument.indexOf('=');
            if (argument.startsWith("--ratelimit.") || argument.startsWith("--spring.")) {
                properties.add(argument);
            } else if (argument.startsWith("--")) {
                String name = equals < 0 ? argument : argument.substring(0, equals);
                set(name, equals < 0 ? null : argument.substring(equals + 1), rest);
            } else {
                files.add(
                        argument.equals("-")
                                ? argument
                                : existing(argument, "a log").toString());
            }
        }
        if (files.isEmpty() && !help) {
            throw new IllegalArgumentException("a log must be named, or '-' for the standard input");
        }
    }

    private void set(String name, @Nullable String given, Iterator<String> rest) {
        switch (name) {
            case "--authentication" -> authentication = true;
            case "--quiet" -> quiet = true;
            case "--help" -> help = true;
            default -> setValue(name, given != null ? given : rest.hasNext() ? rest.next() : "");
        }
    }

    private void setValue(String name, String value) {
        switch (name) {
            case "--config" ->
                properties.add(
                        "--spring.config.location=" + existing(value, name).toUri());
            case "--format" -> format = value;
            case "--field" -> {
                int equals = value.indexOf('=');
                check(equals > 0, name, "FACT=NAME, such as time=ts", value);
                fields.put(value.substring(0, equals), value.substring(equals + 1));
            }
            case "--stamps" -> {
                check(value.equals("start") || value.equals("end"), name, "start or end", value);
                stampsEnd = value.equals("end");
            }
            case "--zone" -> {
                try {
                    zone = ZoneId.of(value);
                } catch (DateTimeException unknown) {
                    check(false, name, "a zone such as Europe/Berlin or +02:00", value);
                }
            }
            case "--endpoints" -> endpoints = existing(value, name);
            case "--touch" -> touch = read(Demand::parseTouch, value);
            case "--within" -> within = read(Demand::parseWithin, value);
            case "--html" -> html = writable(value, name);
            case "--json" -> json = writable(value, name);
            case "--fail-above" -> failAbove = share(name, value);
            default -> throw new IllegalArgumentException("there is no option '" + name + "'");
        }
    }

    private static double share(String name, String value) {
        try {
            double percent = Double.parseDouble(value.endsWith("%") ? value.substring(0, value.length() - 1) : "");
            if (percent >= 0 && percent <= 100) {
                return percent / 100;
            }
        } catch (NumberFormatException unreadable) {
            // reported below
        }
        check(false, name, "a percentage such as 0.1%", value);
        return 0;
    }

    /** Reads a value as the endpoint does, whose messages begin with the name of the parameter. */
    private static <T> T read(Function<String, T> parser, String value) {
        try {
            return parser.apply(value);
        } catch (IllegalArgumentException wrong) {
            throw new IllegalArgumentException("--" + wrong.getMessage() + ", but was '" + value + "'", wrong);
        }
    }

    private static Path writable(String file, String name) {
        Path path = Path.of(file).toAbsolutePath();
        boolean writable = Files.exists(path)
                ? Files.isWritable(path) && !Files.isDirectory(path)
                : Files.isWritable(path.getParent());
        check(writable, name, "a file that can be written", file);
        return path;
    }

    private static Path existing(String file, String name) {
        check(Files.isReadable(Path.of(file)) && !Files.isDirectory(Path.of(file)), name, "a readable file", file);
        return Path.of(file);
    }

    private static void check(boolean valid, String name, String requirement, String value) {
        if (!valid) {
            throw new IllegalArgumentException(name + " must be " + requirement + ", but was '" + value + "'");
        }
    }
}
