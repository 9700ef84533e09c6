package io.ratelimit.replay;

import java.io.PrintStream;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** A progress bar: the part of the bytes that was read, lines a second, and the time that is left. */
final class Progress {

    private static final int WIDTH = 30;
    private static final long INTERVAL = 200_000_000L;

    private final LogReader reader;
    private final @Nullable PrintStream out;
    private final long start = System.nanoTime();
    private long shownAt = start;

    /** @param out the stream to write to; null for none */
    Progress(LogReader reader, @Nullable PrintStream out) {
        this.reader = reader;
        this.out = out;
    }

    /** Shows the progress, five times a second at most. */
    void show() {
        long now = System.nanoTime();
        if (out != null && now - shownAt >= INTERVAL) {
            shownAt = now;
            out.print("\r" + bar(reader.progress(), reader.lines(), (now - start) / 1e9));
            out.flush();
        }
    }

    static String bar(double part, long lines, double seconds) {
        String rate = String.format(Locale.ROOT, "%,d lines, %,.0f a second", lines, lines / Math.max(seconds, 1e-3));
        if (part < 0) {
            return rate + "  ";
        }
        int full = (int) (part * WIDTH);
        double left = part <= 0 ? 0 : seconds / part - seconds;
        return "[" + "#".repeat(full) + ".".repeat(WIDTH - full) + "]"
                + String.format(Locale.ROOT, " %3.0f %%, %s, %.0f s left  ", part * 100, rate, left);
    }

    /** Removes the bar. */
    void end() {
        if (out != null && shownAt != start) {
            out.print("\r" + " ".repeat(WIDTH + 60) + "\r");
            out.flush();
        }
    }
}
