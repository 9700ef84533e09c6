package io.ratelimit.actuate;

import io.ratelimit.BackendException;
import io.ratelimit.actuate.RateLimitsProblems.Problem;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.endpoint.EndpointId;
import org.springframework.boot.actuate.endpoint.InvocationContext;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;
import org.springframework.boot.actuate.endpoint.OperationType;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.invoke.OperationInvoker;
import org.springframework.boot.actuate.endpoint.invoke.OperationInvokerAdvisor;
import org.springframework.boot.actuate.endpoint.invoke.OperationParameter;
import org.springframework.boot.actuate.endpoint.invoke.OperationParameters;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.core.Ordered;
import org.springframework.http.HttpMethod;
import org.springframework.http.converter.HttpMessageNotReadableException;
import org.springframework.util.MimeType;
import org.springframework.web.HttpMediaTypeNotSupportedException;
import org.springframework.web.HttpRequestMethodNotSupportedException;
import org.springframework.web.context.request.RequestAttributes;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.ModelAndView;
import org.springframework.web.servlet.support.ServletUriComponentsBuilder;

/**
 * Answers invalid requests to {@link RateLimitsEndpoint} with problem documents. Requests with unknown fields are rejected
 * too: a misspelt field must not be taken for an absent one.
 */
final class RateLimitsProblems implements OperationInvokerAdvisor {

    static final EndpointId ID = EndpointId.of(RateLimitsEndpoint.ID);
    static final MimeType PROBLEM_JSON = new MimeType("application", "problem+json");
    static final String DEMAND = "demand";
    static final String CHANGE = "change";
    private static final String FOR = "for";
    private static final String TARGET = "target";
    private static final String POLICY = "policy";
    private static final String VIEW = "view";

    @Override
    public OperationInvoker apply(
            EndpointId id, OperationType type, OperationParameters parameters, OperationInvoker invoker) {
        if (!id.equals(ID)) {
            return invoker;
        }
        Set<String> names = parameters.stream()
                .filter(parameter -> parameter.getType() != SecurityContext.class)
                .map(OperationParameter::getName)
                .map(name -> name.equals(TARGET) ? FOR : name)
                .collect(Collectors.toCollection(TreeSet::new));
        return context -> invoke(type, names, context, invoker);
    }

    private static @Nullable Object invoke(
            OperationType type, Set<String> names, InvocationContext context, OperationInvoker invoker) {
        try {
            checkNames(type, names, context.getArguments());
            return invoker.invoke(withoutKeyword(context));
        } catch (NotFoundException notFound) {
            return problem("Not Found", WebEndpointResponse.STATUS_NOT_FOUND, notFound);
        } catch (IllegalArgumentException invalid) {
            return problem("Bad Request", WebEndpointResponse.STATUS_BAD_REQUEST, invalid);
        } catch (BackendException failure) {
            return problem("Service Unavailable", WebEndpointResponse.STATUS_SERVICE_UNAVAILABLE, failure);
        }
    }

    /** Passes the field {@code for} under another name, since no parameter in Java can have this one. */
    private static InvocationContext withoutKeyword(InvocationContext context) {
        if (!context.getArguments().containsKey(FOR)) {
            return context;
        }
        Map<String, Object> arguments = new HashMap<>(context.getArguments());
        arguments.put(TARGET, arguments.remove(FOR));
        return new InvocationContext(Objects.requireNonNull(context.resolveArgument(SecurityContext.class)), arguments);
    }

    private static void checkNames(OperationType type, Set<String> names, Map<String, Object> arguments) {
        Set<String> allowed = new TreeSet<>(names);
        allowed.remove(POLICY);
        allowed.remove(VIEW);
        boolean inBody = type == OperationType.WRITE;
        if (!names.containsAll(arguments.keySet())) {
            throw new IllegalArgumentException(
                    (inBody ? "unknown field in the body" : "unknown parameter") + listed(allowed));
        }
        RequestAttributes request = RequestContextHolder.getRequestAttributes();
        if (request != null) {
            checkSources(inBody ? Set.of() : allowed, inBody, request, arguments);
        }
    }

    private static String listed(Set<String> allowed) {
        return allowed.isEmpty() ? "; none is allowed" : "; allowed are: " + String.join(", ", allowed);
    }

