package io.ratelimit;

import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Buckets in the memory of this process, a {@link Shelf} for each policy. The clock is read once a call, and once more
 * for a bucket that would deny. Several buckets are taken from one after the other, and given back to when one denies.
 */
final class LocalBucketStore implements BucketStore {

    private static final long SHELF_CLOCK_STEP = Duration.ofSeconds(1).toNanos();

    private final TimeSource time;
    private final SipHash hash = SipHash.withRandomKey();
    private final Map<String, Shelf> shelves = new ConcurrentHashMap<>();

    /**
     * The time that forgetting goes by: that of a call, at most a second before the latest. Caffeine asks its clock at
     * every look-up, and a real clock would cost more than the look-up itself.
     */
    private final AtomicLong shelfTime;

    LocalBucketStore(TimeSource time) {
        this.time = time;
        this.shelfTime = new AtomicLong(time.nanoTime());
    }

    @Override
    public Decision take(List<Charge> charges) {
        return take(charges, false);
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        return take(charges, true);
    }

    private Decision take(List<Charge> charges, boolean ahead) {
        long nanos = now();
        if (charges.size() == 1) {
            return Decision.of(List.of(take(charges.get(0), ahead, nanos)));
        }
        Answer[] answers = new Answer[charges.size()];
        for (int i = 0; i < answers.length; i++) {
            answers[i] = take(charges.get(i), ahead, nanos);
            if (!answers[i].allowed()) {
                giveBack(Arrays.asList(answers).subList(0, i));
                lookAtOthers(charges, answers, i, ahead);
                break;
            }
        }
        return Decision.of(List.of(answers));
    }

    /**
     * Takes at a moment that was read for all charges; a no is asked for again, of a clock read for it alone. That is
     * read before the bucket is looked up again, so that who takes at a moment found a bucket that is kept from then on:
     * also through the wait, if it takes ahead.
     */
    private Answer take(Charge charge, boolean ahead, long first) {
        long maxWait = ahead ? charge.maxWait().toNanos() : 0;
        long nanos = first;
        Shelf shelf = shelf(charge.policy());
        Level level = shelf.level(charge, nanos);
        long taken = level.take(charge.cost(), nanos);
        while (taken < 0 && taken != Level.NEVER_FITS) {
            Level asked = level;
            long before = level.fullAt();
            long wait = Math.min(2 * level.ticks().nanosUntil(-taken, nanos), maxWait);
            shelf.keepThrough(wait, level.ticks());
            nanos = now();
            level = shelf.level(charge, nanos);
            taken = level.take(charge.cost(), nanos, wait);
            if (level == asked && taken != Level.CLOSED && level.lacked(before, charge.cost(), nanos, maxWait)) {
                break;
            }
        }
        Decision decision = Decision.of(level, charge.cost(), taken, nanos, maxWait);
        return new Answer(charge, decision, level.ticks().at(nanos) + taken, false, shelf.isShared(charge));
    }

    /** What the buckets beside the one that denied would have said, so that all that are short can be named. */
    private void lookAtOthers(List<Charge> charges, Answer[] answers, int denied, boolean ahead) {
        long nanos = now();
        for (int i = 0; i < answers.length; i++) {
            if (i != denied) {
                answers[i] = lookAt(charges.get(i), ahead, nanos);
            }
        }
    }

    private Answer lookAt(Charge charge, boolean ahead, long nanos) {
        long maxWait = ahead ? charge.maxWait().toNanos() : 0;
        Shelf shelf = shelf(charge.policy());
        while (true) {
            Level level = shelf.glimpse(charge, nanos);
            long seen = level.peek(charge.cost(), nanos, maxWait);
            if (seen != Level.CLOSED) {
                Decision decision = Decision.of(level, charge.cost(), seen, nanos, maxWait);
                return new Answer(charge, decision, Answer.UNKNOWN, false, shelf.isShared(charge));
            }
            Thread.onSpinWait();
        }
    }

    /** The last first: where one bucket was taken from twice, the second take stands behind the first. */
    @Override
    public void giveBack(List<Answer> taken) {
        for (int i = taken.size() - 1; i >= 0; i--) {
            giveBack(taken.get(i));
        }
    }

    private void giveBack(Answer taken) {
        Shelf shelf = shelf(taken.policy());
        Level level = shelf.taken(taken.charge());
        while (level != null && !level.giveBack(taken.charge().cost(), Shelf.position(taken, level), this::now)) {
            Thread.onSpinWait();
            level = shelf.taken(taken.charge());
        }
    }

    @Override
    public BucketSnapshot look(Charge charge) {
        long nanos = now();
        return shelf(charge.policy()).look(charge, nanos);
    }

    @Override
    public void forget(Charge charge) {
        shelf(charge.policy()).forget(charge.key());
    }

    private long now() {
        long nanos = time.nanoTime();
        long seen = shelfTime.get();
        while (nanos - seen >= SHELF_CLOCK_STEP && !shelfTime.compareAndSet(seen, nanos)) {
            seen = shelfTime.get();
        }
        return nanos;
    }

    private Shelf shelf(ThrottlePolicy policy) {
        Shelf shelf = shelves.get(policy.name());
        return shelf != null
                ? shelf
                : shelves.computeIfAbsent(
                        policy.name(), name -> new Shelf(policy.maxKeys(), hash, shelfTime::get, this::now));
    }

    @Override
    public long size(ThrottlePolicy policy) {
        now();
        return shelf(policy).size();
    }
}
