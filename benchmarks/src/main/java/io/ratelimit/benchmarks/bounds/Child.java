package io.ratelimit.benchmarks.bounds;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** An instance in a process of its own, with a wall clock of its own. Both processes have the machine's {@link System#nanoTime}. */
final class Child implements AutoCloseable {

    private static final String READY = "ready";
    private static final String END = "end";
    private static final int THREADS = 4;

    private final Process process;
    private final BufferedReader out;

    private Child(Process process) {
        this.process = process;
        this.out = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.US_ASCII));
    }

    /** @param clock variables that give the process its clock */
    static Child start(Subject subject, int port, Map<String, String> clock) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(
                        System.getProperty("java.home") + "/bin/java",
                        "-Dcsp.sentinel.log.dir=" + System.getProperty("csp.sentinel.log.dir"),
                        "-cp",
                        System.getProperty("java.class.path"),
                        Child.class.getName(),
                        subject.name(),
                        Integer.toString(port))
                .redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().putAll(clock);
        Child child = new Child(builder.start());
        child.skipTo(READY);
        return child;
    }

    private void skipTo(String expected) throws IOException {
        for (String line = out.readLine(); !expected.equals(line); line = out.readLine()) {
            if (line == null) {
                throw new IOException("the other process ended");
            }
        }
    }

    /** Begins to ask until a moment. */
    void ask(long nanos) {
        new PrintStream(process.getOutputStream(), true, StandardCharsets.US_ASCII).println(nanos);
    }

    /** Waits for the end, and returns what was granted. */
    List<Grants.Grant> grants() throws IOException {
        List<Grants.Grant> grants = new ArrayList<>();
        skipTo(READY);
        for (String line = out.readLine(); !END.equals(line); line = out.readLine()) {
            String[] moments = line.split(" ");
            grants.add(new Grants.Grant(Long.parseLong(moments[0]), Long.parseLong(moments[1])));
        }
        return grants;
    }

    @Override
    public void close() {
        process.destroy();
    }

    /** The other process. */
    public static void main(String[] args) throws Exception {
        PrintStream out = Bounds.outWithoutLog();
        Subject subject = Subject.valueOf(args[0]);
        int port = Integer.parseInt(args[1]);
        Run.warmUp(subject, port);
        Instance instance = subject.start(Limit.of(500, 1), port);
        out.println(READY);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        Grants grants = new Grants();
        new Demand(grants).until(Long.parseLong(in.readLine()), List.of(instance), THREADS);
        out.println(READY);
        grants.all().forEach(grant -> out.println(grant.start() + " " + grant.end()));
        out.println(END);
        System.exit(0);
    }
}