    /**
     * Rejects a query that contains fields of the body, since a page of another site can make a browser send a query. The
     * policy must be that of the path, since access rules may depend on the path.
     */
    private static void checkSources(
            Set<String> allowedInQuery, boolean inBody, RequestAttributes request, Map<String, Object> arguments) {
        Set<String> query = ServletUriComponentsBuilder.fromCurrentRequest()
                .build()
                .getQueryParams()
                .keySet();
        if (!allowedInQuery.containsAll(query)) {
            throw new IllegalArgumentException(
                    inBody
                            ? "the change must be in the body, as JSON, not in the query"
                            : "unknown parameter" + listed(allowedInQuery));
        }
        Object path =
                request.getAttribute(HandlerMapping.URI_TEMPLATE_VARIABLES_ATTRIBUTE, RequestAttributes.SCOPE_REQUEST);
        if (path instanceof Map<?, ?> variables && !Objects.equals(variables.get(POLICY), arguments.get(POLICY))) {
            throw new IllegalArgumentException("the policy is the one in the path; the body must not name another");
        }
    }

    private static WebEndpointResponse<Problem> problem(String title, int status, Exception cause) {
        Problem problem = new Problem(title, status, Objects.requireNonNullElse(cause.getMessage(), title));
        return new WebEndpointResponse<>(problem, status, PROBLEM_JSON);
    }

    /**
     * The problem document of RFC 9457.
     *
     * @param detail the reason, without the texts of keys
     */
    record Problem(String title, int status, String detail) implements OperationResponseBody {

        /** Returns the document for a text that needs no escape. */
        byte[] json() {
            return ("{\"title\":\"" + title + "\",\"status\":" + status + ",\"detail\":\"" + detail + "\"}")
                    .getBytes(StandardCharsets.UTF_8);
        }
    }

    /** Thrown if a request names a policy or a tier that doesn't exist. */
    static final class NotFoundException extends RuntimeException {

        private static final long serialVersionUID = 1;

        NotFoundException(String message) {
            super(message);
        }
    }

    /**
     * Answers changes that Spring MVC rejects before the endpoint with the reason: one where limits are read-only, since such an
     * endpoint has no operation for changes, and one whose body can't be read.
     *
     * @param endpoints called with the first rejected change, since it needs all endpoints
     */
    record SpringMvcProblems(ObjectProvider<PathMappedEndpoints> endpoints)
            implements HandlerExceptionResolver, Ordered {

        private static final Problem READ_ONLY = new Problem(
                "Method Not Allowed",
                HttpServletResponse.SC_METHOD_NOT_ALLOWED,
                "limits are read-only here; to change them, set 'management.endpoint.ratelimits.access: unrestricted'");
        private static final Problem UNREADABLE = new Problem(
                "Bad Request",
                HttpServletResponse.SC_BAD_REQUEST,
                "the body must be a JSON object with texts and numbers, such as"
                        + " {\\\"rate\\\": \\\"100/1s\\\", \\\"capacity\\\": 200}");
        private static final Problem NO_JSON = new Problem(
                "Unsupported Media Type",
                HttpServletResponse.SC_UNSUPPORTED_MEDIA_TYPE,
                "a change must be sent with 'Content-Type: application/json'");

        @Override
        public int getOrder() {
            return HIGHEST_PRECEDENCE;
        }

        @Override
        public @Nullable ModelAndView resolveException(
                HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
            Problem rejection = isOfLimit(request) ? rejection(request, failure) : null;
            if (rejection == null) {
                return null;
            }
            byte[] json = rejection.json();
            try {
                response.setStatus(rejection.status());
                if (rejection == READ_ONLY) {
                    response.setHeader("Allow", "GET");
                }
                response.setContentType(RateLimitsProblems.PROBLEM_JSON.toString());
                response.setContentLength(json.length);
                response.getOutputStream().write(json);
            } catch (IOException disconnected) {
                throw new UncheckedIOException(disconnected);
            }
            return new ModelAndView();
        }

        private boolean isOfLimit(HttpServletRequest request) {
            String path = endpoints.getObject().getPath(RateLimitsProblems.ID);
            return path != null && request.getRequestURI().contains(path + "/");
        }

        private static @Nullable Problem rejection(HttpServletRequest request, Exception failure) {
            if (failure instanceof HttpMessageNotReadableException) {
                return UNREADABLE;
            }
            if (failure instanceof HttpMediaTypeNotSupportedException) {
                return NO_JSON;
            }
            return failure instanceof HttpRequestMethodNotSupportedException notSupported
                            && isChangeOfReadOnlyLimit(request, notSupported)
                    ? READ_ONLY
                    : null;
        }

        private static boolean isChangeOfReadOnlyLimit(
                HttpServletRequest request, HttpRequestMethodNotSupportedException notSupported) {
            boolean change =
                    request.getMethod().equals("POST") || request.getMethod().equals("DELETE");
            return change
                    && notSupported.getSupportedHttpMethods() != null
                    && !notSupported.getSupportedHttpMethods().contains(HttpMethod.DELETE);
        }
    }
}
