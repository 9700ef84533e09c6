package io.ratelimit.benchmarks.bounds;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Runs limiters in situations, and prints a line for each: limiter, situation, tokens beyond the limit, percent of what an exact
 * bucket grants, and why it wasn't run, separated by tabs.
 */
final class Bounds {

    private Bounds() {}

    /** Runs the limiter and the situation that are named, or all. Each limiter has a process of its own. */
    public static void main(String[] args) throws Exception {
        if (args.length == 0) {
            for (Subject subject : Subject.values()) {
                runInProcess(subject);
            }
            return;
        }
        Subject subject = named(args[0], Subject.values(), Subject::id);
        List<Situation> situations = args.length > 1
                ? List.of(named(args[1], Situation.values(), Situation::id))
                : List.of(Situation.values());
        PrintStream out = outWithoutLog();
        for (Situation situation : situations) {
            out.println(Run.of(subject, situation).toLine());
        }
        System.exit(0); // some limiters have threads that don't end
    }

    private static void runInProcess(Subject subject) throws IOException {
        int status = new ProcessBuilder(
                        System.getProperty("java.home") + "/bin/java",
                        "-Dcsp.sentinel.log.dir=" + System.getProperty("csp.sentinel.log.dir"),
                        "-cp",
                        System.getProperty("java.class.path"),
                        Bounds.class.getName(),
                        subject.id())
                .inheritIO()
                .start()
                .onExit()
                .join()
                .exitValue();
        if (status != 0) {
            throw new IOException(subject.id() + " ended with status " + status);
        }
    }

    /** Returns the standard output, and leads what limiters log to the standard error. */
    static PrintStream outWithoutLog() {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        return out;
    }

    private static <T> T named(String id, T[] values, Function<T, String> ids) {
        return Arrays.stream(values)
                .filter(value -> ids.apply(value).equals(id))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("There is no '" + id + "': say "
                        + Arrays.stream(values).map(ids).collect(Collectors.joining(", "))));
    }
}
