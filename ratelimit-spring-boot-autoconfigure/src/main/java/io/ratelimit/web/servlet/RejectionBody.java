package io.ratelimit.web.servlet;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * The body of a refusal: a problem (RFC 9457), or a line of text.
 *
 * @param text whether it is the line
 */
record RejectionBody(boolean text, String content) {

    void write(HttpServletRequest request, HttpServletResponse response) throws IOException {
        byte[] bytes = content.getBytes(StandardCharsets.UTF_8);
        response.setContentType(text ? "text/plain;charset=UTF-8" : "application/problem+json");
        response.setContentLength(bytes.length);
        if (!request.getMethod().equals("HEAD")) {
            write(response, bytes);
        }
    }

    /** Whoever was refused may have asked for the writer already, and then the stream can't be had. */
    private void write(HttpServletResponse response, byte[] bytes) throws IOException {
        ServletOutputStream stream;
        try {
            stream = response.getOutputStream();
        } catch (IllegalStateException hasWriter) {
            response.getWriter().write(content);
            return;
        }
        stream.write(bytes);
    }
}
