package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Instances as in production: processes that share nothing but Redis. */
class RedisProcessesTests {

    private static Process start(String strategy, String prefix) throws IOException {
        return new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("java.class.path"),
                        TakesFromRedis.class.getName(),
                        TestRedis.shared().host(),
                        Integer.toString(TestRedis.shared().port()),
                        strategy,
                        prefix)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    /** The three processes together request more than twice the capacity. */
    @ParameterizedTest
    @CsvSource({"script, script, script", "transaction, transaction, transaction", "script, transaction, script"})
    void threeProcessesTakeExactlyTheCapacity(String first, String second, String third) throws Exception {
        String prefix = TestRedis.prefix();
        List<Process> processes = new ArrayList<>();
        for (String strategy : List.of(first, second, third)) {
            processes.add(start(strategy, prefix));
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
        assertThat(taken).isEqualTo(TakesFromRedis.CAPACITY);
    }

    private static void awaitReady(Process process) throws IOException {
        BufferedReader reader = process.inputReader();
        String line = reader.readLine();
        while (!line.equals("ready")) { // the first lines may be of a log
            line = reader.readLine();
        }
    }
}
