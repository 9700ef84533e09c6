package io.ratelimit.autoconfigure.redis;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Stands between an application and its Redis, and makes answers late, cuts them into pieces, swallows all, leads elsewhere,
 * or cuts the line.
 */
final class TcpProxy implements AutoCloseable {

    private final ServerSocket listening;
    private final AtomicInteger lines = new AtomicInteger();
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private volatile Duration delay = Duration.ZERO;
    private volatile boolean sliced;
    private volatile int swallowed = -1;
    private volatile int target;

    TcpProxy(int target) {
        this.target = target;
        try {
            this.listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
        start(this::accept);
    }

    int port() {
        return listening.getLocalPort();
    }

    /** Returns the number of connections so far, with those whose server is gone. */
    int connections() {
        return lines.get();
    }

    /** Makes later replies late. Those that arrive during the delay of another are sent together with it. */
    void delay(Duration delay) {
        this.delay = delay;
    }

    /** Sends later replies byte by byte. */
    void slice() {
        sliced = true;
    }

    /** Drops all data in both directions without closing the connections. */
    void swallow() {
        swallowed = Integer.MAX_VALUE;
    }

    /** Lets later connections work normally; the present ones stay as they are. */
    void swallowNoMore() {
        swallowed = lines.get();
    }

    /** Leads later connections to another server. */
    void leadTo(int port) {
        target = port;
    }

    /** Closes all present connections. */
    void cut() {
        sockets.forEach(TcpProxy::close);
    }

    private static void start(Runnable run) {
        Thread thread = new Thread(run, "tcp-proxy");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        try {
            while (true) {
                Socket client = listening.accept();
                client.setTcpNoDelay(true);
                connect(client, lines.incrementAndGet());
            }
        } catch (IOException closed) {
            cut();
        }
    }

    private void connect(Socket client, int line) {
        try {
            Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
            server.setTcpNoDelay(true);
            sockets.add(client);
            sockets.add(server);
            start(() -> copy(line, client, server, false));
            start(() -> copy(line, server, client, true));
        } catch (IOException gone) {
            close(client);
        }
    }

    private void copy(int line, Socket from, Socket to, boolean answers) {
        byte[] buffer = new byte[8192];
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                if (answers && !delay.isZero()) {
                    LockSupport.parkNanos(delay.toNanos());
                    read += Math.max(in.read(buffer, read, Math.min(in.available(), buffer.length - read)), 0);
                }
                for (int i = line <= swallowed ? read : 0; i < read; i += answers && sliced ? 1 : read) {
                    out.write(buffer, i, answers && sliced ? 1 : read);
                    out.flush();
                }
            }
        } catch (IOException cut) {
            // the other end is closed too
        } finally {
            close(from);
            close(to);
        }
    }

    private static void close(Socket socket) {
        try {
            socket.close();
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
    }

    @Override
    public void close() throws IOException {
        listening.close();
        cut();
    }
}
