package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Instances as in production: processes that share nothing but the database. */
@Tag("slow")
class JdbcProcessesTests {

    /** The three processes together request more than twice the capacity. */
    @Test
    void threeProcessesTakeExactlyTheCapacity() throws Exception {
        String url = TestDatabase.url(TestDatabase.postgres());
        String table = TestDatabase.newTable();
        List<Process> processes = new ArrayList<>();
        try {
            for (int i = 0; i < 3; i++) {
                processes.add(start(url, table)); // all want to create the table
            }
            for (Process process : processes) {
                awaitReady(process);
            }
            for (Process process : processes) {
                process.getOutputStream().write('\n');
                process.getOutputStream().flush();
            }
            long taken = 0;
            for (Process process : processes) {
                taken += Long.parseLong(process.inputReader().readLine());
            }
            assertThat(taken).isEqualTo(TakesFromDatabase.CAPACITY);
        } finally {
            processes.forEach(Process::destroyForcibly);
        }
    }

    private static Process start(String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                TakesFromDatabase.class.getName()));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    private static void awaitReady(Process process) throws IOException {
        BufferedReader reader = process.inputReader();
        String line = reader.readLine();
        while (!"ready".equals(line)) { // the first lines may be of a log
            assertThat(line).as("before the end of the process").isNotNull();
            line = reader.readLine();
        }
    }
}
