package io.ratelimit.benchmarks.bounds;

import io.ratelimit.benchmarks.bounds.Subject.Place;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** One limiter in one situation. */
final class Run {

    private static final long MILLI = 1_000_000;
    private static final int WARM_UPS = 300;

    private final Subject subject;
    private final Situation situation;
    private final @Nullable Backend backend;
    private final Limits limits;
    private final Grants grants = new Grants();
    private final Exact exact = new Exact();
    private final List<Instance> open = new ArrayList<>();

    private Run(Subject subject, Situation situation, @Nullable Backend backend) {
        this.subject = subject;
        this.situation = situation;
        this.backend = backend;
        this.limits = new Limits(situation.limit());
    }

    static Cell of(Subject subject, Situation situation) throws Exception {
        String obstacle = situation.obstacle(subject);
        if (obstacle != null) {
            return Cell.notRun(subject, situation, obstacle);
        }
        try (Backend backend = backend(subject)) {
            Run run = new Run(subject, situation, backend);
            warmUp(subject, run.port());
            try {
                run.go();
            } finally {
                for (Instance instance : run.open) {
                    instance.close();
                }
            }
            return run.cell();
        }
    }

    private static @Nullable Backend backend(Subject subject) throws Exception {
        return switch (subject.place()) {
            case MEMORY, PROXY -> null;
            case REDIS -> Backend.redis();
            case H2 -> Backend.h2();
            case POSTGRES -> new PostgresBackend();
        };
    }

    /** Lets classes load and the compiler see the code, with an instance that isn't counted. */
    static void warmUp(Subject subject, int port) throws Exception {
        try (Instance instance = subject.start(Limit.of(500, 1), port)) {
            for (int i = 0; i < WARM_UPS; i++) {
                instance.allows("warm-up");
            }
        }
    }

    private int port() {
        return backend == null ? 0 : backend.port();
    }

    private Cell cell() {
        double beyond = grants.beyond(limits);
        double granted = 100 * grants.all().size() / exact.granted(limits);
        return new Cell(subject.id(), situation.id(), beyond, granted, "");
    }

    private void go() throws Exception {
        switch (situation) {
            case ONE_THREAD -> ask(2_000, start(1), 1);
            case EIGHT_THREADS -> ask(2_000, start(1), 8);
            case TWO_INSTANCES -> ask(2_000, start(2), 4);
            case CLOCK -> clock();
            case OUTAGE -> outage();
            case RESTART -> restart();
            case LOWERED -> lowered();
            case FORGOTTEN -> forgotten();
            case EDGE -> edge();
        }
    }

