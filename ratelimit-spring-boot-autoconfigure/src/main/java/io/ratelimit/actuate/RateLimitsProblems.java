package io.ratelimit.actuate;

import io.ratelimit.BackendException;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.EndpointId;
import org.springframework.boot.actuate.endpoint.InvocationContext;
import org.springframework.boot.actuate.endpoint.OperationType;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.invoke.OperationInvoker;
import org.springframework.boot.actuate.endpoint.invoke.OperationInvokerAdvisor;
import org.springframework.boot.actuate.endpoint.invoke.OperationParameter;
import org.springframework.boot.actuate.endpoint.invoke.OperationParameters;
import org.springframework.web.context.request.RequestAttributes;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.support.ServletUriComponentsBuilder;

/**
 * Has {@link RateLimitsEndpoint} refuse requests with a reason, also those with fields that it doesn't know: a misspelt
 * one must not pass for none.
 */
public final class RateLimitsProblems implements OperationInvokerAdvisor {

    private static final EndpointId ID = EndpointId.of(RateLimitsEndpoint.ID);
    private static final String POLICY = "policy";

    @Override
    public OperationInvoker apply(
            EndpointId id, OperationType type, OperationParameters parameters, OperationInvoker invoker) {
        if (!id.equals(ID)) {
            return invoker;
        }
        Set<String> known = parameters.stream()
                .filter(parameter -> parameter.getType() != SecurityContext.class)
                .map(OperationParameter::getName)
                .collect(Collectors.toCollection(TreeSet::new));
        return context -> invoke(type, known, context, invoker);
    }

    private static @Nullable Object invoke(
            OperationType type, Set<String> known, InvocationContext context, OperationInvoker invoker) {
        try {
            check(type, known, context.getArguments());
            return invoker.invoke(context);
        } catch (UnknownLimitException unknown) {
            return Problem.notFound(unknown);
        } catch (IllegalArgumentException refused) {
            return Problem.badRequest(refused);
        } catch (BackendException failed) {
            return Problem.unavailable(failed);
        }
    }

    private static void check(OperationType type, Set<String> known, Map<String, Object> arguments) {
        Set<String> said = new TreeSet<>(known);
        said.remove(POLICY);
        boolean inBody = type == OperationType.WRITE;
        if (!known.containsAll(arguments.keySet())) {
            throw new IllegalArgumentException(
                    (inBody ? "unknown field in the body" : "unknown parameter") + allowed(said));
        }
        RequestAttributes request = RequestContextHolder.getRequestAttributes();
        if (request != null) {
            checkPlaces(inBody ? Set.of() : said, inBody, request, arguments);
        }
    }

    private static String allowed(Set<String> names) {
        return names.isEmpty() ? ": there is none" : "; there are: " + String.join(", ", names);
    }

    /**
     * What is meant for the body must not come in the query: a page of another site can have a browser send that. And the
     * policy is the one in the path, which may be what rules of access go by.
     */
    private static void checkPlaces(
            Set<String> inQuery, boolean inBody, RequestAttributes request, Map<String, Object> arguments) {
        Set<String> query = ServletUriComponentsBuilder.fromCurrentRequest()
                .build()
                .getQueryParams()
                .keySet();
        if (!inQuery.containsAll(query)) {
            throw new IllegalArgumentException(
                    inBody ? "say what is to change in the body, as JSON" : "unknown parameter" + allowed(inQuery));
        }
        Object path =
                request.getAttribute(HandlerMapping.URI_TEMPLATE_VARIABLES_ATTRIBUTE, RequestAttributes.SCOPE_REQUEST);
        if (path instanceof Map<?, ?> variables && !Objects.equals(variables.get(POLICY), arguments.get(POLICY))) {
            throw new IllegalArgumentException("the policy is the one in the path: say no other");
        }
    }
}
