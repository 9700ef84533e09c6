package io.ratelimit.replay;

import io.ratelimit.replay.LogReader.Line;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import org.jspecify.annotations.Nullable;

/** The lines of a log, which a thread reads and parses while another thread decides the requests before them. */
final class ParsedLines {

    /** The bytes of text that may wait at one place: unparsed, in batches, or to be put in order. */
    static final int MAX_BYTES = 16 << 20;

    private static final int BATCH = 1024;
    private static final int BATCHES = 4;

    /** One batch more is being filled, and one is being decided. */
    private static final int MAX_BATCH_BYTES = MAX_BYTES / (BATCHES + 2);

    private final BlockingQueue<List<Object>> batches = new ArrayBlockingQueue<>(BATCHES);
    private final LogFormat format;
    private List<Object> batch = new ArrayList<>();
    private int batchBytes;
    private volatile @Nullable Throwable failure;

    /** @param first the lines that were already read */
    ParsedLines(List<Line> first, LogReader reader, LogFormat format) {
        this.format = format;
        Thread parser = new Thread(() -> parse(first, reader), "parser");
        parser.setDaemon(true);
        parser.start();
    }

    private void parse(List<Line> first, LogReader reader) {
        try {
            for (Line line : first) {
                add(line);
            }
            for (Line line = reader.next(); line != null; line = reader.next()) {
                add(line);
            }
            if (!batch.isEmpty()) {
                batches.put(batch);
            }
            batches.put(List.of());
        } catch (Throwable failed) {
            failure = failed;
            batches.clear();
            batches.offer(List.of());
        }
    }

    private void add(Line line) throws InterruptedException {
        LogEntry entry = format.read(line.text());
        if (entry == null) {
            batch.add(line);
            batchBytes += line.text().length();
        } else {
            entry.number = line.number();
            entry.sizeAs(line.text());
            batch.add(entry);
            batchBytes += entry.bytes;
        }
        if (batch.size() == BATCH || batchBytes >= MAX_BATCH_BYTES) {
            batches.put(batch);
            batch = new ArrayList<>();
            batchBytes = 0;
        }
    }

    /** Returns the next lines: an entry, or a {@link Line} that has another format. Empty at the end. */
    List<Object> next() {
        try {
            List<Object> next = batches.take();
            if (failure != null) {
                throw new IllegalStateException(failure);
            }
            return next;
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }
}
