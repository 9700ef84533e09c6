package io.ratelimit.replay;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The lines that don't have the format: their number, and the first three. */
final class UnreadLines {

    private static final int SHOWN = 3;
    private static final int MAX_SHOWN = 160;

    private static final Set<String> METHODS =
            Set.of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT");

    /** The years 1990 and 2100. */
    private static final long MIN_SECONDS = 631_152_000L;

    private static final long MAX_SECONDS = 4_102_444_800L;

    /** Formats to suggest for lines that don't have the given one. */
    private static final Map<String, LogFormat> OTHERS = new LinkedHashMap<>();

    static {
        for (String format : List.of(
                "combined",
                "common",
                "json",
                "%v:%p " + LogFormat.COMBINED,
                "%v " + LogFormat.COMMON,
                "%t %a \"%r\" %s (%D us)",
                "%t [%a] %s %m %U%q",
                "$time_iso8601 $remote_addr \"$request\" $status",
                "$remote_addr [$time_local] \"$request\" $status",
                "$time_iso8601 $remote_addr $request_method $request_uri $status")) {
            OTHERS.put(format, LogFormat.of(format, Map.of(), new Stamps()));
        }
    }

    private final List<String> first = new ArrayList<>();
    private long count;

    void add(long number, String line) {
        count++;
        if (first.size() < SHOWN) {
            first.add("  line " + number + ": " + printable(line));
        }
    }

    long count() {
        return count;
    }

    /** Returns the first lines as they may be printed. */
    List<String> first() {
        return first;
    }

    /** Returns why nothing of a log could be read. */
    String explain(ReplayOptions options, List<String> sample, LogReader reader) {
        StringBuilder text = new StringBuilder();
        reader.problems().forEach(problem -> text.append(problem).append('\n'));
        if (sample.isEmpty()) {
            return text.append(
                            reader.lines() == 0
                                    ? "The log is empty: nothing was decided.\n"
                                    : (reader.lines() == 1
                                                    ? "The only line has"
                                                    : "All " + Findings.count(reader.lines(), "line") + " have")
                                            + " more than "
                                            + LogReader.MAX_LINE + " bytes: nothing was decided.\n")
                    .toString();
        }
        if (sample.stream().anyMatch(line -> line.indexOf('\0') >= 0)) {
            return text.append("The log is not a text file: nothing was decided.\n")
                    .toString();
        }
        text.append("None of the first ").append(Findings.count(sample.size(), "line"));
        text.append(options.format.equals("auto") ? " has a known format" : " has the format '" + options.format + "'");
        text.append(". They begin:\n");
        for (int i = 0; i < Math.min(SHOWN, sample.size()); i++) {
            text.append("  ").append(printable(sample.get(i))).append('\n');
        }
        return text.append(likely(sample)).toString();
    }

    private static String likely(List<String> sample) {
        for (Map.Entry<String, LogFormat> other : OTHERS.entrySet()) {
            long matches = sample.stream()
                    .filter(line -> isPlausible(other.getValue().read(line)))
                    .count();
            if (matches > sample.size() / 2) {
                return "Most of them have this one: --format '" + other.getKey() + "'\n";
            }
        }
        return sample.stream().anyMatch(line -> line.stripLeading().startsWith("{"))
                ? "They look like JSON with other names: write --format json --field time=NAME --field uri=NAME …\n"
                : "Say --format with the pattern of your server's configuration, such as '" + LogFormat.COMMON + "'.\n";
    }

    /** Returns whether an entry may be that of a request, and not the texts that happened to be at the format's places. */
    private static boolean isPlausible(@Nullable LogEntry entry) {
        return entry != null
                && !entry.isShifted()
                && METHODS.contains(entry.method)
                && entry.path.startsWith("/")
                && entry.status < 600
                && entry.localSeconds > MIN_SECONDS
                && entry.localSeconds < MAX_SECONDS;
    }

    /** Escapes what a terminal would execute, and cuts long lines. */
    private static String printable(String line) {
        return line.length() > MAX_SHOWN ? Terminal.escape(line.substring(0, MAX_SHOWN)) + "…" : Terminal.escape(line);
    }
}
