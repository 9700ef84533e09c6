package io.ratelimit.web.servlet;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.TypeMismatchException;
import org.springframework.http.converter.HttpMessageNotReadableException;
import org.springframework.web.ErrorResponse;
import org.springframework.web.multipart.MultipartException;
import org.springframework.web.util.DisconnectedClientHelper;

/** The course of a request behind the filters, as far as it decides which tokens come back. Used by one thread at a time. */
final class RequestCourse {

    /** The course of a request of which nothing was noted. Not changed. */
    static final RequestCourse UNKNOWN = new RequestCourse();

    /** The simple names of the exceptions by which Tomcat and Jetty reject parameters and bodies. */
    private static final Set<String> OF_CONTAINERS = Set.of(
            "BadRequestException",
            "InvalidParameterException",
            "FileUploadException",
            "InvalidFileNameException",
            "BadMessageException");

    private boolean authenticated;
    private boolean authenticationFailed;
    private boolean handledLater;
    private boolean timedOut;
    private boolean broken;
    private boolean failedByRequest;

    /** Records that the request got past authentication with a principal. */
    void noteAuthenticated() {
        authenticated = true;
    }

    /**
     * Records that credentials were wrong. The request then counts as not authenticated, even with an authenticated
     * session: the session's owner could otherwise try passwords of other accounts at no cost.
     */
    void noteFailedAuthentication() {
        authenticationFailed = true;
    }

    /**
     * Records the end of an asynchronous dispatch: the handler had a result, and its response has been written. The status
     * of a request that ends without one is that of no handler.
     */
    void noteHandledLater() {
        handledLater = true;
    }

    void noteTimeout() {
        timedOut = true;
        broken = true;
    }

    /** Records an error of asynchronous work. Unless the handler's result has failed, it is one of the connection. */
    void noteError(@Nullable Throwable failure) {
        broken |= !handledLater || failure == null || failure instanceof IOException;
    }

    /** Records an exception that ended the request or its handler. */
    void noteFailure(Throwable failure) {
        broken |= DisconnectedClientHelper.isClientDisconnectedException(failure);
        failedByRequest |= isByRequest(failure);
    }

    boolean isHandledLater() {
        return handledLater;
    }

    boolean isTimedOut() {
        return timedOut;
    }

    /** Returns whether the request broke off: its client may have ended it before its status was known. */
    boolean isBroken() {
        return broken;
    }

    /** Returns whether a policy refunds the request. An error of the server that the client caused is no status of the server. */
    boolean isRefundedBy(RequestPolicy policy, int status) {
        boolean byClient = failedByRequest && status >= HttpServletResponse.SC_INTERNAL_SERVER_ERROR;
        return policy.refunds(byClient ? 0 : status, authenticated && !authenticationFailed);
    }

    /** Returns whether the container or Spring MVC couldn't read the request, or found a mistake in it. */
    private static boolean isByRequest(Throwable failure) {
        Throwable cause = failure instanceof ServletException wrapper && wrapper.getRootCause() != null
                ? wrapper.getRootCause()
                : failure;
        return cause instanceof MultipartException
                || cause instanceof HttpMessageNotReadableException
                || cause instanceof TypeMismatchException
                || cause instanceof ErrorResponse response
                        && response.getStatusCode().is4xxClientError()
                || isByContainer(cause.getClass());
    }

    private static boolean isByContainer(Class<?> type) {
        return OF_CONTAINERS.contains(type.getSimpleName())
                        && type.getName().matches("org\\.(apache|eclipse\\.jetty)\\..+")
                || type.getSuperclass() != null && isByContainer(type.getSuperclass());
    }
}
