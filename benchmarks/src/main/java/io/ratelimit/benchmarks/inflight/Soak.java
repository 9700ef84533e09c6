package io.ratelimit.benchmarks.inflight;

import io.ratelimit.PolicyThrottler;
import io.ratelimit.Throttlers;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.StandardSocketOptions;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * Sends requests that are handled in each way and end in each way, from clients that read the response, stay connected, or
 * are gone before it is complete. Afterwards no slot may be held. Prints how many requests there were, how many of them were
 * rejected, how many clients went away, and how many slots are held; the last of them must be zero.
 */
public final class Soak implements AutoCloseable {

    private static final int THREADS = 8;

    /** A request that Tomcat loses ends a minute after its timeout of 30 seconds. */
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(120);

    private static final Map<String, Object> PROPERTIES = Map.ofEntries(
            Map.entry("spring.mvc.async.request-timeout", "30s"),
            Map.entry("spring.main.banner-mode", "off"),
            Map.entry("server.address", "127.0.0.1"),
            Map.entry("server.port", "0"),
            Map.entry("logging.level.root", "off"),
            Map.entry("server.error.whitelabel.enabled", "false"),
            Map.entry("ratelimit.policies.pool.in-flight", "6"),
            Map.entry("ratelimit.policies.pool.phase", "before-authentication"),
            Map.entry("ratelimit.policies.each.key", "endpoint"),
            Map.entry("ratelimit.policies.each.rate", "1000/1s"),
            Map.entry("ratelimit.policies.each.in-flight", "4"),
            Map.entry("ratelimit.policies.patient.in-flight", "5"),
            Map.entry("ratelimit.policies.patient.max-wait", "2ms"),
            Map.entry("ratelimit.policies.watched.in-flight", "1"),
            Map.entry("ratelimit.policies.watched.mode", "shadow"));

    private final ConfigurableApplicationContext context;
    private final int port;
    private final List<String> paths = paths();
    private final AtomicLong rejected = new AtomicLong();
    private final AtomicLong gone = new AtomicLong();
    private final Map<Integer, AtomicLong> statuses = new TreeMap<>();

    public Soak() {
        SpringApplication application = new SpringApplication(SoakApplication.class);
        application.setDefaultProperties(PROPERTIES);
        context = application.run();
        port = Objects.requireNonNull(((WebServerApplicationContext) context).getWebServer())
                .getPort();
    }

    /** The argument: how many requests. */
    public static void main(String[] args) throws Exception {
        long requests = Long.parseLong(args[0]);
        long held;
        try (Soak soak = new Soak()) {
            held = soak.run(requests);
            System.err.println("responses by status: " + soak.statuses);
            System.out.printf("%d\t%s\t%s\t%d%n", requests, soak.rejected, soak.gone, held);
        }
        System.exit(held == 0 ? 0 : 1);
    }

    private static List<String> paths() {
        List<String> paths =
                new ArrayList<>(List.of("/soak/forward/FORWARD", "/soak/forward-later/FORWARD", "/soak/none"));
        for (SoakApplication.Handling handling : SoakApplication.Handling.values()) {
            for (SoakApplication.End end : SoakApplication.End.values()) {
                paths.add("/soak/" + handling.name().toLowerCase(Locale.ROOT) + "/" + end);
            }
        }
        return paths;
    }

    /** Sends requests, and returns how many slots are held in the end. */
    public long run(long requests) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            SplittableRandom random = new SplittableRandom(i);
            long share = requests / THREADS + (i < requests % THREADS ? 1 : 0);
            Thread thread = new Thread(() -> send(share, random));
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long end = System.nanoTime() + PATIENCE_NANOS;
        while (held() > 0 && System.nanoTime() < end) {
            TimeUnit.MILLISECONDS.sleep(10);
        }
        return held();
    }

    private long held() {
        Throttlers throttlers = context.getBean(Throttlers.class);
        long held = 0;
        for (PolicyThrottler throttler : throttlers.all()) {
            held += throttlers.inFlight(throttler.policy().name())
                    + throttlers.waiting(throttler.policy().name());
        }
        return held;
    }

    private void send(long requests, SplittableRandom random) {
        long left = requests;
        while (left > 0) {
            try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
                socket.setSoTimeout(35_000);
                InputStream in = new BufferedInputStream(socket.getInputStream());
                boolean stays = true;
                while (stays && left > 0) {
                    left--;
                    stays = request(socket, in, random);
                }
            } catch (IOException ended) {
                // the server has closed the connection, for instance after an error
            }
        }
    }

    /** Sends one request. Returns whether the client stays connected. */
    private boolean request(Socket socket, InputStream in, SplittableRandom random) throws IOException {
        String path = paths.get(random.nextInt(paths.size()));
        socket.getOutputStream()
                .write(("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
        int choice = random.nextInt(12);
        if (choice < 3) {
            gone.incrementAndGet();
            if (choice == 0 && in.read() < 0) {
                return false;
            }
            socket.setOption(StandardSocketOptions.SO_LINGER, choice == 1 ? -1 : 0); // ends or resets the connection
            return false;
        }
        return read(in);
    }

    /** Reads a response to its end. Returns whether the connection is kept. */
    private boolean read(InputStream in) throws IOException {
        String status = line(in);
        if (status.isEmpty()) {
            return false;
        }
        int code = Integer.parseInt(status.substring(9, 12));
        count(code);
        long length = 0;
        boolean chunked = false;
        boolean close = false;
        for (String header = line(in).toLowerCase(Locale.ROOT);
                !header.isEmpty();
                header = line(in).toLowerCase(Locale.ROOT)) {
            length = header.startsWith("content-length:")
                    ? Long.parseLong(header.substring(15).strip())
                    : length;
            chunked |= header.startsWith("transfer-encoding: chunked");
            close |= header.equals("connection: close");
        }
        if (chunked) {
            for (length = chunk(in); length > 0; length = chunk(in)) {
                in.skipNBytes(length + 2);
            }
            line(in);
        } else {
            in.skipNBytes(length);
        }
        return !close;
    }

    private synchronized void count(int status) {
        statuses.computeIfAbsent(status, code -> new AtomicLong()).incrementAndGet();
        if (status == 429) {
            rejected.incrementAndGet();
        }
    }

    private static long chunk(InputStream in) throws IOException {
        return Long.parseLong(line(in), 16);
    }

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new IOException("the connection has ended");
            }
            if (next != '\r') {
                line.append((char) next);
            }
        }
        return line.toString();
    }

    @Override
    public void close() {
        context.close();
    }
}
