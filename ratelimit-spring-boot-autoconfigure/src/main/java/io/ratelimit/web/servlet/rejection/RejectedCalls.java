package io.ratelimit.web.servlet.rejection;

import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimitInterruptedException;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletResponse;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;

/** Calls of annotated methods that were denied or interrupted within a request, and whose exception ended the request. */
final class RejectedCalls {

    private static final int MAX_DEPTH = 10;

    /** They describe the replaced body: a client that unzips the rejection, or caches it under an ETag, reads nonsense. */
    private static final List<String> BODY_HEADERS = List.of(
            HttpHeaders.CONTENT_ENCODING,
            HttpHeaders.CONTENT_LANGUAGE,
            HttpHeaders.CONTENT_DISPOSITION,
            HttpHeaders.CONTENT_LOCATION,
            HttpHeaders.CONTENT_RANGE,
            HttpHeaders.ETAG,
            HttpHeaders.LAST_MODIFIED);

    private RejectedCalls() {}

    /**
     * Returns the exception of the call, or null if something else failed. Looks through exceptions that wrap any failure,
     * but not through the application's own: the application answers those.
     */
    static @Nullable RuntimeException find(Throwable failure) {
        Throwable current = failure;
        for (int i = 0; i < MAX_DEPTH && current != null; i++) {
            if (current instanceof RateLimitExceededException || current instanceof RateLimitInterruptedException) {
                return (RuntimeException) current;
            }
            current = isWrapper(current) ? current.getCause() : null;
        }
        return null;
    }

    private static boolean isWrapper(Throwable failure) {
        return failure instanceof CompletionException
                || failure instanceof ExecutionException
                || failure instanceof ServletException
                || failure instanceof UndeclaredThrowableException
                || failure instanceof InvocationTargetException;
    }

    /** Removes the body that the application had begun, and the headers that describe it. */
    static void resetBody(HttpServletResponse response) {
        response.resetBuffer();
        response.setLocale(null); // servers keep it beside the header
        BODY_HEADERS.forEach(name -> response.setHeader(name, null));
    }
}
