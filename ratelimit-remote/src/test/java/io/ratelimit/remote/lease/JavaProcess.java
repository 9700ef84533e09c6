package io.ratelimit.remote.lease;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A Java process of a test. It writes the line "ready" when it has started, and begins when it reads a line. */
public record JavaProcess(Process process) {

    /** Starts the main method of a class of the tests. */
    public static JavaProcess start(Class<?> main, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                System.getProperty("java.class.path"),
                main.getName()));
        command.addAll(List.of(arguments));
        return new JavaProcess(new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start());
    }

    /** Waits until all processes have started, and lets them begin. */
    public static void begin(List<JavaProcess> processes) throws IOException {
        for (JavaProcess each : processes) {
            each.awaitReady();
        }
        for (JavaProcess each : processes) {
            each.process.getOutputStream().write('\n');
            each.process.getOutputStream().flush();
        }
    }

    private void awaitReady() throws IOException {
        BufferedReader reader = process.inputReader();
        String line = reader.readLine();
        while (!"ready".equals(line)) { // the first lines may be of a log
            assertThat(line).as("before the end of the process").isNotNull();
            line = reader.readLine();
        }
    }

    /** Returns the number that the process writes next. */
    public long readNumber() throws IOException {
        return Long.parseLong(process.inputReader().readLine());
    }

    /** Sends a signal, such as "-STOP". */
    public void signal(String name) throws IOException, InterruptedException {
        new ProcessBuilder("kill", name, Long.toString(process.pid())).start().waitFor();
    }

    /** Kills the process. */
    public void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /** Kills all processes. */
    public static void kill(List<JavaProcess> processes) throws InterruptedException {
        for (JavaProcess each : processes) {
            each.kill();
        }
    }
}
