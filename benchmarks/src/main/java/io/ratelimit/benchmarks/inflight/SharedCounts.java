package io.ratelimit.benchmarks.inflight;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Counters that several processes share in the memory of the machine: a row for each process. Thread-safe. */
final class SharedCounts {

    static final int MAX_PROCESSES = 64;

    /** What is counted. */
    enum Count {
        RUNNING,
        REQUESTS,
        DENIED,
        DENIED_IN_VAIN,
        MOST_AT_ONCE,
        FAILED
    }

    private static final VarHandle LONGS = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private final ByteBuffer memory;

    SharedCounts(Path file) {
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            this.memory = channel.map(MapMode.READ_WRITE, 0, (long) MAX_PROCESSES * Count.values().length * Long.BYTES);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private static int place(int process, Count count) {
        return (process * Count.values().length + count.ordinal()) * Long.BYTES;
    }

    void add(int process, Count count, long more) {
        LONGS.getAndAdd(memory, place(process, count), more);
    }

    void set(int process, Count count, long value) {
        LONGS.setVolatile(memory, place(process, count), value);
    }

    /** Raises a value that one process alone writes. */
    void raise(int process, Count count, long value) {
        int place = place(process, count);
        if ((long) LONGS.getVolatile(memory, place) < value) {
            LONGS.setVolatile(memory, place, value);
        }
    }

    long sum(Count count) {
        long sum = 0;
        for (int process = 0; process < MAX_PROCESSES; process++) {
            sum += (long) LONGS.getVolatile(memory, place(process, count));
        }
        return sum;
    }

    long most(Count count) {
        long most = 0;
        for (int process = 0; process < MAX_PROCESSES; process++) {
            most = Math.max(most, (long) LONGS.getVolatile(memory, place(process, count)));
        }
        return most;
    }
}
