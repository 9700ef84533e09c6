package io.ratelimit.jdbc;

import io.ratelimit.CompareAndSetBucketStore.Reading;
import io.ratelimit.jdbc.BucketTable.Write;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The values that this process wrote last, from which a call can count without a read of the row. Thread-safe. */
final class LastWrites {
    /*
     * How a call can count at a time that it didn't read. A read returns a time of the server's clock within the call, and
     * the write proves that the value was still the same. A guess needs as much. The value is the one that this process
     * wrote last, and the write compares it as always. The time is that of an earlier read, plus the time since the read was
     * sent. The reply was made somewhat after that, so the guess is somewhat late: never before the server's clock at the
     * beginning of the call. It is not after the write either, since the server compares it with its clock, and doesn't
     * write if its clock is behind. The read that took the shortest way guesses best. Another one replaces it when the two
     * clocks may have drifted apart by the difference.
     *
     * A guess is early if the server's clock gains more, jumps, or if this process was suspended and its clock didn't count
     * that. Hence the server doesn't write either if its clock is long past the guess.
     *
     * A wrong guess costs a statement, so that a row is guessed only after several writes that no other process came between.
     */

    private static final int RUN = 4;

    /** With some 160 bytes for each, at most 16 MB. */
    private static final int MAX_ROWS = 100_000;

    private static final long MAX_AGE = Duration.ofSeconds(1).toNanos();

    /**
     * The server's clock is taken to gain less than 1 / 2,048 on the one of this process. Both may be slewed: by ntpd by up to
     * 1 / 2,000, by chrony by up to 1 / 12. Then a guess is early, by {@link #MAX_LATE_MICROS} at most.
     */
    private static final int DRIFT = 2_048;

    /**
     * The server's clock may be past a guess by this time. It is more than chrony corrects in {@link #MAX_AGE}, and a guess
     * allows for the way to the server: a write that takes this much longer is rare, and its call reads then.
     */
    static final long MAX_LATE_MICROS = 100_000;

    /** In place of a run of {@link #RUN}, after a write that failed. */
    private static final int IN_DOUBT = -1;

    private final Map<Id, Known> rows = new ConcurrentHashMap<>();
    private volatile @Nullable Clock clock;

    /** The id of a row, in fewer bytes than an array takes. */
    private record Id(long high, long low) {

        static Id of(byte[] id) {
            ByteBuffer bytes = ByteBuffer.wrap(id);
            return new Id(bytes.getLong(), bytes.getLong());
        }
    }

    /** @param run the number of writes in sequence, up to {@link #RUN}; or {@link #IN_DOUBT} */
    private record Known(byte[] value, int run) {}

    /**
     * @param sentAt a moment of this process
     * @param ahead the nanoseconds to add to this moment to be at or after the server's clock
     */
    private record Clock(long sentAt, long ahead) {

        boolean isOld(long nanos) {
            return nanos - sentAt > MAX_AGE;
        }

        long ahead(long nanos) {
            return ahead + (nanos - sentAt) / DRIFT;
        }
    }

    /**
     * Returns the values of rows, and a time from the present on, as if they had been read; null if a guess is probably wrong.
     *
     * @param nanos the beginning of the call
     */
    @Nullable
    Reading guess(List<byte[]> ids, long nanos) {
        Clock latest = clock;
        if (latest == null || latest.isOld(nanos)) {
            return null;
        }
        List<byte[]> values = new ArrayList<>(ids.size());
        for (byte[] id : ids) {
            Known known = rows.get(Id.of(id));
            if (known == null || known.run < RUN) {
                return null;
            }
            values.add(known.value);
        }
        return new Reading((nanos + latest.ahead(nanos)) / 1_000 + 2, values); // both clocks were cut to microseconds
    }

    /** Notes the values of a read that was sent at a moment. */
    void noteRead(List<byte[]> ids, Reading read, long sentAt) {
        long ahead = 1_000 * read.epochMicros() - sentAt;
        Clock latest = clock;
        if (latest == null || latest.isOld(sentAt) || ahead < latest.ahead(sentAt)) {
            clock = new Clock(sentAt, ahead);
        }
        for (int i = 0; i < ids.size(); i++) {
            byte[] value = read.values().get(i);
            rows.computeIfPresent(Id.of(ids.get(i)), (id, known) -> {
                Known confirmed = known.run == IN_DOUBT ? new Known(known.value, RUN) : known;
                return Arrays.equals(known.value, value) ? confirmed : null;
            });
        }
    }

    /** Notes a write, or that it failed: another process was first, or the time was guessed wrong, which a read shows. */
    void noteWrite(Write write, boolean written) {
        Id row = Id.of(write.id());
        byte[] value = write.after();
        if (!written) {
            rows.computeIfPresent(
                    row,
                    (id, known) -> known.run == RUN && Arrays.equals(known.value, write.before())
                            ? new Known(known.value, IN_DOUBT)
                            : null);
            return;
        }
        if (value == null) {
            rows.remove(row);
            return;
        }
        if (rows.size() >= MAX_ROWS) {
            rows.clear();
        }
        rows.compute(
                row,
                (id, known) -> new Known(
                        value,
                        known != null && Arrays.equals(known.value, write.before())
                                ? Math.min(known.run + 1, RUN)
                                : 0));
    }
}
