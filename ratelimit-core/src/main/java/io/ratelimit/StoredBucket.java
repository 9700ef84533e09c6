package io.ratelimit;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Decision.Answer;
import io.ratelimit.LeasingBucketStore.Grant;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.Take.Receipt;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;

/** A {@link BucketState} as a value that a store of another process keeps, at one moment. For one thread. */
final class StoredBucket {
    /*
     * How a value stays right on a clock that isn't this machine's. Ticks are counted from 1970, so that they mean the
     * same in every process; they wrap around, as ticks may. The value has the moment of its last write. If the store's
     * clock is behind that moment, it was set back: the bucket's time then stands still until the clock reaches it
     * again. If the clock is more than a minute behind, it had run ahead and was corrected. All moments of the bucket
     * are then moved back by whole clock steps, so that its time stands still for at most one more step.
     *
     * Tokens come back only to the count that they were taken from. A count has a random name, and ends with the value
     * or at a change of the spec.
     */

    private static final byte VERSION = (byte) 0xB2;
    private static final int HAS_ORIGIN = 1;
    private static final int HAS_LEASES = 2;
    private static final long MINUTE_MICROS = 60_000_000;
    private static final long MAX_MICROS = Long.MAX_VALUE / 2_000;
    private static final Duration SLACK = Duration.ofSeconds(1);

    private final byte @Nullable [] value;
    private final long clockMicros;
    private long atMicros;
    private long keptUntilMicros;
    private long count;
    private long movedBack;
    private BucketState state;

    /** The leases that are out; null for none. */
    private @Nullable StoredLeases leases;

    private final long fullAtBefore;
    private final long countBefore;

    /** The note about a take: the name of its count, and the numbers of a {@link Receipt}. */
    private record StoredReceipt(long count, long due, long before) {}

    /**
     * @param value null for a full bucket
     * @param spec the spec of a bucket without a value
     * @param clockMicros the store's clock, in microseconds since 1970-01-01T00:00Z
     * @throws BackendException if the value is no bucket
     */
    StoredBucket(byte @Nullable [] value, BucketSpec spec, long clockMicros) {
        this.value = value;
        this.clockMicros = clockMicros;
        this.atMicros = clockMicros;
        try {
            this.state = value == null ? full(spec) : read(new DataInputStream(new ByteArrayInputStream(value)));
        } catch (IOException | RuntimeException invalid) {
            throw new BackendException("the value of a key of ratelimit is no bucket", invalid, true);
        }
        this.fullAtBefore = state.fullAt();
        this.countBefore = count;
        correct();
        this.atMicros = Math.max(atMicros, clockMicros);
    }

    private BucketState full(BucketSpec spec) {
        count = ThreadLocalRandom.current().nextLong();
        return new BucketState(TickScale.ofEpoch(spec), nanos());
    }

    private BucketState read(DataInputStream in) throws IOException {
        byte version = in.readByte();
        byte parts = in.readByte();
        atMicros = in.readLong();
        count = in.readLong();
        BucketState own = readState(in);
        Backlog backlog = own.backlog();
        if ((parts & HAS_ORIGIN) != 0) {
            BucketState before = readState(in);
            backlog =
                    backlog.with(new BucketConversion(before.scale(), before.fullAt(), before.backlog(), own.fullAt()));
        }
        BucketState read = new BucketState(own.scale(), own.fullAt(), readNumber(in), backlog);
        keptUntilMicros = readNumber(in);
        if ((parts & HAS_LEASES) != 0) {
            leases = new StoredLeases(own.fullAt() - readNumber(in), readNumber(in));
        }
        if (version != VERSION
                || parts < 0
                || parts > HAS_ORIGIN + HAS_LEASES
                || in.available() > 0
                || atMicros < 0
                || atMicros > MAX_MICROS) {
            throw new IOException("the value has another form");
        }
        return read;
    }

