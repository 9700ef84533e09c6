package io.ratelimit.jdbc;

import io.ratelimit.BackendException;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.Deadline.CongestedException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

/**
 * A small pool of connections, each used by one call at a time. A call waits neither for a free connection nor for a new one
 * longer than its deadline allows, which is why the pool of the application isn't used. Connections are opened in the
 * background, and checked there until one has passed. Thread-safe.
 */
final class ConnectionPool {

    private static final Duration LONGEST_OPENING = Duration.ofSeconds(30);
    private static final Duration LONGEST_CHECK = Duration.ofSeconds(3);

    /** Servers and poolers close connections that rest, some after less than a minute. */
    private static final Duration LONGEST_REST = Duration.ofSeconds(10);

    private final DataSource source;
    private final int size;
    private final Duration timeout;
    private final Duration longestOpening;
    private final long longestRest;
    private final Work<?> check;
    private final Semaphore free;
    private final AtomicInteger opening = new AtomicInteger();
    private final AtomicInteger connecting = new AtomicInteger(); // the threads, also those that take too long

    /** In the order of their last use: a firewall may forget a connection that rests for minutes. */
    private final Queue<Session> idle = new ConcurrentLinkedQueue<>();

    private final Refusals refusals = new Refusals();
    private volatile boolean checked;
    private volatile boolean stopped;

    interface Work<T> {
        T on(Session session, Deadline.Call call) throws SQLException;
    }

    /**
     * @param source opens a connection at each call
     * @param timeout the longest time of a statement
     * @param check is done on a new connection, until it has succeeded once, and again after the server refused work
     */
    ConnectionPool(DataSource source, int size, Duration timeout, Work<?> check) {
        this(source, size, timeout, LONGEST_OPENING, LONGEST_REST, check);
    }

    /**
     * @param longestOpening the time after which another connection is opened in place of one that doesn't open. If as many
     *     threads as the pool has connections wait in vain, only one is opened at a time, for four times as long.
     * @param longestRest the time without use after which the server may have closed a connection
     */
    ConnectionPool(
            DataSource source,
            int size,
            Duration timeout,
            Duration longestOpening,
            Duration longestRest,
            Work<?> check) {
        this.source = source;
        this.size = size;
        this.timeout = timeout;
        this.longestOpening = longestOpening;
        this.longestRest = longestRest.toNanos();
        this.check = check;
        this.free = new Semaphore(size, true);
    }

    /**
     * Does work on a connection that no other call uses meanwhile.
     *
     * @throws BackendException if no connection can be opened, or the work throws it
     * @throws CongestedException if all connections are in use
     */
    <T> T with(Deadline.Call call, Work<T> work) {
        if (!call.acquire(free)) {
            throw new CongestedException("all " + size + " connections to the database were in use", null);
        }
        try {
            Session session = session(call);
            try {
                T result = work.on(session, call);
                refusals.noteSuccess(session.openedAt());
                return result;
            } catch (SQLException failed) {
                throw session.failed(failed, call);
            } catch (BackendException failed) {
                throw failed;
            } catch (Throwable failed) {
                session.discard(); // it may be within a transaction
                throw failed;
            } finally {
                giveBack(session);
            }
        } finally {
            free.release();
        }
    }

    /** Returns a connection that rests, or opens one. One that the server closed meanwhile fails no call. */
    private Session session(Deadline.Call call) {
        Session rested = idle.poll();
        if (rested == null) {
            return open(call);
        }
        if (rested.restedNanos() < longestRest) {
            return rested;
        }
        BackendException failure = rested.probe(call);
        if (failure == null) {
            return rested;
        }
        giveBack(rested);
        if (rested.lost() == null) {
            throw failure;
        }
        return open(call);
    }

    /** Opens a connection. One that opens after the deadline is for a later call. */
    private Session open(Deadline.Call call) {
        CompletableFuture<Session> opened = open();
        try {
            return call.await(opened.copy());
        } catch (RuntimeException | Error late) {
            opened.thenAccept(this::giveBack);
            throw late;
        }
    }

    private CompletableFuture<Session> open() {
        if (stopped) {
            throw new BackendException("the connections to the database are closed");
        }
        refusals.permit();
        boolean inVain = connecting.get() - opening.get() >= size;
        if (opening.incrementAndGet() > (inVain ? 1 : size)) {
            opening.decrementAndGet();
            throw new BackendException("no connection to the database could be opened yet");
        }
        CompletableFuture<Session> opened;
        Thread thread;
        CompletableFuture<Session> counted;
        try {
            opened = new CompletableFuture<>();
            thread = thread(opened);
            counted = opened.whenComplete((session, failure) -> opening.decrementAndGet());
        } catch (Error failed) { // no memory is left
            opening.decrementAndGet();
            throw failed;
        }
        connecting.incrementAndGet();
        try {
            opened.orTimeout(longestOpening.toMillis() * (inVain ? 4 : 1), TimeUnit.MILLISECONDS);
            thread.start();
        } catch (OutOfMemoryError | StackOverflowError noThread) {
            connecting.decrementAndGet();
            opened.completeExceptionally(noThread);
        }
        return counted;
    }

    private Thread thread(CompletableFuture<Session> opened) {
        Thread thread = new Thread(() -> connect(opened), "ratelimit-jdbc-connect");
        thread.setDaemon(true);
        return thread;
    }

    private void connect(CompletableFuture<Session> opened) {
        try {
            Session session = checked(Session.open(source, timeout));
            if (!opened.complete(session)) {
                session.close();
            }
        } catch (Throwable failed) {
            BackendException failure = JdbcFailures.of(failed);
            if (failure.isMisconfiguration()) {
                refusals.note(failure, System.nanoTime());
            } else {
                refusals.clear(); // an outage, which the circuit breaker has to see
            }
            opened.completeExceptionally(failed);
        } finally {
            connecting.decrementAndGet();
        }
    }

    private Session checked(Session session) {
        Deadline.Call call = Deadline.Call.within(LONGEST_CHECK, JdbcFailures::of);
        try {
            if (!checked) {
                check.on(session, call);
                checked = true;
            }
            return session;
        } catch (Throwable failed) {
            BackendException failure =
                    failed instanceof SQLException error ? session.failed(error, call) : JdbcFailures.of(failed);
            session.close();
            throw failure;
        }
    }

    /** Opens connections until the pool is full, as far as that is possible now, so that no call has to wait for one. */
    void fill(Deadline.Call call) {
        List<CompletableFuture<Void>> opened = new ArrayList<>();
        try {
            for (int i = idle.size() + opening.get(); i < size; i++) {
                opened.add(open().thenAccept(this::giveBack));
            }
        } catch (BackendException noPlace) {
            // others that take too long have it
        }
        opened.forEach(filled -> call.await(filled.copy())); // one that is late is given back nevertheless
    }

    private void giveBack(Session session) {
        if (session.isUsable() && !stopped && idle.size() < size) {
            session.rest();
            idle.add(session);
            if (stopped) {
                closeIdle();
            }
        } else {
            session.close();
        }
        BackendException lost = session.lost();
        if (lost != null) {
            if (lost.isMisconfiguration()) {
                checked = false;
                refusals.note(lost, session.openedAt());
            }
            idle.forEach(Session::discard); // they were opened at the same time
            closeIdle();
        }
    }

    private void closeIdle() {
        for (Session session = idle.poll(); session != null; session = idle.poll()) {
            session.close();
        }
    }

    void start() {
        refusals.clear();
        checked = false;
        stopped = false;
    }

    /** Closes all connections. Calls fail until {@link #start}. */
    void stop() {
        stopped = true;
        closeIdle();
    }
}
