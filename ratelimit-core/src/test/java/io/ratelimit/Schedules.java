package io.ratelimit;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Runs a short history of several threads again and again. In the build the machine chooses the order of their steps; {@code
 * proofs/fray} runs the same histories with Fray, which chooses another order each time.
 */
public final class Schedules {

    private static final int RUNS = 300;

    private static int schedules;

    private Schedules() {}

    /** A history, or the part of one thread. */
    public interface Work {
        void run() throws Exception;
    }

    /** Runs a history, which makes its own objects, and throws what it threw in any run. */
    public static void search(Work history) throws Exception {
        Runnable once = () -> {
            try {
                history.run();
            } catch (Exception failed) {
                throw new IllegalStateException(failed);
            }
        };
        Integer seconds = Integer.getInteger("ratelimit.fray");
        if (seconds != null) {
            searchWithFray(once, seconds);
        } else {
            for (int i = 0; i < RUNS; i++) {
                once.run();
            }
        }
    }

    /** Calls Fray by reflection: it needs JDK 25, and the build doesn't have it. */
    private static void searchWithFray(Runnable history, int seconds) throws Exception {
        history.run(); // threads that the JDK starts once, such as that of its timers, are not Fray's
        Runnable counted = () -> {
            schedules++;
            history.run();
        };
        Class<?> fray = Class.forName("org.pastalab.fray.junit.plain.FrayInTestLauncher");
        Method launch = Arrays.stream(fray.getMethods())
                .filter(method -> method.getName().equals("launchFray$default"))
                .findAny()
                .orElseThrow();
        Object scheduler = create("org.pastalab.fray.core.scheduler.POSScheduler");
        Object random = create("org.pastalab.fray.core.randomness.ControlledRandomProvider");
        int defaults = 0b1100_0000; // for the two parameters that are null
        try {
            launch.invoke(
                    null,
                    fray.getField("INSTANCE").get(null),
                    counted,
                    scheduler,
                    random,
                    Integer.MAX_VALUE,
                    seconds,
                    false,
                    null,
                    null,
                    defaults,
                    null);
        } catch (InvocationTargetException found) {
            throw new AssertionError("In schedule " + schedules, found.getCause());
        }
    }

    private static Object create(String type) throws ReflectiveOperationException {
        return Class.forName(type).getConstructor().newInstance();
    }

    /** Runs one test without JUnit, whose own steps Fray needn't see: the name of its class, then that of its method. */
    public static void main(String[] test) throws Exception {
        try {
            Class<?> tests = Class.forName(test[0]);
            Constructor<?> constructor = tests.getDeclaredConstructor();
            constructor.setAccessible(true);
            Method method = tests.getDeclaredMethod(test[1]);
            method.setAccessible(true);
            method.invoke(constructor.newInstance());
            System.out.println("\nPassed. Schedules: " + schedules);
        } catch (InvocationTargetException failed) {
            failed.getCause().printStackTrace();
        }
        System.exit(0); // threads of Fray would go on
    }

    /** Runs works in threads of their own until all have ended, and throws what one of them threw. */
    public static void together(Work... works) throws InterruptedException {
        AtomicReference<Throwable> failure = new AtomicReference<>();
        List<Thread> threads = Arrays.stream(works)
                .map(work -> new Thread(() -> {
                    try {
                        work.run();
                    } catch (Throwable failed) {
                        failure.set(failed);
                    }
                }))
                .toList();
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        if (failure.get() != null) {
            throw new AssertionError(failure.get());
        }
    }
}
