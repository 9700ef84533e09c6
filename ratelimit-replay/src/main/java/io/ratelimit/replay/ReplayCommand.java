package io.ratelimit.replay;

import io.ratelimit.replay.LogReader.Line;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.logging.LogManager;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.yaml.snakeyaml.error.YAMLException;
import picocli.CommandLine.PicocliException;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * Replays access logs: {@code java -jar ratelimit-replay.jar access.log --config application.yml}. The exit code is in the
 * {@linkplain ReplayOptions#usage usage}.
 */
public final class ReplayCommand {

    static final int DECIDED = 0;
    static final int TOO_MANY_DENIED = 1;
    static final int WRONG_COMMAND_LINE = 2;
    static final int WRONG_CONFIGURATION = 3;

    /** Nothing or not all was decided, or a report can't be written. */
    static final int NOT_DECIDED = 4;

    /** The lines that must contain one of the format. */
    private static final int SAMPLE = 1000;

    private final InputStream in;
    private final PrintStream out;
    private final PrintStream err;

    ReplayCommand(InputStream in, PrintStream out, PrintStream err) {
        this.in = in;
        this.out = out;
        this.err = err;
    }

    public static void main(String[] arguments) throws IOException {
        System.setProperty("org.springframework.boot.logging.LoggingSystem", "none");
        try (InputStream logging = ReplayCommand.class.getResourceAsStream("logging.properties")) {
            LogManager.getLogManager().readConfiguration(logging);
        }
        System.exit(new ReplayCommand(System.in, System.out, System.err).run(List.of(arguments)));
    }

    int run(List<String> arguments) {
        ReplayOptions options;
        Map<String, LogFormat> formats;
        try {
            options = ReplayOptions.of(arguments);
            formats = formats(options);
        } catch (PicocliException | IllegalArgumentException wrong) {
            String similar = wrong instanceof UnmatchedArgumentException unknown
                            && !unknown.getSuggestions().isEmpty()
                    ? " Is it " + String.join(" or ", unknown.getSuggestions()) + "?"
                    : "";
            err.println(Terminal.escape(String.valueOf(wrong.getMessage())) + "." + similar
                    + " '--help' lists the options.");
            return WRONG_COMMAND_LINE;
        }
        try {
            if (options.help) {
                print(options.usage());
                return DECIDED;
            }
            try (ReplayPolicies policies = policies(options)) {
                return policies == null ? WRONG_CONFIGURATION : replay(options, formats, policies);
            }
        } catch (ReplayPolicies.WrongEndpointException wrong) {
            err.println(wrong.getMessage());
            return WRONG_COMMAND_LINE;
        } catch (IOException failure) {
            err.println("Can't read or write: " + Terminal.escape(failure.toString()));
            return NOT_DECIDED;
        } catch (RuntimeException | Error failure) {
            err.print("The replay failed: ");
            StringWriter trace = new StringWriter();
            failure.printStackTrace(new PrintWriter(trace));
            trace.toString()
                    .lines()
                    .map(line -> line.replace("\t", "    "))
                    .map(Terminal::escape)
                    .forEach(err::println);
            return NOT_DECIDED;
        }
    }

    /** Prints a text. A stream keeps its failures to itself until it is asked. */
    private void print(String text) throws IOException {
        out.print(text);
        if (out.checkError()) {
            throw new IOException("Can't write to the standard output");
        }
    }

    /** Returns the policies; null if their configuration stops the start. Spring Boot reports all causes but malformed YAML. */
    private @Nullable ReplayPolicies policies(ReplayOptions options) throws IOException {
        ReplayPolicies policies;
        try {
            policies = ReplayPolicies.read(options.properties(), options.endpoints, options.authentication);
        } catch (ReplayPolicies.WrongEndpointException wrong) {
            throw wrong;
        } catch (RuntimeException stopped) {
            for (Throwable cause = stopped; cause != null; cause = cause.getCause()) {
                if (cause instanceof YAMLException malformed) {
                    err.println("The configuration is not valid YAML: " + malformed.getMessage());
                }
            }
            return null;
        }
        if (policies.properties().policies().isEmpty()) {
            err.println(
                    "The configuration has no policies below 'ratelimit.policies'. Name the file with '--config', or"
                            + " check its indentation.");
            policies.close();
            return null;
        }
        return policies;
    }

    /** Returns the formats that the lines may have, the likeliest first. */
    private static Map<String, LogFormat> formats(ReplayOptions options) {
        List<String> names =
                options.format.equals("auto") ? List.of("json", "combined", "common") : List.of(options.format);
        Map<String, LogFormat> formats = new LinkedHashMap<>();
        for (String name : names) {
            formats.put(name, LogFormat.of(name, options.fields, new Stamps()));
        }
        return formats;
    }

    private int replay(ReplayOptions options, Map<String, LogFormat> formats, ReplayPolicies policies)
            throws IOException {
        Replay replay = new Replay(policies, options.authentication);
        UnreadLines unread = new UnreadLines();
        try (LogReader reader = new LogReader(options.files, in)) {
            List<Line> sample = sample(reader);
            LogFormat format = mostFrequent(formats, sample);
            if (format == null) {
                err.print(
                        unread.explain(options, sample.stream().map(Line::text).toList(), reader));
                return NOT_DECIDED;
            }
            LogClock clock = new LogClock(options.zone(), options.stampsEnd(format));
            sample.stream()
                    .flatMap(line -> Stream.ofNullable(format.read(line.text())))
                    .forEach(clock::note);
            Progress progress = new Progress(reader, options.quiet ? null : err);
            for (Line line : sample) {
                add(line, format, clock, replay, unread);
            }
            for (Line line = reader.next(); line != null; line = reader.next()) {
                add(line, format, clock, replay, unread);
                progress.show();
            }
            replay.finish();
            progress.end();
            Findings findings = new Findings(options, reader, format, clock, unread, replay, policies.properties());
            print(new TextReport(findings).text());
            if (options.json != null) {
                Files.write(options.json, new JsonReport(findings).json().getBytes(StandardCharsets.UTF_8));
            }
            if (options.html != null) {
                Files.write(options.html, new JsonReport(findings).html().getBytes(StandardCharsets.UTF_8));
            }
            return exitCode(options, reader, replay);
        }
    }

    /** Returns the first lines, as far as they fit in memory. */
    private static List<Line> sample(LogReader reader) {
        List<Line> sample = new ArrayList<>();
        int bytes = 0;
        for (Line line = reader.next(); line != null; ) {
            sample.add(line);
            bytes += line.text().length();
            line = sample.size() < SAMPLE && bytes < RequestOrder.MAX_BYTES ? reader.next() : null;
        }
        return sample;
    }

    private static void add(Line line, LogFormat format, LogClock clock, Replay replay, UnreadLines unread) {
        LogEntry entry = format.read(line.text());
        if (entry == null) {
            unread.add(line.number(), line.text());
        } else {
            entry.number = line.number();
            entry.sizeAs(line.text());
            clock.read(entry);
            replay.add(entry);
        }
    }

    /** Returns the format that the most lines have; null if they have none. A format that was named is believed. */
    private static @Nullable LogFormat mostFrequent(Map<String, LogFormat> formats, List<Line> sample) {
        boolean named = formats.size() == 1;
        LogFormat best = null;
        long maxMatches = 0;
        for (LogFormat format : formats.values()) {
            long matches = sample.stream()
                    .map(line -> format.read(line.text()))
                    .filter(entry -> entry != null && (named || !entry.isShifted()))
                    .count();
            if (matches > maxMatches) {
                best = format;
                maxMatches = matches;
            }
        }
        return best;
    }

    private int exitCode(ReplayOptions options, LogReader reader, Replay replay) {
        boolean anyDecided = replay.results().stream().anyMatch(result -> result.decided[PolicyResult.AT_ONCE] > 0);
        if (!reader.problems().isEmpty() || !anyDecided) {
            return NOT_DECIDED;
        }
        double share = (double) Math.max(replay.denied()[0], replay.denied()[1]) / replay.requests();
        return share > options.failAbove() ? TOO_MANY_DENIED : DECIDED;
    }

    /** A progress bar: the part of the bytes that was read, lines a second, and the time that is left. */
    static final class Progress {

        private static final int WIDTH = 30;
        private static final long INTERVAL = 200_000_000L;

        private final LogReader reader;
        private final @Nullable PrintStream out;
        private final long start = System.nanoTime();
        private long shownAt = start;

        /** @param out the stream to write to; null for none */
        Progress(LogReader reader, @Nullable PrintStream out) {
            this.reader = reader;
            this.out = out;
        }

        /** Shows the progress, five times a second at most. */
        void show() {
            long now = System.nanoTime();
            if (out != null && now - shownAt >= INTERVAL) {
                shownAt = now;
                out.print("\r" + bar(reader.progress(), reader.lines(), (now - start) / 1e9));
                out.flush();
            }
        }

        static String bar(double part, long lines, double seconds) {
            String rate =
                    String.format(Locale.ROOT, "%,d lines, %,.0f a second", lines, lines / Math.max(seconds, 1e-3));
            if (part < 0) {
                return rate + "  ";
            }
            int full = (int) (part * WIDTH);
            double left = part <= 0 ? 0 : seconds / part - seconds;
            return "[" + "#".repeat(full) + ".".repeat(WIDTH - full) + "]"
                    + String.format(Locale.ROOT, " %3.0f %%, %s, %.0f s left  ", part * 100, rate, left);
        }

        void end() {
            if (out != null && shownAt != start) {
                out.print("\r" + " ".repeat(WIDTH + 60) + "\r");
                out.flush();
            }
        }
    }
}
