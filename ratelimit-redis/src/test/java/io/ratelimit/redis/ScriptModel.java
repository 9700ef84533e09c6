package io.ratelimit.redis;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.redis.RedisAnswers.ScriptReceipt;
import io.ratelimit.redis.RedisBucketStore.Timing;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A model of {@code bucket.lua} in Java: the arithmetic of {@link RedisBucketState} on values that are kept in a map and
 * expire on a test's clock. The script's replies and values are held against it.
 */
final class ScriptModel {

    private final RedisKeys keys;
    private final boolean expire;
    private final Map<ByteBuffer, byte[]> values = new HashMap<>();
    private final Map<ByteBuffer, Long> expiry = new HashMap<>();

    ScriptModel(RedisKeys keys, boolean expire) {
        this.keys = keys;
        this.expire = expire;
    }

    Decision take(List<Charge> charges, boolean ahead, long now) {
        List<ByteBuffer> named = charges.stream().map(this::key).toList();
        return written(take(charges, named, ahead, reading(now)), now);
    }

    void giveBack(List<Answer> taken, long now) {
        List<ByteBuffer> named =
                taken.stream().map(answer -> key(answer.charge())).toList();
        written(giveBack(taken, named, reading(now)), now);
    }

    void settle(Answer taken, long cost, long now) {
        written(settle(taken, cost, key(taken.charge()), reading(now)), now);
    }

    BucketSnapshot snapshot(Charge charge, long now) {
        RedisTickScale ticks = ticks(charge);
        CalendarClock calendar = calendar(charge);
        RedisBucketState bucket =
                reading(now).bucket(key(charge), ticks, calendar).under(ticks);
        return RedisAnswers.snapshot(
                charge, ticks, bucket.missingFor(charge.cost()), reading(now).now(calendar), calendar);
    }

    /** Returns the bucket as it is now, under the spec that it was written under. */
    RedisBucketState bucket(Charge charge, long now) {
        return reading(now).bucket(key(charge), RedisTickScale.of(charge.spec()), calendar(charge));
    }

    /** Returns whether there is no value, as of a full bucket. */
    boolean isForgotten(Charge charge, long now) {
        return bucket(charge, now).missing() == 0 && value(charge) == null;
    }

    byte @Nullable [] value(Charge charge) {
        return values.get(key(charge));
    }

    /** Sets the value that another store wrote; null for a full bucket. */
    void setValue(Charge charge, byte @Nullable [] value) {
        if (value == null) {
            values.remove(key(charge));
        } else {
            values.put(key(charge), value);
        }
    }

    private ByteBuffer key(Charge charge) {
        return ByteBuffer.wrap(keys.key(charge));
    }

    private Reading reading(long now) {
        if (expire && expiry.values().removeIf(moment -> moment <= now)) {
            values.keySet().retainAll(expiry.keySet());
        }
        return new Reading(now, values);
    }

    private <T> T written(Change<T> change, long now) {
        change.buckets().forEach((key, written) -> {
            byte[] value = written.bucket().value();
            if (value == null) {
                values.remove(key);
                expiry.remove(key);
            } else {
                values.put(key, value);
                expiry.put(key, now + 1_000 * written.bucket().millisToKeep(written.now()));
            }
        });
        return change.answer();
    }

    private static RedisTickScale ticks(Charge charge) {
        return RedisTickScale.of(charge.spec());
    }

    private static @Nullable CalendarClock calendar(Charge charge) {
        return charge.spec().refill() == Refill.CALENDAR ? CalendarClock.of(charge.spec()) : null;
    }

    /** The values of buckets at one moment. */
    private record Reading(long now, Map<ByteBuffer, byte[]> values) {

        /** Returns the time of a bucket: the server's, or that of the bucket's calendar. */
        long now(@Nullable CalendarClock calendar) {
            return calendar == null ? now : calendar.at(now);
        }

        /** Returns the longest wait of a charge, by the clock of its bucket. */
        long waitMicros(Charge charge, boolean ahead) {
            CalendarClock calendar = calendar(charge);
            long wait = timing(ahead).waitMicros(charge);
            return calendar == null ? wait : calendar.at(now + wait) - calendar.at(now);
        }

        RedisBucketState bucket(ByteBuffer key, RedisTickScale ticks, @Nullable CalendarClock calendar) {
            return RedisBucketState.read(values.get(key), ticks, now(calendar));
        }

        /** Returns the steps by which the clock was ahead when the value was written, if it has been corrected since. */
        long correctedSteps(ByteBuffer key, @Nullable CalendarClock calendar) {
            return RedisBucketState.correctedSteps(values.get(key), now(calendar));
        }
    }

    /** The result of a call for a reading: the answer, and the buckets to write, each with its time. */
    private record Change<T>(T answer, Map<ByteBuffer, Written> buckets) {}

    /**
     * A bucket to write.
     *
     * @param now the time of the bucket's clock
     */
    private record Written(RedisBucketState bucket, long now) {}

