package io.ratelimit.redis;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.SharedSlots;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.inflight.RegisterStore;
import io.ratelimit.remote.inflight.RegisterStore.CarriedClaim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import io.ratelimit.remote.inflight.Registers;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A separate process whose threads make calls of one key, until its input has a line. It writes for each call when it asked for a
 * slot, when it began and when it ended to a mapped file, which the operating system keeps if the process is killed.
 */
final class CallsInFlight {

    static final Duration TIME_TO_LIVE = Duration.ofSeconds(4);
    static final ThrottlePolicy POLICY = ThrottlePolicy.of("pool", BucketSpec.inFlight(20));

    /** So few tokens that the script often leaves the claim of a call out. */
    private static final ThrottlePolicy RATE = ThrottlePolicy.of("rate", BucketSpec.of("50/1s"));

    /** The most calls that are recorded. */
    static final int MAX_CALLS = 100_000;

    static final int NUMBERS = 3;

    private static final int THREADS = 14;

    private CallsInFlight() {}

    /** Maps the file: the number of calls, then three times in nanoseconds for each; the last is 0 while the call runs. */
    static LongBuffer map(Path file) throws Exception {
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.CREATE)) {
            return channel.map(FileChannel.MapMode.READ_WRITE, 0, (1 + (long) NUMBERS * MAX_CALLS) * Long.BYTES)
                    .asLongBuffer();
        }
    }

    /** @param arguments host, port, prefix of keys, file */
    public static void main(String[] arguments) throws Exception {
        TimeSource time = new SystemTimeSource();
        Deadline deadline = new Deadline(time, Duration.ofSeconds(1));
        try (RedisConnections connections = TestRedis.connections(arguments)) {
            RegisterStore store =
                    (RegisterStore) RedisBucketStore.script(connections, new RedisKeys(arguments[2], ""), deadline);
            Registers registers = new Registers(time, store, new Denying(), TIME_TO_LIVE);
            System.out.println("ready");
            System.in.read();
            run(registers, map(Path.of(arguments[3])));
            while (registers.of(POLICY).held() > 0) {
                Thread.onSpinWait();
            }
            System.out.println("done");
            System.in.read();
            System.in.read();
        }
    }

    private static void run(Registers registers, LongBuffer calls) throws Exception {
        AtomicInteger number = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            Thread thread = new Thread(() -> callUntilInterrupted(registers, calls, number));
            thread.start();
            threads.add(thread);
        }
        System.in.read();
        threads.forEach(Thread::interrupt);
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void callUntilInterrupted(Registers registers, LongBuffer calls, AtomicInteger number) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        while (!Thread.currentThread().isInterrupted()) {
            long asked = System.nanoTime();
            SharedSlots.Slot slot = random.nextBoolean()
                    ? registers.of(POLICY).take(Charge.of(POLICY, "", 1))
                    : takeWithToken(registers);
            if (slot != null && slot.outcome() == Outcome.ALLOWED) {
                int at = 1 + NUMBERS * number.getAndIncrement();
                calls.put(at, asked);
                calls.put(at + 1, System.nanoTime());
                long millis = random.nextInt(20) > 0 ? random.nextLong(10, 100) : random.nextLong(100, 1_000);
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis));
                calls.put(at + 2, System.nanoTime());
                slot.release();
            } else {
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextLong(1, 10)));
            }
        }
    }

    /** Takes a slot and a token by one call, unless a slot is free here or a claim is under way. */
    private static SharedSlots.@Nullable Slot takeWithToken(Registers registers) {
        SharedSlots.Request request = registers.of(POLICY).request(Charge.of(POLICY, "", 1));
        if (registers.start(List.of(request), true)) {
            List<CarriedClaim> claims = registers.carry(List.of(request));
            if (!claims.isEmpty()) {
                try {
                    registers.take(List.of(Charge.of(RATE, "", 1)), claims);
                } catch (BackendException failed) {
                    // the rule has decided
                }
            }
        }
        return request.slot();
    }

    /** The rules of a policy that denies all calls while Redis is unavailable. */
    private static final class Denying implements Registers.Access {

        @Override
        public CompletableFuture<Reply> start(Supplier<CompletableFuture<Reply>> call) {
            try {
                return call.get();
            } catch (RuntimeException failed) {
                return CompletableFuture.failedFuture(failed);
            }
        }

        @Override
        public long timeoutNanos() {
            return TimeUnit.SECONDS.toNanos(1);
        }

        @Override
        public void await(Future<?> decision) {
            try {
                decision.get(1, TimeUnit.SECONDS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            } catch (Exception late) {
                // the call is denied
            }
        }

        @Override
        public int fallback(ThrottlePolicy policy, int limit, boolean congested) {
            return 0;
        }
    }
}
