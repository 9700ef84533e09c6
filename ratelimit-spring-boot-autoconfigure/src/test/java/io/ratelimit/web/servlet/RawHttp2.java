package io.ratelimit.web.servlet;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** One connection of HTTP/2 over a plain socket, without TLS and without a look at the responses. */
final class RawHttp2 implements AutoCloseable {

    private static final int HEADERS = 1;
    private static final int RST_STREAM = 3;
    private static final int SETTINGS = 4;
    private static final int ACK = 1;
    private static final int END_STREAM_AND_HEADERS = 5;
    private static final int CANCEL = 8;

    /** The places of names in HPACK's static table. */
    private static final int AUTHORITY = 1;

    private static final int METHOD = 2;
    private static final int PATH = 4;
    private static final int SCHEME = 6;

    private final Socket socket;
    private int lastStream = -1;

    RawHttp2(int port) {
        try {
            socket = new Socket(InetAddress.getByName("127.0.0.1"), port);
            socket.setTcpNoDelay(true);
            socket.getOutputStream().write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
        write(SETTINGS, 0, 0);
        write(SETTINGS, ACK, 0);
    }

    /** Sends a request without a body, and returns its stream. */
    int request(String method, String target, String... headers) {
        ByteArrayOutputStream block = new ByteArrayOutputStream();
        block.write(METHOD);
        text(block, method);
        block.write(SCHEME);
        text(block, "http");
        block.write(AUTHORITY);
        text(block, "localhost");
        block.write(PATH);
        text(block, target);
        for (String header : headers) {
            int colon = header.indexOf(':');
            block.write(0);
            text(block, header.substring(0, colon).toLowerCase(Locale.ROOT));
            text(block, header.substring(colon + 1).strip());
        }
        lastStream += 2;
        write(HEADERS, END_STREAM_AND_HEADERS, lastStream, block.toByteArray());
        return lastStream;
    }

    /** Gives up a stream. */
    void reset(int stream) {
        write(RST_STREAM, 0, stream, (byte) 0, (byte) 0, (byte) 0, (byte) CANCEL);
    }

    /** Writes a text of less than 127 bytes that is not compressed. */
    private static void text(ByteArrayOutputStream block, String text) {
        block.write(text.length());
        block.writeBytes(text.getBytes(StandardCharsets.ISO_8859_1));
    }

    private void write(int type, int flags, int stream, byte... payload) {
        byte[] frame = ByteBuffer.allocate(9 + payload.length)
                .put((byte) 0)
                .putShort((short) payload.length)
                .put((byte) type)
                .put((byte) flags)
                .putInt(stream)
                .put(payload)
                .array();
        try {
            socket.getOutputStream().write(frame);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    @Override
    public void close() {
        try {
            socket.close();
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }
}