    private static Change<Decision> take(List<Charge> charges, List<ByteBuffer> keys, boolean ahead, Reading reading) {
        Map<ByteBuffer, RedisBucketState> buckets = new LinkedHashMap<>();
        Map<ByteBuffer, RedisBucketState> changedAnyway = new LinkedHashMap<>();
        List<RedisBucketState> before = new ArrayList<>(charges.size());
        boolean all = true;
        for (int i = 0; i < charges.size(); i++) {
            Charge charge = charges.get(i);
            CalendarClock calendar = calendar(charge);
            RedisBucketState stored = bucket(keys.get(i), charge, reading, buckets);
            RedisBucketState bucket = stored.under(ticks(charge));
            boolean has = bucket.has(charge.cost(), reading.waitMicros(charge, ahead));
            boolean changed = bucket != stored
                    ? !has
                            && ticks(charge).fits(charge.cost())
                            && bucket.microsUntil(charge.cost()) < stored.microsUntil(charge.cost())
                    : bucket.at() > reading.now(calendar) && reading.correctedSteps(keys.get(i), calendar) > 0;
            if (changed && !buckets.containsKey(keys.get(i))) {
                changedAnyway.put(keys.get(i), bucket);
            }
            before.add(bucket);
            buckets.put(keys.get(i), has ? bucket.take(charge.cost()) : bucket);
            all &= has;
        }
        Decision decision = Decision.of(answers(charges, before, all, ahead, reading));
        return new Change<>(decision, written(charges, keys, all ? buckets : changedAnyway, reading));
    }

    private static Map<ByteBuffer, Written> written(
            List<Charge> charges, List<ByteBuffer> keys, Map<ByteBuffer, RedisBucketState> buckets, Reading reading) {
        Map<ByteBuffer, Written> written = new LinkedHashMap<>();
        for (int i = 0; i < keys.size(); i++) {
            RedisBucketState bucket = buckets.get(keys.get(i));
            if (bucket != null) {
                written.put(keys.get(i), new Written(bucket, reading.now(calendar(charges.get(i)))));
            }
        }
        return written;
    }

    private static RedisBucketState bucket(
            ByteBuffer key, Charge charge, Reading reading, Map<ByteBuffer, RedisBucketState> seen) {
        RedisBucketState bucket = seen.get(key);
        return bucket != null ? bucket : reading.bucket(key, ticks(charge), calendar(charge));
    }

    private static List<Answer> answers(
            List<Charge> charges, List<RedisBucketState> before, boolean all, boolean ahead, Reading reading) {
        List<Answer> answers = new ArrayList<>(charges.size());
        for (int i = 0; i < charges.size(); i++) {
            Charge charge = charges.get(i);
            RedisTickScale ticks = ticks(charge);
            CalendarClock calendar = calendar(charge);
            long now = reading.now(calendar);
            long missing = before.get(i).missingFor(charge.cost());
            long returned = before.get(i).returned() - before.get(i).leased();
            answers.add(
                    all
                            ? RedisAnswers.taken(
                                    charge,
                                    ticks,
                                    missing,
                                    returned,
                                    now,
                                    before.get(i).at(),
                                    before.get(i).begun(),
                                    calendar)
                            : before.get(i).has(charge.cost(), reading.waitMicros(charge, ahead))
                                    ? RedisAnswers.available(charge, ticks, missing, now, calendar)
                                    : RedisAnswers.denied(charge, ticks, missing, timing(ahead), now, calendar));
        }
        return answers;
    }

    private static Timing timing(boolean ahead) {
        return ahead ? Timing.AHEAD : Timing.AT_ONCE;
    }

    private static Change<Boolean> giveBack(List<Answer> taken, List<ByteBuffer> keys, Reading reading) {
        Map<ByteBuffer, RedisBucketState> changed = new LinkedHashMap<>();
        for (int i = keys.size() - 1; i >= 0; i--) { // of two takes from one bucket the second is due later
            Answer answer = taken.get(i);
            RedisBucketState bucket = bucket(keys.get(i), answer.charge(), reading, changed);
            RedisBucketState after = giveBack(bucket, answer, 0, keys.get(i), reading);
            if (after != bucket) {
                changed.put(keys.get(i), after);
            }
        }
        List<Charge> charges = taken.stream().map(Answer::charge).toList();
        return new Change<>(true, written(charges, keys, changed, reading));
    }

    private static RedisBucketState giveBack(
            RedisBucketState bucket, Answer taken, long kept, ByteBuffer key, Reading reading) {
        Charge charge = taken.charge();
        long given = charge.cost() - kept;
        if (!(taken.receipt() instanceof ScriptReceipt receipt)) {
            return bucket.giveBack(given, kept, null);
        }
        long step = receipt.step() - reading.correctedSteps(key, calendar(charge));
        ScriptReceipt corrected = new ScriptReceipt(step, receipt.rest(), receipt.before(), receipt.begun());
        return bucket.ticks().equals(ticks(charge)) ? bucket.giveBack(given, kept, corrected) : bucket;
    }

    private static Change<Boolean> settle(Answer taken, long cost, ByteBuffer key, Reading reading) {
        Charge charge = taken.charge();
        CalendarClock calendar = calendar(charge);
        RedisBucketState bucket = reading.bucket(key, ticks(charge), calendar);
        long more = cost - charge.cost();
        RedisBucketState after = more > 0 ? bucket.owe(more) : giveBack(bucket, taken, cost, key, reading);
        return new Change<>(true, after == bucket ? Map.of() : Map.of(key, new Written(after, reading.now(calendar))));
    }
}
