package io.ratelimit.redis;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.Shares;
import io.ratelimit.ThrottlePolicy;
import java.io.IOException;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * A separate process in which each tenant has a thread that makes calls, until the input has a line. The first tenant makes as
 * many calls as it can, two others 80% of their guaranteed share, and the rest twice that share. All calls are written to a mapped
 * file, which the operating system keeps if the process is killed.
 */
final class SharesFromRedis {

    static final int TENANTS = 6;
    static final int PROCESSES = 3;
    static final BucketSpec LANE = BucketSpec.of("30/s").withCapacity(10);
    static final ThrottlePolicy POLICY = ThrottlePolicy.of(
                    "api", BucketSpec.of("180/s").withCapacity(200))
            .withShares(Shares.forKeys(LANE, TENANTS, List.of("user")));

    private static final int MAX_CALLS = 300_000;
    private static final int NUMBERS = 4;

    private SharesFromRedis() {}

    /** Returns whether a tenant makes fewer calls than its share allows. */
    static boolean isModest(int tenant) {
        return tenant == 1 || tenant == 2;
    }

    /** How a call ended; a call that failed, or whose process was killed, may have taken tokens. */
    enum End {
        UNKNOWN,
        BORROWED,
        OWN,
        DENIED
    }

    /** A call: its tenant, and the times before and after; the latter is 0 for calls of a process that was killed. */
    record Call(int tenant, long before, long after, End end) {}

    /** The calls of a process in a mapped file. */
    record Calls(LongBuffer numbers, AtomicInteger count) {

        static Calls in(Path file) throws IOException {
            try (FileChannel channel = FileChannel.open(
                    file, StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.CREATE)) {
                return new Calls(
                        channel.map(FileChannel.MapMode.READ_WRITE, 0, (long) NUMBERS * MAX_CALLS * Long.BYTES)
                                .asLongBuffer(),
                        new AtomicInteger());
            }
        }

        /** Makes a call and records it. */
        End call(int tenant, BucketStore store) {
            int at = NUMBERS * count.getAndIncrement();
            numbers.put(at + 1, tenant);
            numbers.put(at, System.nanoTime());
            Answer answer = store.take(List.of(Charge.of(POLICY, "", 1).guaranteedTo("tenant" + tenant)))
                    .answers()
                    .get(0);
            End end = answer.outcome() == Outcome.BACKEND_FAILED
                    ? End.UNKNOWN
                    : !answer.allowed() ? End.DENIED : answer.isGuaranteed() ? End.OWN : End.BORROWED;
            numbers.put(at + 2, end.ordinal());
            numbers.put(at + 3, System.nanoTime());
            return end;
        }

        List<Call> read() {
            List<Call> calls = new ArrayList<>();
            for (int at = 0; numbers.get(at) != 0; at += NUMBERS) {
                End end = numbers.get(at + 3) == 0 ? End.UNKNOWN : End.values()[(int) numbers.get(at + 2)];
                calls.add(new Call((int) numbers.get(at + 1), numbers.get(at), numbers.get(at + 3), end));
            }
            return calls;
        }
    }

    /** @param arguments host, port, prefix of keys, file */
    public static void main(String[] arguments) throws Exception {
        try (RedisConnections connections = TestRedis.connections(arguments)) {
            BucketStore store = TestRedis.denyingStore(connections, arguments[2]);
            Calls calls = Calls.in(Path.of(arguments[3]));
            System.out.println("ready");
            System.in.read();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < TENANTS; i++) {
                int tenant = i;
                Thread thread = new Thread(() -> callUntilInterrupted(tenant, calls, store));
                thread.start();
                threads.add(thread);
            }
            System.in.read();
            threads.forEach(Thread::interrupt);
            for (Thread thread : threads) {
                thread.join();
            }
            System.out.println("done");
        }
    }

    private static void callUntilInterrupted(int tenant, Calls calls, BucketStore store) {
        double perSecond = 1e9 * LANE.rate().tokens() / LANE.rate().period().toNanos() / PROCESSES;
        double nanos = 1e9 / perSecond / (isModest(tenant) ? 0.8 : 2);
        long due = System.nanoTime();
        while (!Thread.currentThread().isInterrupted()) {
            End end = calls.call(tenant, store);
            if (tenant == 0) {
                LockSupport.parkNanos(end == End.DENIED ? 200_000 : end == End.UNKNOWN ? 20_000_000 : 0);
            } else {
                due = Math.max(
                        due + (long) (nanos * ThreadLocalRandom.current().nextDouble(0.5, 1.5)), System.nanoTime());
                LockSupport.parkNanos(due - System.nanoTime());
            }
        }
    }
}
