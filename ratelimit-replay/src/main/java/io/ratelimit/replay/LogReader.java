package io.ratelimit.replay;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.FileInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;
import org.jspecify.annotations.Nullable;

/** The lines of several files, one after the other. Decompresses gzip, whatever the name of the file. */
final class LogReader implements AutoCloseable {

    /** The longest line in bytes. A line is read into memory before it is parsed. */
    static final int MAX_LINE = 64 * 1024;

    private static final int BUFFER = 64 * 1024;

    private final Iterator<String> files;
    private final InputStream standardInput;
    private final long totalBytes;
    private final byte[] line = new byte[MAX_LINE];
    private final byte[] buffer = new byte[BUFFER];
    private final List<String> problems = new ArrayList<>();
    private String file = "";
    private @Nullable InputStream input;
    private int at;
    private int end;
    private long readBytes;
    private long lines;
    private long tooLong;
    private long notUtf8;

    /** @param number its position in all files, from 1 on, with the lines that are too long */
    record Line(long number, String text) {}

    /** @param files the names of the files; {@code -} is the standard input */
    LogReader(List<String> files, InputStream standardInput) throws IOException {
        this.files = files.iterator();
        this.standardInput = standardInput;
        long bytes = 0;
        for (String name : files) {
            bytes = name.equals("-") || bytes < 0 ? -1 : bytes + Files.size(Path.of(name));
        }
        this.totalBytes = bytes;
    }

    /** Returns the next line that is not too long; null at the end of the last file. */
    @Nullable
    Line next() {
        while (true) {
            try {
                InputStream open = input == null ? openNext() : input;
                if (open == null) {
                    return null;
                }
                int length = readLine(open);
                if (length >= 0) {
                    return new Line(lines, text(length));
                }
                close();
            } catch (EOFException | ZipException damaged) {
                fail("is damaged or cut off: the " + lines + " lines up to here were read");
            } catch (IOException failure) {
                fail("can't be read: " + failure.getMessage());
            }
        }
    }

    private void fail(String problem) {
        problems.add(Terminal.escape((file.equals("-") ? "the standard input" : file) + " " + problem));
        close();
    }

    private @Nullable InputStream openNext() throws IOException {
        if (!files.hasNext()) {
            return null;
        }
        file = files.next();
        InputStream raw = new BufferedInputStream(
                new Counter(file.equals("-") ? standardInput : new FileInputStream(file)), BUFFER);
        raw.mark(2);
        boolean gzip = raw.read() == 0x1F && raw.read() == 0x8B;
        raw.reset();
        input = gzip ? new GZIPInputStream(new Members(raw), BUFFER) : raw;
        return input;
    }

    /** Reads a line that fits, and returns its length; -1 at the end of the file. */
    private int readLine(InputStream from) throws IOException {
        int length = 0;
        while (true) {
            if (at == end) {
                at = 0;
                end = Math.max(from.read(buffer), 0);
            }
            boolean more = at < end;
            byte next = more ? buffer[at++] : (byte) '\n';
            if (next != '\n') {
                if (length < MAX_LINE) {
                    line[length] = next;
                }
                length++;
                continue;
            }
            if (!more && length == 0) {
                return -1;
            }
            lines++;
            if (length <= MAX_LINE) {
                return length > 0 && line[length - 1] == '\r' ? length - 1 : length;
            }
            tooLong++;
            length = 0;
        }
    }

    /** Returns a line as UTF-8; as ISO 8859-1 if it isn't, so that different bytes stay different keys. */
    private String text(int length) {
        for (int i = 0; i < length; i++) {
            if (line[i] < 0) {
                try {
                    return StandardCharsets.UTF_8
                            .newDecoder()
                            .decode(ByteBuffer.wrap(line, 0, length))
                            .toString();
                } catch (CharacterCodingException malformed) {
                    notUtf8++;
                    break;
                }
            }
        }
        return new String(line, 0, length, StandardCharsets.ISO_8859_1);
    }

    /** Returns how many lines were read, with those that were too long. */
    long lines() {
        return lines;
    }

    long tooLong() {
        return tooLong;
    }

    long notUtf8() {
        return notUtf8;
    }

    /** Returns the files that were not read to their end, with the reason. */
    List<String> problems() {
        return problems;
    }

    /** Returns the part of all bytes that were read; -1 if there is no total. */
    double progress() {
        return totalBytes <= 0 ? -1 : Math.min(1, (double) readBytes / totalBytes);
    }

    @Override
    public void close() {
        InputStream closed = input;
        input = null;
        at = 0;
        end = 0;
        try {
            if (closed != null) {
                closed.close();
            }
        } catch (IOException ignored) {
            // everything that could be read was read
        }
    }

    /**
     * Several gzip members in a row, of which the next one may not have arrived yet: {@link GZIPInputStream} takes a stream
     * without available bytes for one that has ended.
     */
    private static final class Members extends FilterInputStream {

        Members(InputStream input) {
            super(input);
        }

        @Override
        public int available() throws IOException {
            mark(1);
            int next = read();
            reset();
            return next < 0 ? 0 : Math.max(super.available(), 1);
        }
    }

    private final class Counter extends FilterInputStream {

        Counter(InputStream input) {
            super(input);
        }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            int read = super.read(bytes, offset, length);
            readBytes += Math.max(read, 0);
            return read;
        }
    }
}
