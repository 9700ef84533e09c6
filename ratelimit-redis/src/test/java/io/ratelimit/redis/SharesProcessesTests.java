package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.ratelimit.redis.SharesFromRedis.Call;
import io.ratelimit.redis.SharesFromRedis.Calls;
import io.ratelimit.redis.SharesFromRedis.End;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import redis.embedded.RedisServer;

/**
 * Guaranteed shares of three processes on one Redis. A process is killed and started again, another one stands still for a while,
 * and so does Redis, which is killed and started again too.
 */
@Tag("slow")
class SharesProcessesTests {

    /** The longest time for which a request of a process that was killed may be on its way. */
    private static final long ON_ITS_WAY = TimeUnit.SECONDS.toNanos(1);

    /** The clocks of the server and of the processes may differ by so much. */
    private static final double CLOCKS = 1.001;

    @TempDir
    private Path directory;

    private final int port = TestRedis.freePort();
    private final String prefix = TestRedis.prefix();
    private final List<Process> processes = new ArrayList<>();
    private final List<Calls> files = new ArrayList<>();

    /**
     * @param kept whether Redis writes to its file all that it has answered
     * @param buckets how many full buckets there were
     */
    @ParameterizedTest
    @CsvSource({"yes, 1", "no, 2"})
    void noGuaranteeIsBrokenThatRedisDidntLose(String kept, int buckets) throws Exception {
        String[] settings = {"appendonly " + kept, "appendfsync always", "dir " + directory};
        RedisServer redis = TestRedis.serverAt(port, settings);
        try {
            for (int i = 0; i < SharesFromRedis.PROCESSES; i++) {
                start();
            }
            awaitOwn(100);
            processes.get(0).destroyForcibly().waitFor();
            long killed = System.nanoTime();
            awaitOwn(60);
            start();
            awaitOwn(60);
            RedisProcessesTests.signal("-STOP", processes.get(1));
            awaitOwn(100);
            RedisProcessesTests.signal("-CONT", processes.get(1));
            awaitOwn(60);
            long pid = pid();
            signal("-STOP", pid);
            awaitFailures();
            signal("-CONT", pid);
            awaitOwn(100);
            signal("-KILL", pid);
            redis.stop();
            long lost = System.nanoTime();
            awaitFailures();
            redis = TestRedis.serverAt(port, settings);
            awaitOwn(300);
            for (Process process : processes.subList(1, processes.size())) {
                RedisProcessesTests.writeLine(process);
                RedisProcessesTests.awaitLine("done", process);
            }
            List<Call> calls = calls(killed);
            assertNoGuaranteeIsBroken(calls);
            assertThat(excess(calls)).isLessThanOrEqualTo(buckets * capacity() + 1.0);
            assertThat(excess(before(calls, lost))).isBetween(capacity() / 2.0, capacity() + 1.0);
            assertThat(excess(after(calls, lost))).isLessThanOrEqualTo(capacity() + 1.0);
        } finally {
            RedisProcessesTests.end(processes);
            redis.stop();
        }
    }

    private static long capacity() {
        return SharesFromRedis.POLICY.spec().capacity();
    }

    private void start() throws Exception {
        Path file = directory.resolve("calls" + files.size());
        files.add(Calls.in(file));
        Process process = RedisProcessesTests.start(SharesFromRedis.class, port, prefix, file.toString());
        processes.add(process);
        RedisProcessesTests.awaitReady(process);
        RedisProcessesTests.writeLine(process);
    }

    private long count(End end) {
        return files.stream()
                .flatMap(file -> file.read().stream())
                .filter(call -> call.end() == end)
                .count();
    }

    /** Waits until shares have served so many calls more. */
    private void awaitOwn(int calls) {
        long before = count(End.OWN);
        Awaitility.await().until(() -> count(End.OWN) > before + calls);
    }

    private void awaitFailures() {
        long before = count(End.UNKNOWN);
        Awaitility.await().until(() -> count(End.UNKNOWN) > before + 30);
    }

    private long pid() {
        RedisClient client = RedisClient.create(RedisURI.create("127.0.0.1", port));
        try {
            String info = client.connect().sync().info("server");
            return Long.parseLong(info.replaceAll("(?s).*process_id:(\\d+).*", "$1"));
        } finally {
            client.shutdown();
        }
    }

    private static void signal(String name, long pid) throws Exception {
        new ProcessBuilder("kill", name, Long.toString(pid)).start().waitFor();
    }

