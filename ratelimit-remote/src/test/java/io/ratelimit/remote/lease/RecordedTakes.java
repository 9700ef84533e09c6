package io.ratelimit.remote.lease;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import java.io.IOException;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * The times before and after each allowed take of a process from one bucket, in a mapped file, which the operating system keeps
 * if the process is killed.
 */
public record RecordedTakes(LongBuffer times) {

    public static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("2000/1s")).withLease(Duration.ofMillis(100));

    /** The most takes that are recorded, after which the process ends. */
    private static final int MAX_TAKES = 100_000;

    /** Maps the file: the number of takes, then two times in nanoseconds for each. */
    public static RecordedTakes in(Path file) throws IOException {
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.CREATE)) {
            return new RecordedTakes(channel.map(FileChannel.MapMode.READ_WRITE, 0, (1 + 2L * MAX_TAKES) * Long.BYTES)
                    .asLongBuffer());
        }
    }

    /** Takes as fast as possible from the time at which the input has a line on, until it has another one. */
    public void take(BucketStore store) throws IOException {
        System.out.println("ready");
        System.in.read();
        for (int taken = 0; taken < MAX_TAKES && System.in.available() == 0; ) {
            long before = System.nanoTime();
            if (store.take(List.of(Charge.of(POLICY, "", 1))).allowed()) {
                times.put(1 + 2 * taken, before);
                times.put(2 + 2 * taken, System.nanoTime());
                times.put(0, ++taken);
            }
        }
    }

    /** Returns the number of takes until now. */
    public long count() {
        return times.get(0);
    }

    /** Returns the number of takes of some processes until now. */
    public static long count(List<RecordedTakes> processes) {
        return processes.stream().mapToLong(RecordedTakes::count).sum();
    }

    /**
     * Returns the most tokens that were taken in any time beyond the refill of that time. A take counts if it began and ended
     * within the time. The clocks of the server and of the processes may differ by 1/1,000.
     */
    public static double excess(List<RecordedTakes> processes) {
        List<long[]> takes = new ArrayList<>();
        for (RecordedTakes process : processes) {
            for (int i = 0; i < process.count(); i++) {
                takes.add(new long[] {process.times.get(1 + 2 * i), process.times.get(2 + 2 * i)});
            }
        }
        takes.sort(Comparator.comparingLong(take -> take[1]));
        double perNano = 2_000 / 1e9 * 1.001;
        double most = 0;
        for (int first = 0; first < takes.size(); first += 7) {
            long start = takes.get(first)[0];
            int taken = 0;
            for (long[] take : takes) {
                taken += take[0] - start >= 0 ? 1 : 0;
                most = Math.max(most, taken - Math.max(take[1] - start, 0) * perNano);
            }
        }
        return most;
    }
}
