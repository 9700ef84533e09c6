package io.ratelimit.web.servlet;

import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimitInterruptedException;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;

/**
 * Answers a request within which a call was refused as the filter answers, if the refusal is what became of it. Its
 * filter's tokens are given back; those of calls that were made are not, for their work was done.
 */
public final class RefusedCalls {

    private static final int DEEPEST = 10;

    /** They would describe the refusal: a client that unzips it, or keeps it under an ETag, reads nonsense. */
    private static final List<String> OF_THE_BODY = List.of(
            HttpHeaders.CONTENT_ENCODING,
            HttpHeaders.CONTENT_LANGUAGE,
            HttpHeaders.CONTENT_DISPOSITION,
            HttpHeaders.CONTENT_LOCATION,
            HttpHeaders.CONTENT_RANGE,
            HttpHeaders.ETAG,
            HttpHeaders.LAST_MODIFIED);

    private final RateLimitHeaders headers;
    private final Rejection rejection;

    /**
     * @param headers that tell clients of their limits
     */
    public RefusedCalls(RateLimitHeaders headers, Rejection rejection) {
        this.headers = headers;
        this.rejection = rejection;
    }

    /** Whether the failure was a refusal, and there was still time to say so. */
    boolean answer(HttpServletRequest request, HttpServletResponse response, Throwable failure) throws IOException {
        RuntimeException refused = refusalIn(failure);
        if (refused == null || response.isCommitted()) {
            return false;
        }
        response.resetBuffer();
        response.setLocale(null); // which servers keep beside the header
        OF_THE_BODY.forEach(name -> response.setHeader(name, null));
        headers.remove(response);
        if (refused instanceof RateLimitExceededException exceeded) {
            rejection.write(request, response, exceeded.decision());
        } else {
            rejection.writeInterrupted(request, response);
        }
        return true;
    }

    /** Looks through what wraps any failure. What the application wraps it in is the application's to answer. */
    private static @Nullable RuntimeException refusalIn(Throwable failure) {
        Throwable current = failure;
        for (int i = 0; i < DEEPEST && current != null; i++) {
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
}
