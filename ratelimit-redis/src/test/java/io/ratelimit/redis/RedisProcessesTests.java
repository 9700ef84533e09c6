package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.remote.lease.RecordedTakes;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Instances as in production: processes that share nothing but Redis. */
@Tag("slow")
class RedisProcessesTests {

    static Process start(Class<?> main, String... arguments) throws IOException {
        return start(main, TestRedis.shared().port(), arguments);
    }

    static Process start(Class<?> main, int port, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                System.getProperty("java.class.path"),
                main.getName(),
                TestRedis.shared().host(),
                Integer.toString(port)));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    /** The three processes together request more than twice the capacity. */
    @ParameterizedTest
    @CsvSource({"script, script, script", "transaction, transaction, transaction"})
    void threeProcessesTakeExactlyTheCapacity(String first, String second, String third) throws Exception {
        String prefix = TestRedis.prefix();
        List<Process> processes = new ArrayList<>();
        try {
            for (String strategy : List.of(first, second, third)) {
                processes.add(start(TakesFromRedis.class, strategy, prefix));
            }
            for (Process process : processes) {
                awaitReady(process);
            }
            for (Process process : processes) {
                writeLine(process);
            }
            long taken = 0;
            for (Process process : processes) {
                taken += Long.parseLong(process.inputReader().readLine());
            }
            assertThat(taken).isEqualTo(TakesFromRedis.CAPACITY);
        } finally {
            end(processes);
        }
    }

    static void end(List<Process> processes) throws InterruptedException {
        for (Process process : processes) {
            process.destroyForcibly().waitFor();
        }
    }

    static void writeLine(Process process) throws IOException {
        process.getOutputStream().write('\n');
        process.getOutputStream().flush();
    }

    /** One process is killed, and another one stopped for a while, while they have leases. */
    @Test
    void processesWithLeasesNeverGrantMoreThanOneBucketMay(@TempDir Path directory) throws Exception {
        String prefix = TestRedis.prefix();
        List<Process> processes = new ArrayList<>();
        List<RecordedTakes> takes = new ArrayList<>();
        try {
            for (int i = 0; i < 3; i++) {
                Path file = directory.resolve("takes" + i);
                takes.add(RecordedTakes.in(file));
                processes.add(start(LeasesFromRedis.class, prefix, file.toString()));
            }
            for (Process process : processes) {
                awaitReady(process);
            }
            for (Process process : processes) {
                writeLine(process);
            }
            awaitTakes(takes, 3_000);
            processes.get(0).destroyForcibly();
            awaitTakes(takes, 5_000);
            signal("-STOP", processes.get(1));
            long before = takes.get(2).count();
            Awaitility.await().until(() -> takes.get(2).count() > before + 1_500);
            signal("-CONT", processes.get(1));
            long stopped = takes.get(1).count();
            Awaitility.await().until(() -> takes.get(1).count() > stopped + 500);
            awaitTakes(takes, 12_000);
        } finally {
            end(processes);
        }
        assertThat(RecordedTakes.excess(takes))
                .isLessThanOrEqualTo(RecordedTakes.POLICY.spec().capacity() + 1.0);
    }

    private static void awaitTakes(List<RecordedTakes> takes, long number) {
        Awaitility.await().until(() -> RecordedTakes.count(takes) > number);
    }

    static void signal(String name, Process process) throws Exception {
        new ProcessBuilder("kill", name, Long.toString(process.pid())).start().waitFor();
    }

    static void awaitReady(Process process) throws IOException {
        awaitLine("ready", process);
    }

    static void awaitLine(String expected, Process process) throws IOException {
        BufferedReader reader = process.inputReader();
        String line = reader.readLine();
        while (!expected.equals(line)) { // the first lines may be of a log
            assertThat(line).as("before the end of the process").isNotNull();
            line = reader.readLine();
        }
    }
}
