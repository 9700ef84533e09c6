package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.CompareAndSetBucketStore.BucketName;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Three processes that share 20 slots. One is killed, and another one stands still for longer than its register lives. */
@Tag("slow")
class InFlightProcessesTests {

    private static final Pattern REGISTER = Pattern.compile("\\w+ \\d+ (\\d+) \\d+ \\d+;");

    /** A call: when it asked for a slot, when it began and when it ended. */
    private record Call(int process, long asked, long began, long ended) {}

    /** A process that stood still, at a time after its last step. */
    private record Stopped(int process, long since) {

        /** Returns whether a call may run beside those of the limit: it asked before its process stood still. */
        boolean owns(Call call) {
            return call.process == process && call.asked - since < 0;
        }
    }

    @Test
    void noMoreCallsRunThanSlots(@TempDir Path directory) throws Exception {
        String prefix = TestRedis.prefix();
        List<Process> processes = new ArrayList<>();
        List<LongBuffer> files = new ArrayList<>();
        try {
            for (int i = 0; i < 3; i++) {
                Path file = directory.resolve("calls" + i);
                files.add(CallsInFlight.map(file));
                processes.add(RedisProcessesTests.start(CallsInFlight.class, prefix, file.toString()));
            }
            for (Process process : processes) {
                RedisProcessesTests.awaitReady(process);
            }
            for (Process process : processes) {
                RedisProcessesTests.writeLine(process);
            }
            awaitCalls(files, 150);
            processes.get(0).destroyForcibly().waitFor();
            long killed = System.nanoTime();
            awaitCalls(files, 400);
            RedisProcessesTests.signal("-STOP", processes.get(1));
            long stopped = System.nanoTime();
            awaitTimePassed(stopped, CallsInFlight.TIME_TO_LIVE.multipliedBy(3).dividedBy(2));
            RedisProcessesTests.signal("-CONT", processes.get(1));
            int before = ended(files.get(1), 0).size();
            Awaitility.await().until(() -> ended(files.get(1), 0).size() > before + 100);

            for (Process process : processes.subList(1, 3)) {
                RedisProcessesTests.writeLine(process);
                assertThat(process.inputReader().readLine()).isEqualTo("done");
            }
            assertNeverMore(files, killed, new Stopped(1, stopped));
            Awaitility.await().untilAsserted(() -> assertThat(slots(prefix)).isZero());
        } finally {
            RedisProcessesTests.end(processes);
        }
    }

    private static void awaitTimePassed(long since, Duration time) {
        Awaitility.await().atMost(Duration.ofSeconds(30)).until(() -> System.nanoTime() - since > time.toNanos());
    }

    private static void awaitCalls(List<LongBuffer> files, int number) {
        int before = files.stream().mapToInt(file -> ended(file, 0).size()).sum();
        Awaitility.await()
                .until(() ->
                        files.stream().mapToInt(file -> ended(file, 0).size()).sum() > before + number);
    }

    /** Returns the calls of a file that have ended. */
    private static List<Call> ended(LongBuffer file, int process) {
        return calls(file, process).stream().filter(call -> call.ended != 0).toList();
    }

    private static List<Call> calls(LongBuffer file, int process) {
        List<Call> calls = new ArrayList<>();
        for (int at = 1; file.get(at + 1) != 0; at += CallsInFlight.NUMBERS) {
            calls.add(new Call(process, file.get(at), file.get(at + 1), file.get(at + 2)));
        }
        return calls;
    }

    /** At each begin of a call, the calls that run are as many as the slots, and those that the stopped process had. */
    private static void assertNeverMore(List<LongBuffer> files, long killed, Stopped stopped) {
        List<Call> calls = new ArrayList<>();
        for (int i = 0; i < files.size(); i++) {
            calls.addAll(calls(files.get(i), i));
        }
        calls.sort(Comparator.comparingLong(Call::began));
        int limit = CallsInFlight.POLICY.spec().inFlight();
        int most = 0;
        for (Call call : calls) {
            int running = 0;
            for (Call other : calls) {
                long end = other.ended == 0 ? killed : other.ended;
                boolean runs = other.began - call.began <= 0 && end - call.began > 0;
                running += runs && !stopped.owns(other) ? 1 : 0;
                if (runs && call.began - stopped.since < 0) {
                    running += stopped.owns(other) ? 1 : 0;
                }
            }
            assertThat(running).isLessThanOrEqualTo(limit);
            most = Math.max(most, running);
        }
        assertThat(most).as("the slots are used").isEqualTo(limit);
    }

    /** Returns the slots of all registers in Redis. */
    private static int slots(String prefix) {
        byte[] key = new RedisKeys(prefix, "").slots(new BucketName(CallsInFlight.POLICY.name(), ""));
        byte[] value = TestRedis.shared().connection().sync().get(key);
        int slots = 0;
        if (value != null) {
            Matcher register = REGISTER.matcher(new String(value, StandardCharsets.US_ASCII));
            while (register.find()) {
                slots += Integer.parseInt(register.group(1));
            }
        }
        return slots;
    }
}