    private static BucketState readState(DataInputStream in) throws IOException {
        Refill refill = Refill.values()[in.readByte()];
        Rate rate = new Rate(readNumber(in), Duration.of(readNumber(in), ChronoUnit.MICROS));
        ZoneId zone = refill == Refill.CALENDAR ? ZoneId.of(in.readUTF()) : ZoneOffset.UTC;
        TickScale scale = TickScale.ofEpoch(new BucketSpec(rate, readNumber(in), refill, zone));
        scale = scale.withAdvance(readNumber(in), readNumber(in));
        long fullAt = in.readLong();
        boolean promises = in.readBoolean();
        Backlog backlog = promises ? new Backlog(in.readLong(), null, null, 0, 0, in.readLong(), null) : Backlog.NONE;
        return new BucketState(scale, fullAt, 0, backlog);
    }

    /** Returns the value to write; null for a full bucket. */
    byte @Nullable [] written() {
        if (nanosToKeep() == 0) {
            return null;
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(64);
        try {
            write(new DataOutputStream(bytes));
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return bytes.toByteArray();
    }

    private void write(DataOutputStream out) throws IOException {
        BucketConversion origin = state.backlog().origin();
        origin = origin != null && origin.convertedTo() == state.fullAt() ? origin : null;
        boolean leased = leasedTicks() > 0;
        out.writeByte(VERSION);
        out.writeByte((origin != null ? HAS_ORIGIN : 0) + (leased ? HAS_LEASES : 0));
        out.writeLong(atMicros);
        out.writeLong(count);
        write(out, state.scale(), state.fullAt(), state.backlog(), origin != null);
        if (origin != null) {
            write(out, origin.scale(), origin.fullAt(), origin.backlog(), false);
        }
        writeNumber(out, state.returned());
        writeNumber(out, keptUntilMicros > atMicros ? keptUntilMicros : 0);
        if (leases != null && leased) {
            writeNumber(out, state.fullAt() - leases.fullAt());
            writeNumber(out, leases.endMicros());
        }
    }

    private void write(DataOutputStream out, TickScale scale, long fullAt, Backlog backlog, boolean hasOrigin)
            throws IOException {
        BucketSpec spec = scale.spec();
        long advance = scale.advanceAtNanos(nanos());
        long now = scale.at(nanos());
        boolean owes = backlog.owedTo() != BucketState.CLOSED && backlog.owedTo() - now > 0;
        boolean promises = backlog != Backlog.NONE && (hasOrigin || owes || backlog.promised() - now > 0);
        out.writeByte(spec.refill().ordinal());
        writeNumber(out, spec.rate().tokens());
        writeNumber(out, spec.rate().period().toNanos() / 1_000);
        if (spec.refill() == Refill.CALENDAR) {
            out.writeUTF(spec.zone().getId());
        }
        writeNumber(out, spec.capacity());
        writeNumber(out, advance);
        writeNumber(out, advance > 0 ? scale.advanceEnd() : 0);
        out.writeLong(fullAt);
        out.writeBoolean(promises);
        if (promises) {
            out.writeLong(backlog.promised());
            out.writeLong(owes ? backlog.owedTo() : BucketState.CLOSED);
        }
    }

    private static long readNumber(DataInputStream in) throws IOException {
        long number = 0;
        for (int shift = 0; shift < Long.SIZE; shift += 7) {
            byte next = in.readByte();
            number |= (long) (next & 0x7f) << shift;
            if (next >= 0) {
                return number;
            }
        }
        throw new IOException("a number is too long");
    }

    /** Writes a number in as many bytes as it needs, seven bits each. */
    private static void writeNumber(DataOutputStream out, long number) throws IOException {
        long rest = number;
        for (; (rest & ~0x7f) != 0; rest >>>= 7) {
            out.writeByte((int) rest | 0x80);
        }
        out.writeByte((int) rest);
    }

    /** Moves the bucket back if the clock was ahead when the value was written, and has been corrected since. */
    private void correct() {
        TickScale scale = state.scale();
        long step = scale.stepMicros();
        long at = scale.clock(1_000 * atMicros);
        long now = scale.clock(1_000 * clockMicros);
        long ahead = (at - now) / 1_000;
        if (ahead <= MINUTE_MICROS + step) {
            return;
        }
        long soon = now + 1_000 * (1 + (ahead - 1) % step);
        long moment = soon / 1_000;
        if (scale.spec().refill() == Refill.CALENDAR) {
            moment = CalendarClock.of(scale.spec()).momentOf(soon / 1_000);
        }
        movedBack = scale.base().at(1_000 * atMicros) - scale.base().at(1_000 * moment);
        TickScale moved = scale.withAdvance(scale.advanceAtNanos(1_000 * atMicros), scale.advanceEnd() - (at - soon));
        state = new BucketState(
                moved,
                state.fullAt() - movedBack,
                state.returned(),
                state.backlog().movedBack(movedBack));
        leases = leases == null ? null : leases.movedBack(movedBack, atMicros, moment);
        atMicros = moment;
    }

    private long nanos() {
        return 1_000 * atMicros;
    }

    BucketState state() {
        return state;
    }

    long missing() {
        return state.missing(nanos());
    }

    /** Returns the time for which the bucket's value is needed: until it is full for any call. */
    private long nanosToKeep() {
        TickScale scale = state.scale();
        long now = scale.at(nanos());
        long promised = state.backlog() == Backlog.NONE ? 0 : state.backlog().promised() - now;
        // the next batch is smaller after an advance, also if the bucket is full
        long advanced = scale.advanceAtNanos(nanos()) > 0 ? 1 : 0;
        long needed = scale.nanosUntil(Math.max(Math.max(state.fullAt() - now, promised), advanced), nanos());
        return Math.max(needed, 1_000 * Math.max(keptUntilMicros - atMicros, 0));
    }

    /** Returns how long a store keeps the {@linkplain #written written} value; a little longer does no harm. */
    Duration timeToLive() {
        return SLACK.plusNanos(nanosToKeep() + 1_000 * (atMicros - clockMicros));
    }

    byte @Nullable [] value() {
        return value;
    }

    /** Returns whether this bucket isn't the one that was read: another moment or spec, or corrected by the clock. */
    boolean isChanged() {
        return state.fullAt() != fullAtBefore || count != countBefore;
    }

    /** Gives the bucket a spec. Its tokens are kept, cut to the capacity. */
    StoredBucket under(BucketSpec spec) {
        if (!state.scale().spec().equals(spec)) {
            BucketConversion origin = state.backlog().origin();
            TickScale other = origin != null && origin.scale().spec().equals(spec)
                    ? origin.scale().base()
                    : TickScale.ofEpoch(spec);
            keptUntilMicros = Math.max(keptUntilMicros, atMicros + (nanosToKeep() + 999) / 1_000);
            BucketState before = leases == null ? state : leases.promisedIn(state, nanos());
            state = BucketConversion.convert(before, other, nanos(), this::nanos);
            leases = null;
            count = ThreadLocalRandom.current().nextLong();
        }
        return this;
    }

    private long leasedTicks() {
        return leases == null ? 0 : leases.missing(state.scale().at(nanos()));
    }

    /**
     * Takes as many tokens as are requested ahead of their use, or fewer: at most half of those that are left, so that the
     * last ones can be taken one by one. A lease is no promise to a call that waits. While one waits, nothing is leased.
     *
     * @param cost the tokens that the present call uses of them
     * @return null if nothing was taken, because no more than the cost can be leased
     */
    @Nullable
    Grant lease(LeaseRequest request, long cost) {
        TickScale scale = state.scale();
        long micros = (request.charge().policy().lease().toNanos() + 999) / 1_000;
        long now = scale.at(nanos());
        long promised = state.backlog().lastPromise(state.fullAt(), scale.full());
        if (scale.advanceAtNanos(nanos()) > 0 || promised - now > 0) {
            return null;
        }
        long held = scale.at(nanos() + 1_000 * micros) - now;
        long missing = Math.max(missing(), held);
        long tokens = Math.min(request.maxTokens(), (scale.full() - missing) / 2 / scale.price(1));
        if (tokens <= cost) {
            return null;
        }
        long ticks = scale.price(tokens);
        StoredLeases earlier = leases == null ? new StoredLeases(now, 0) : leases;
        leases = earlier.with(now, held, ticks, atMicros + micros);
        state = new BucketState(
                scale, now + missing + ticks, state.returned(), state.backlog().withoutOrigin());
        long before = missing + ticks + state.returned() - leasedTicks();
        long name = count;
        return new Grant(
                tokens,
                BucketSnapshot.of(scale, missing + ticks, nanosToCountFrom()),
                clockMicros,
                part -> new StoredReceipt(name, now, before - scale.price(part)));
    }

    /** Returns the answer to a charge whose tokens were taken with a lease. The others of the lease are still available. */
    Answer takeLeased(Charge charge, Grant grant) {
        TickScale scale = state.scale();
        long notUsed = scale.price(grant.tokens()) - scale.price(charge.cost());
        return taken(charge, missing() - notUsed, 0, state.returned() - leasedTicks());
    }

    Answer take(Charge charge, long maxWaitNanos) {
        long returned = state.returned() - leasedTicks();
        return taken(charge, state.take(charge.cost(), nanos(), maxWaitNanos), maxWaitNanos, returned);
    }

    private Answer taken(Charge charge, long taken, long maxWaitNanos, long returned) {
        Receipt receipt = taken < 0 ? null : Receipt.of(state, charge.cost(), taken, nanos(), returned);
        StoredReceipt note = receipt == null ? null : new StoredReceipt(count, receipt.due(), receipt.before());
        return answer(charge, taken, maxWaitNanos, note);
    }

    Answer peek(Charge charge, long maxWaitNanos) {
        long result = state.peek(charge.cost(), nanos(), maxWaitNanos);
        return answer(charge, result, maxWaitNanos, null);
    }

    private Answer answer(Charge charge, long result, long maxWaitNanos, @Nullable Object receipt) {
        long from = result == Take.NEVER_FITS ? nanos() : nanosToCountFrom();
        return new Answer(charge, state, 0, result, from, maxWaitNanos, receipt);
    }

    /**
     * Returns the moment from which the times of an answer count: the store's clock. If it was set back over the beginning
     * of a batch, the bucket's moment counts instead, because that batch doesn't come again.
     */
    private long nanosToCountFrom() {
        TickScale scale = state.scale();
        long clock = 1_000 * clockMicros;
        return scale.at(clock) == scale.at(nanos()) ? clock : nanos();
    }

    /** Puts the tokens of a take back, without those that are kept; none of another count. */
    void giveBack(Answer taken, long kept) {
        long tokens = taken.charge().cost() - kept;
        long leased = leasedTicks();
        if (!(taken.receipt() instanceof StoredReceipt note)) {
            state.giveBack(tokens, kept, null, leased, this::nanos);
        } else if (note.count == count) {
            state.giveBack(tokens, kept, new Receipt(state, note.due - movedBack, note.before), leased, this::nanos);
        }
    }

    void owe(long tokens) {
        state.owe(tokens, false, this::nanos);
    }

    /** Makes this bucket a full one that has no value. */
    void reset() {
        keptUntilMicros = 0;
        leases = null;
        state = full(state.scale().spec());
    }

    BucketSnapshot snapshot(BucketSpec spec) {
        TickScale scale = under(spec).state.scale();
        return BucketSnapshot.of(scale, missing(), nanosToCountFrom());
    }
}
