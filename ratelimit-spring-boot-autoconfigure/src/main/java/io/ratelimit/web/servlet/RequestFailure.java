package io.ratelimit.web.servlet;

import jakarta.servlet.ServletException;
import java.util.Set;
import org.springframework.beans.TypeMismatchException;
import org.springframework.http.converter.HttpMessageNotReadableException;
import org.springframework.web.ErrorResponse;
import org.springframework.web.multipart.MultipartException;
import org.springframework.web.util.DisconnectedClientHelper;

/** Recognizes exceptions that the client caused: by closing the connection, or by a request that can't be read. */
final class RequestFailure {

    /** The simple names of the exceptions by which Tomcat and Jetty reject parameters and bodies. */
    private static final Set<String> OF_CONTAINERS =
            Set.of("BadRequestException", "InvalidParameterException", "BadMessageException");

    private RequestFailure() {}

    /** Returns whether the client has closed the connection or reset its stream. */
    static boolean isDisconnect(Throwable failure) {
        return DisconnectedClientHelper.isClientDisconnectedException(failure);
    }

    /** Returns whether the container or Spring MVC couldn't read the request, or found a mistake in it. */
    static boolean isByRequest(Throwable failure) {
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
                || type.getSuperclass() != null && isByContainer(type.getSuperclass());
    }
}
