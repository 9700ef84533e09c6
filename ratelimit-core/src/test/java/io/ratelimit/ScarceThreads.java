package io.ratelimit;

import java.util.concurrent.Executor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/** A thread for each call, but for the first calls none, as in a container at its limit of threads. */
public final class ScarceThreads implements Executor, ThreadFactory {

    private final AtomicInteger failures;

    public ScarceThreads(int failures) {
        this.failures = new AtomicInteger(failures);
    }

    /** Returns a time source that fails to start a thread for the first of its calls and the first of its upkeep. */
    public static SystemTimeSource time() {
        return new SystemTimeSource(new ScarceThreads(1), new ScarceThreads(1));
    }

    @Override
    public void execute(Runnable call) {
        newThread(call).start();
    }

    @Override
    public Thread newThread(Runnable run) {
        if (failures.getAndDecrement() > 0) {
            throw new OutOfMemoryError("unable to create native thread");
        }
        Thread thread = new Thread(run, "scarce");
        thread.setDaemon(true);
        return thread;
    }
}
