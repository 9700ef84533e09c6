package io.ratelimit.benchmarks;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.lang.reflect.Proxy;
import org.jspecify.annotations.Nullable;

/** A response that keeps what is set, in arrays and fields. What the filter doesn't call, throws. */
final class StubResponse extends HttpServletResponseWrapper {

    private final String[] headers = new String[32];
    private final Body body = new Body();
    private int headerCount;
    private int status = SC_OK;
    private @Nullable String contentType;
    private int contentLength;

    StubResponse() {
        super((HttpServletResponse) Proxy.newProxyInstance(
                StubResponse.class.getClassLoader(),
                new Class<?>[] {HttpServletResponse.class},
                (proxy, method, args) -> {
                    throw new UnsupportedOperationException(method.toString());
                }));
    }

    /** Makes it the next response, as containers do. */
    void recycle() {
        headerCount = 0;
        status = SC_OK;
        body.length = 0;
    }

    @Override
    public void setHeader(String name, String value) {
        headers[headerCount++] = name;
        headers[headerCount++] = value;
    }

    @Override
    public void addHeader(String name, String value) {
        setHeader(name, value);
    }

    @Override
    public void setStatus(int status) {
        this.status = status;
    }

    @Override
    public int getStatus() {
        return status;
    }

    @Override
    public void setContentType(@Nullable String type) {
        contentType = type;
    }

    @Override
    public @Nullable String getContentType() {
        return contentType;
    }

    @Override
    public void setContentLength(int length) {
        contentLength = length;
    }

    int contentLength() {
        return contentLength;
    }

    @Override
    public ServletOutputStream getOutputStream() {
        return body;
    }

    private static final class Body extends ServletOutputStream {

        private final byte[] bytes = new byte[8192];
        private int length;

        @Override
        public void write(int b) {
            bytes[length++] = (byte) b;
        }

        @Override
        public void write(byte[] source, int offset, int count) {
            System.arraycopy(source, offset, bytes, length, count);
            length += count;
        }

        @Override
        public boolean isReady() {
            return true;
        }

        @Override
        public void setWriteListener(WriteListener listener) {
            throw new UnsupportedOperationException();
        }
    }
}
