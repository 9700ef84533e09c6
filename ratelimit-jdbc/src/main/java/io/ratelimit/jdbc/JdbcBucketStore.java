package io.ratelimit.jdbc;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.jdbc.BucketTable.Write;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.Deadline.CongestedException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.LongSupplier;

/**
 * A store of buckets in a table, on the clock of the database. It counts in this process, and writes the rows that it read
 * if they are unchanged. Rows that this process wrote last aren't read, see {@link LastWrites}. A call that another one
 * forestalled tries again until the deadline. All statements of a call end by one deadline. A call throws a {@link
 * BackendException} if the database fails or is late: nothing is decided then, but tokens may have been taken, and it isn't
 * repeated. Thread-safe.
 */
final class JdbcBucketStore implements Deadline.Bounded, LeasingBucketStore {

    /** Stands for the time of the database, where tests pass a time of their own. */
    static final long SERVER_TIME = -1;

    private final ConnectionPool connections;
    private final BucketTable table;
    private final TableIds ids;
    private final LastWrites lastWrites = new LastWrites();
    private final Deadline deadline;
    private final Duration longestOperation;
    private final LongSupplier time;

    /**
     * @param longestOperation the longest time of a look or a reset, which operators make: requests may have longer
     * @param time returns {@link #SERVER_TIME}, or in tests a time in microseconds
     */
    JdbcBucketStore(
            ConnectionPool connections,
            BucketTable table,
            TableIds ids,
            Deadline deadline,
            Duration longestOperation,
            LongSupplier time) {
        this.connections = connections;
        this.table = table;
        this.ids = ids;
        this.deadline = deadline;
        this.longestOperation = longestOperation;
        this.time = time;
    }

    private <T> T call(Function<Rows, T> work) {
        return call(deadline.call(JdbcFailures::of), work);
    }

    private <T> T operate(Function<Rows, T> work) {
        return call(deadline.call(JdbcFailures::of, longestOperation), work);
    }

    /** Does work with the rows of a call. A result that is only guessed, such as a denial, is found again by a read. */
    <T> T call(Deadline.Call call, Function<Rows, T> work) {
        return connections.with(call, (session, sameCall) -> {
            Rows rows = new Rows(session, sameCall);
            T result = work.apply(rows);
            return rows.isGuessed ? work.apply(rows) : result;
        });
    }

    @Override
    public Decision take(List<Charge> charges) {
        return call(rows -> rows.take(charges));
    }

    @Override
    public Decision take(List<Charge> charges, List<LeaseRequest> leases) {
        return call(rows -> rows.take(charges, leases));
    }

    @Override
    public BucketSnapshot lease(LeaseRequest lease) {
        return call(rows -> rows.lease(lease));
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        return call(rows -> rows.reserve(charges));
    }

    @Override
    public void giveBack(List<Answer> taken) {
        call(rows -> {
            rows.giveBack(taken);
            return true;
        });
    }

    @Override
    public boolean settle(Answer taken, long cost) {
        return cost == taken.charge().cost() || call(rows -> rows.settle(taken, cost));
    }

    @Override
    public BucketSnapshot snapshot(Charge charge) {
        return operate(rows -> rows.snapshot(charge));
    }

    @Override
    public void reset(Charge charge) {
        operate(rows -> {
            rows.reset(charge);
            return true;
        });
    }

    /** The rows of buckets, on a connection that one call has. */
    final class Rows extends CompareAndSetBucketStore {

        private final Session session;
        private final Deadline.Call call;
        private final Map<BucketName, byte[]> rowIds = new HashMap<>(2);
        private boolean mayGuess = true;
        private boolean isGuessed;
        private long began;
        private long clock;

        private Rows(Session session, Deadline.Call call) {
            super(Duration.ofNanos(Math.max(call.leftNanos(), 0)));
            this.session = session;
            this.call = call;
        }

        @Override
        protected Reading read(List<BucketName> buckets) {
            began = System.nanoTime();
            List<byte[]> wanted = buckets.stream().map(this::id).toList();
            Reading guess = mayGuess ? lastWrites.guess(wanted, began) : null;
            mayGuess = false;
            isGuessed = guess != null;
            Reading read = guess != null ? guess : read(wanted, began);
            clock = read.epochMicros();
            long testTime = time.getAsLong();
            return testTime == SERVER_TIME ? read : new Reading(testTime, read.values());
        }

        private Reading read(List<byte[]> wanted, long sentAt) {
            try {
                Reading read = table.read(wanted, session, call);
                lastWrites.noteRead(wanted, read, sentAt);
                return read;
            } catch (SQLException failed) {
                throw session.failed(failed, call);
            }
        }

        private byte[] id(BucketName bucket) {
            return rowIds.computeIfAbsent(bucket, ids::of);
        }

        @Override
        protected boolean compareAndSet(List<Change> changes) {
            if (isGuessed && changes.size() < rowIds.size()) {
                return false; // a result may depend on a row that isn't written, and so not compared
            }
            List<Write> writes = changes.stream().map(this::write).toList();
            try {
                boolean written = table.compareAndSet(writes, session, call);
                writes.forEach(write -> lastWrites.noteWrite(write, written));
                if (written) {
                    isGuessed = false;
                } else {
                    call.spentInProcess(began);
                }
                return written;
            } catch (SQLException failed) {
                throw session.failed(failed, call);
            }
        }

        private Write write(Change change) {
            long until = isGuessed ? clock + LastWrites.MAX_LATE_MICROS : Long.MAX_VALUE;
            return new Write(id(change.bucket()), change.before(), change.after(), clock, until, change.timeToLive());
        }

        @Override
        protected BackendException forestalled() {
            return new CongestedException("other calls were always first to write to a bucket in the database", null);
        }
    }
}
