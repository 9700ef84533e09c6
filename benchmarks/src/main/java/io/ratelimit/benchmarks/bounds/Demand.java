package io.ratelimit.benchmarks.bounds;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;

/** Threads that ask for one token after the other, with a short pause after each denial. */
final class Demand {

    private static final long PAUSE_NANOS = 20_000;

    private final Grants grants;

    Demand(Grants grants) {
        this.grants = grants;
    }

    /** Asks each instance from several threads until a moment. */
    void until(long nanos, List<Instance> instances, int threads) throws InterruptedException, ExecutionException {
        ExecutorService pool = Executors.newCachedThreadPool();
        try {
            List<Future<?>> running = new ArrayList<>();
            for (Instance instance : instances) {
                for (int i = 0; i < threads; i++) {
                    running.add(pool.submit(() -> grants.add(until(nanos, instance))));
                }
            }
            for (Future<?> one : running) {
                one.get();
            }
        } finally {
            pool.shutdownNow();
        }
    }

    private static List<Grants.Grant> until(long nanos, Instance instance) {
        List<Grants.Grant> allowed = new ArrayList<>();
        for (long start = System.nanoTime(); start < nanos; start = System.nanoTime()) {
            if (isAllowed(instance)) {
                allowed.add(new Grants.Grant(start, System.nanoTime()));
            } else {
                LockSupport.parkNanos(PAUSE_NANOS);
            }
        }
        return allowed;
    }

    private static boolean isAllowed(Instance instance) {
        try {
            return instance.allows(Situation.KEY);
        } catch (Exception failed) {
            return false; // an application answers an error
        }
    }
}
