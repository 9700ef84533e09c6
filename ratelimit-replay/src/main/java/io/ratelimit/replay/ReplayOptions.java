package io.ratelimit.replay;

import io.ratelimit.demand.Demand;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.PicocliException;

/** The options of a command line, which picocli reads and describes. */
@Command(
        customSynopsis = "java -jar ratelimit-replay.jar [OPTION]... FILE...",
        description = "%nDecides the requests of access logs by the policies of an application.yml.%n",
        sortOptions = false,
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {
            "0:decided",
            "1:more denied than --fail-above",
            "2:wrong command line",
            "3:the configuration stops the start",
            "4:nothing could be decided, a file is damaged, the replay failed, or a report can't be written"
        })
final class ReplayOptions {

    private static final String ANY_PROPERTY = "--ratelimit.*";

    @Parameters(paramLabel = "FILE", description = "a log; - is the standard input, and gzip is decompressed")
    List<String> files = new ArrayList<>();

    @Option(
            names = "--config",
            paramLabel = "FILE",
            description = "the configuration; by default application.yml of this directory")
    private List<Path> configs = new ArrayList<>();

    @Option(
            names = {ANY_PROPERTY, "--spring.*"},
            paramLabel = "VALUE",
            description = "a property instead of the one in the configuration")
    private List<String> properties = new ArrayList<>();

    @Option(
            names = "--format",
            paramLabel = "FORMAT",
            description = "auto (default), common, combined, json, or a pattern of Tomcat, httpd or nginx")
    String format = "auto";

    @Option(
            names = "--field",
            paramLabel = "FACT=NAME",
            description = "the name of a fact in JSON: time, host, user, session, request, method, uri, query, status,"
                    + " or duration with its unit, as in duration=took:ms")
    Map<String, String> fields = Map.of();

    @Option(
            names = "--stamps",
            paramLabel = "start|end",
            description = "whether a stamp is the start of a request or its end; by default as the pattern has it")
    private @Nullable String stamps;

    @Option(
            names = "--zone",
            paramLabel = "ZONE",
            description = "the zone of stamps without an offset, such as Europe/Berlin; by default UTC")
    private String zone = ZoneOffset.UTC.getId();

    @Option(
            names = "--endpoints",
            paramLabel = "FILE",
            description = "the application's endpoints, one a line: GET /items/{id}")
    @Nullable
    Path endpoints;

    @Option(
            names = "--authentication",
            description = "the application authenticates; requests with 401 reach no policy behind that")
    boolean authentication;

    @Option(
            names = "--touch",
            paramLabel = "SHARE",
            description = "the share of keys that a suggested limit may affect, 0%% to 50%%; by default 0.1%%")
    private String touch = "0.1%";

    @Option(
            names = "--within",
            paramLabel = "DURATION",
            description = "the time over which a suggested limit shall be tight, 1s to 30d; by default 1m")
    private String within = "1m";

    @Option(names = "--html", paramLabel = "FILE", description = "writes the report as a page")
    @Nullable
    Path html;

    @Option(names = "--json", paramLabel = "FILE", description = "writes the report as JSON")
    @Nullable
    Path json;

    @Option(
            names = "--fail-above",
            paramLabel = "PERCENT",
            description = "the exit code is 1 if a larger share of the requests is denied")
    private String failAbove = "100%";

    @Option(names = "--quiet", description = "no progress bar")
    boolean quiet;

    @Option(names = "--help", usageHelp = true, description = "this text")
    boolean help;

    /** @throws PicocliException if an option is unknown or has no readable value, or a file is missing */
    static ReplayOptions of(List<String> arguments) {
        ReplayOptions options = new ReplayOptions();
        options.commandLine()
                .parseArgs(arguments.stream()
                        .map(argument -> argument.matches("(?s)--(ratelimit|spring)\\..*")
                                ? ANY_PROPERTY + "=" + argument
                                : argument)
                        .toArray(String[]::new));
        if (!options.help) {
            options.check();
        }
        return options;
    }

    private CommandLine commandLine() {
        return new CommandLine(this).setExpandAtFiles(false).setOverwrittenOptionsAllowed(true);
    }

    String usage() {
        return commandLine().getUsageMessage();
    }

    private void check() {
        if (files.isEmpty()) {
            throw new PicocliException("a log must be named, or '-' for the standard input");
        }
        files.stream().filter(file -> !file.equals("-")).forEach(file -> checkReadable("a log", Path.of(file)));
        configs.forEach(config -> checkReadable("--config", config));
        checkReadable("--endpoints", endpoints);
        checkWritable("--html", html);
        checkWritable("--json", json);
        check(stamps == null || stamps.equals("start") || stamps.equals("end"), "--stamps", "start or end", stamps);
        zone();
        touch();
        within();
        failAbove();
    }

    private static void checkReadable(String name, @Nullable Path file) {
        check(file == null || Files.isReadable(file) && !Files.isDirectory(file), name, "a readable file", file);
    }

    private static void checkWritable(String name, @Nullable Path file) {
        boolean writable = file == null
                || (Files.exists(file)
                        ? Files.isWritable(file) && !Files.isDirectory(file)
                        : Files.isWritable(file.toAbsolutePath().getParent()));
        check(writable, name, "a file that can be written", file);
    }

    private static void check(boolean valid, String name, String requirement, @Nullable Object value) {
        if (!valid) {
            throw new PicocliException(name + " must be " + requirement + ", but was '" + value + "'");
        }
    }

    /** Returns the properties among the options, as the arguments of an application. */
    List<String> properties() {
        List<String> all = new ArrayList<>(properties);
        configs.forEach(config -> all.add("--spring.config.location=" + config.toUri()));
        return all;
    }

    boolean stampsEnd(LogFormat format) {
        return stamps == null ? format.stampsEnd() : stamps.equals("end");
    }

    ZoneId zone() {
        return read("--zone", "a zone such as Europe/Berlin or +02:00", zone, ZoneId::of);
    }

    double touch() {
        return read("--touch", "a share from 0% to 50%, such as 0.1% or 0.001", touch, Demand::parseTouch);
    }

    Duration within() {
        return read("--within", "a time from 1s to 30d, such as 1m", within, Demand::parseWithin);
    }

    double failAbove() {
        double percent = read(
                "--fail-above",
                "a percentage such as 0.1%",
                failAbove,
                text -> Double.parseDouble(text.endsWith("%") ? text.substring(0, text.length() - 1) : ""));
        check(percent >= 0 && percent <= 100, "--fail-above", "a percentage such as 0.1%", failAbove);
        return percent / 100;
    }

    private static <T> T read(String name, String requirement, String value, Function<String, T> parser) {
        try {
            return parser.apply(value);
        } catch (RuntimeException unreadable) {
            throw new PicocliException(name + " must be " + requirement + ", but was '" + value + "'");
        }
    }
}