    private List<Instance> start(int count) throws Exception {
        boolean isSlow = subject.place() != Place.MEMORY;
        if (!isSlow) {
            awaitSecond();
        }
        List<Instance> started = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            started.add(startNow());
        }
        if (isSlow) {
            awaitSecond();
        }
        return started;
    }

    private Instance startNow() throws Exception {
        Instance instance = subject.start(situation.limit(), port());
        open.add(instance);
        return instance;
    }

    /**
     * Waits until a second begins, so that a limiter with windows begins with a whole one, by the wall clock or by its own creation.
     * Only {@link Situation#EDGE} looks for the end of a window.
     */
    private static void awaitSecond() throws InterruptedException {
        long millis = System.currentTimeMillis();
        TimeUnit.MILLISECONDS.sleep(1_001 - millis % 1_000);
    }

    private void ask(long millis, List<Instance> instances, int threads) throws Exception {
        askUntil(System.nanoTime() + millis * MILLI, instances, threads);
    }

    private void askUntil(long nanos, List<Instance> instances, int threads) throws Exception {
        exact.asked(System.nanoTime(), nanos);
        new Demand(grants).until(nanos, instances, threads);
    }

    private void clock() throws Exception {
        Path difference = Files.createTempFile("clock", "");
        try {
            Files.writeString(difference, "+0");
            if (subject == Subject.NGINX) {
                Instance nginx = Nginx.start(situation.limit(), OffClock.by(difference));
                open.add(nginx);
                awaitSecond();
                CompletableFuture<?> set = at(1_000, () -> Files.writeString(difference, "+10"));
                ask(4_000, List.of(nginx), 4);
                set.join();
            } else if (subject.place().isShared()) {
                List<Instance> here = start(1);
                try (Child ahead = Child.start(subject, port(), OffClock.ahead(10))) {
                    awaitSecond();
                    long end = System.nanoTime() + 3_000 * MILLI;
                    CompletableFuture<?> asks = at(1_000, () -> ahead.ask(end));
                    askUntil(end, here, 4);
                    asks.join();
                    grants.add(ahead.grants());
                }
            } else {
                try (Child child = Child.start(subject, port(), OffClock.by(difference))) {
                    awaitSecond();
                    long end = System.nanoTime() + 4_000 * MILLI;
                    CompletableFuture<?> set = at(1_000, () -> Files.writeString(difference, "+10"));
                    exact.asked(System.nanoTime(), end);
                    child.ask(end);
                    grants.add(child.grants());
                    set.join();
                }
            }
        } finally {
            Files.delete(difference);
        }
    }

    private void outage() throws Exception {
        List<Instance> instances = start(2);
        CompletableFuture<?> outage = at(1_000, () -> {
            backend.fail();
            TimeUnit.SECONDS.sleep(1);
            backend.recover();
        });
        ask(3_500, instances, 2);
        outage.join();
    }

    private void restart() throws Exception {
        List<Instance> first = start(1);
        ask(1_000, first, 4);
        open.remove(0).close();
        ask(1_000, List.of(startNow()), 4);
    }

    private void lowered() throws Exception {
        List<Instance> instances = start(1);
        CompletableFuture<?> change = at(1_100, () -> lower(instances.get(0), Limit.of(250, 1)));
        ask(1_600, instances, 4);
        change.join();
        TimeUnit.MILLISECONDS.sleep(1_500); // windows of a second begin before the next change
        lower(instances.get(0), Limit.of(100, 1));
        ask(800, instances, 4);
    }

    private void lower(Instance instance, Limit limit) throws Exception {
        instance.change(limit);
        limits.change(System.nanoTime(), limit);
    }

    private void forgotten() throws Exception {
        Instance instance = subject.startWithKeys(situation.limit(), port());
        open.add(instance);
        ask(700, List.of(instance), 4);
        if (backend != null) {
            backend.evictBeyond(512 << 10);
        }
        IntStream.range(0, Situation.otherKeys(subject.place()))
                .parallel()
                .forEach(i -> askOnce(instance, "other-" + i));
        ask(700, List.of(instance), 4);
    }

    private static void askOnce(Instance instance, String key) {
        try {
            instance.allows(key);
        } catch (Exception full) {
            // a backend that is full rejects this one key
        }
    }

    private void edge() throws Exception {
        List<Instance> instances = start(1);
        ask(1_500, instances, 8);
        long edge = edge(grants.all());
        long next = edge;
        while (next < System.nanoTime() + 1_200 * MILLI) {
            next += situation.limit().period().toNanos();
        }
        TimeUnit.NANOSECONDS.sleep(next - 100 * MILLI - System.nanoTime());
        askUntil(next + 700 * MILLI, instances, 8);
    }

    /** Returns the moment of the first grant after the longest time without one: there the limiter got new tokens. */
    private static long edge(List<Grants.Grant> grants) {
        long[] starts = grants.stream().mapToLong(Grants.Grant::start).sorted().toArray();
        return IntStream.range(1, starts.length)
                .boxed()
                .max(Comparator.comparingLong(i -> starts[i] - starts[i - 1]))
                .map(i -> starts[i])
                .orElse(starts[0]);
    }

    private interface Step {
        void run() throws Exception;
    }

    private static CompletableFuture<?> at(long millis, Step step) {
        return CompletableFuture.runAsync(
                () -> {
                    try {
                        step.run();
                    } catch (Exception failed) {
                        throw new IllegalStateException(failed);
                    }
                },
                CompletableFuture.delayedExecutor(millis, TimeUnit.MILLISECONDS));
    }
}
