package io.ratelimit.benchmarks.inflight;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import io.ratelimit.benchmarks.inflight.SharedCounts.Count;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;

/** One instance of an application, in a process of its own: requests come at random, and hold a slot for a while. */
final class LoadProcess {

    private static final int THREADS = 4;

    private final SharedCounts counts;
    private final int process;
    private final Slots slots;
    private final int limit;
    private final Situation situation;
    private final ScheduledThreadPoolExecutor ends = new ScheduledThreadPoolExecutor(2);

    private LoadProcess(SharedCounts counts, int process, Slots slots, int limit, Situation situation) {
        this.counts = counts;
        this.process = process;
        this.slots = slots;
        this.limit = limit;
        this.situation = situation;
    }

    /** The arguments: file, number of this process, way, situation, port of Redis. */
    public static void main(String[] args) throws Exception {
        withoutLog();
        SharedCounts counts = new SharedCounts(Path.of(args[0]));
        int process = Integer.parseInt(args[1]);
        Situation situation = Situation.valueOf(args[3]);
        Slots slots = Slots.Way.valueOf(args[2]).create(Integer.parseInt(args[4]), situation.limit);
        LoadProcess load = new LoadProcess(counts, process, slots, situation.limit, situation);
        for (int thread = 0; thread < THREADS; thread++) {
            SplittableRandom random = new SplittableRandom(100L * process + thread);
            new Thread(() -> load.run(random)).start();
        }
        System.in.read(); // until the parent ends
        System.exit(0);
    }

    static void withoutLog() {
        ((Logger) LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME)).setLevel(Level.OFF);
    }

    private void run(SplittableRandom random) {
        double perNano = situation.perSecond() / Load.PROCESSES / THREADS / 1e9;
        long next = System.nanoTime();
        while (true) {
            next += (long) (-Math.log(1 - random.nextDouble()) / perNano);
            while (next - System.nanoTime() > 0) {
                LockSupport.parkNanos(next - System.nanoTime());
            }
            request(situation.nanos(random.nextDouble()));
        }
    }

    private void request(long nanos) {
        boolean free = counts.sum(Count.RUNNING) < limit;
        counts.add(process, Count.REQUESTS, 1);
        Runnable release = take();
        if (release == null) {
            counts.add(process, Count.DENIED, 1);
            counts.add(process, Count.DENIED_IN_VAIN, free && counts.sum(Count.RUNNING) < limit ? 1 : 0);
            return;
        }
        counts.add(process, Count.RUNNING, 1);
        counts.raise(process, Count.MOST_AT_ONCE, counts.sum(Count.RUNNING));
        ends.schedule(
                () -> {
                    counts.add(process, Count.RUNNING, -1);
                    release.run();
                },
                nanos,
                TimeUnit.NANOSECONDS);
    }

    private @Nullable Runnable take() {
        try {
            return slots.take();
        } catch (RuntimeException failed) {
            counts.add(process, Count.FAILED, 1);
            return null;
        }
    }
}