    /** Returns all calls, by their ends. A call of the killed process ended before its requests got lost. */
    private List<Call> calls(long killed) {
        return files.stream()
                .flatMap(file -> file.read().stream())
                .map(call -> call.after() != 0
                        ? call
                        : new Call(call.tenant(), call.before(), killed + ON_ITS_WAY, End.UNKNOWN))
                .sorted(Comparator.comparingLong(Call::after))
                .toList();
    }

    private static List<Call> before(List<Call> calls, long time) {
        return calls.stream().filter(call -> call.before() - time < 0).toList();
    }

    private static List<Call> after(List<Call> calls, long time) {
        return calls.stream().filter(call -> call.before() - time > 0).toList();
    }

    /**
     * Returns the most tokens that were taken in any time beyond the refill of that time. A take counts if it began and ended
     * within the time.
     */
    private static double excess(List<Call> calls) {
        List<Call> takes = calls.stream()
                .filter(call -> call.end() == End.BORROWED || call.end() == End.OWN)
                .toList();
        double perNano = perNano(SharesFromRedis.POLICY.spec().rate().tokens()) * CLOCKS;
        double most = 0;
        for (int first = 0; first < takes.size(); first += 7) {
            long start = takes.get(first).before();
            int taken = 0;
            for (Call take : takes) {
                taken += take.before() - start >= 0 ? 1 : 0;
                most = Math.max(most, taken - Math.max(take.after() - start, 0) * perNano);
            }
        }
        return most;
    }

    private static double perNano(long tokensPerSecond) {
        return tokensPerSecond / 1e9;
    }

    /** A call is denied only if its share may have had too few tokens. */
    private static void assertNoGuaranteeIsBroken(List<Call> calls) {
        for (int i = 0; i < SharesFromRedis.TENANTS; i++) {
            int tenant = i;
            List<Call> own =
                    calls.stream().filter(call -> call.tenant() == tenant).toList();
            TakesOfShare takes = new TakesOfShare(own);
            List<Call> denials =
                    own.stream().filter(call -> call.end() == End.DENIED).toList();
            long capacity = SharesFromRedis.LANE.capacity();
            for (Call denial : denials) {
                assertThat(takes.mostMissing(denial))
                        .as("tenant %d: %s", tenant, denial)
                        .isGreaterThan(capacity - 1.0);
            }
            assertThat(own).as("tenant %d", tenant).anyMatch(call -> call.end() == End.OWN);
            if (!SharesFromRedis.isModest(tenant)) {
                assertThat(denials).as("tenant %d", tenant).hasSizeGreaterThan(10);
            }
        }
    }

    /** The takes of one share, by their ends. One that isn't known counts if it makes the share emptier. */
    private static final class TakesOfShare {

        private static final double PER_NANO =
                perNano(SharesFromRedis.LANE.rate().tokens()) / CLOCKS;

        private final List<Call> takes;
        private final long[] befores;
        private final long[] afters;

        TakesOfShare(List<Call> calls) {
            takes = calls.stream()
                    .filter(call -> call.end() == End.OWN || call.end() == End.UNKNOWN)
                    .toList();
            befores = takes.stream().mapToLong(Call::before).sorted().toArray();
            afters = takes.stream().mapToLong(Call::after).toArray();
        }

        /** Returns the most tokens that the share may have lacked at the moment of a denial. */
        double mostMissing(Call denial) {
            double most = sinceFull(denial, Long.MIN_VALUE);
            Call last = null;
            for (Call take : takes) {
                last = take.end() == End.OWN && take.after() <= denial.before() ? take : last;
            }
            if (last != null) { // then the share lacked no more than its capacity
                double since = SharesFromRedis.LANE.capacity() - 1 + missing(last, denial);
                most = Math.min(most, Math.max(since, sinceFull(denial, last.before())));
            }
            return most;
        }

        /** Returns the most that takes after a time may have left missing, if the share was full before one of them. */
        private double sinceFull(Call denial, long time) {
            double most = 0;
            for (Call first : takes) {
                if (first.after() >= time && first.before() <= denial.after()) {
                    most = Math.max(most, missing(first, denial));
                }
            }
            return most;
        }

        /** Returns the tokens taken from a take to a denial, less those that came back. */
        private double missing(Call first, Call denial) {
            long taken = lessThan(befores, denial.after() + 1) - lessThan(afters, first.before());
            return taken - Math.max(denial.before() - first.after(), 0) * PER_NANO;
        }

        private static long lessThan(long[] sorted, long time) {
            int found = Arrays.binarySearch(sorted, time);
            int at = found < 0 ? -found - 1 : found;
            while (at > 0 && sorted[at - 1] == time) {
                at--;
            }
            return at;
        }
    }
}
