package io.ratelimit.web.servlet;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.web.servlet.rejection.ProblemRejectionHandler;
import io.ratelimit.web.servlet.rejection.RejectionHandler;
import io.swagger.v3.oas.models.OpenAPI;
import io.swagger.v3.oas.models.Operation;
import io.swagger.v3.oas.models.headers.Header;
import io.swagger.v3.oas.models.media.Content;
import io.swagger.v3.oas.models.media.MediaType;
import io.swagger.v3.oas.models.media.Schema;
import io.swagger.v3.oas.models.responses.ApiResponse;
import io.swagger.v3.oas.models.responses.ApiResponses;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.springdoc.core.customizers.GlobalOpenApiCustomizer;
import org.springdoc.core.customizers.GlobalOperationCustomizer;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.http.HttpHeaders;
import org.springframework.web.method.HandlerMethod;

/**
 * Adds the responses to rejected requests to the OpenAPI documents of springdoc, for each operation that a policy limits. A
 * response that the application has described is kept. Methods of other beans that a handler calls are unknown.
 */
record RejectedResponses(
        RateLimitProperties properties,
        ObjectProvider<RequestPolicies> requests,
        ObjectProvider<RateLimitedOperations> calls,
        RejectionHandler handler)
        implements GlobalOperationCustomizer, GlobalOpenApiCustomizer {

    /** Keeps the policies of an annotated handler until the operation's path and method are known. */
    private static final String ANNOTATED = "x-ratelimit-annotated";

    private static final String PROBLEM = "RateLimitProblem";

    @Override
    public Operation customize(Operation operation, HandlerMethod method) {
        calls.ifAvailable(annotated ->
                operation.addExtension(ANNOTATED, annotated.rejecting(method.getMethod(), method.getBeanType())));
        return operation;
    }

    @Override
    public void customise(OpenAPI document) {
        document.getPaths().forEach((path, item) -> item.readOperationsMap()
                .forEach((method, operation) -> addResponses(document, path, method.name(), operation)));
    }

    private void addResponses(OpenAPI document, String path, String method, Operation operation) {
        Set<ThrottlePolicy> policies = new LinkedHashSet<>(requests.getObject().rejecting(method, path));
        policies.addAll(removeAnnotated(operation));
        Map<Integer, Set<String>> byStatus = new TreeMap<>();
        for (ThrottlePolicy policy : policies) {
            if (policy.mode() == Mode.ENFORCE) {
                byStatus.computeIfAbsent(status(policy.name()), absent -> new LinkedHashSet<>())
                        .add("'" + policy.name() + "'");
            }
        }
        if (operation.getResponses() == null) {
            operation.setResponses(new ApiResponses());
        }
        byStatus.forEach((status, names) -> operation
                .getResponses()
                .computeIfAbsent(status.toString(), absent -> response(document, String.join(" or ", names))));
    }

    @SuppressWarnings("unchecked")
    private static List<ThrottlePolicy> removeAnnotated(Operation operation) {
        Map<String, Object> extensions = operation.getExtensions();
        Object annotated = extensions == null ? null : extensions.remove(ANNOTATED);
        return annotated == null ? List.of() : (List<ThrottlePolicy>) annotated;
    }

    private int status(String policy) {
        RateLimitProperties.Policy configured = properties.policies().get(policy);
        return configured == null ? 429 : configured.status();
    }

    /** Describes headers and body only if the application has not replaced them. */
    private ApiResponse response(OpenAPI document, String policies) {
        ApiResponse response = new ApiResponse().description("The request is throttled by " + policies + " policy.");
        if (handler instanceof ProblemRejectionHandler) {
            document.getComponents().addSchemas(PROBLEM, problem());
            response.addHeaderObject(HttpHeaders.RETRY_AFTER, header("Seconds until a retry can be allowed"))
                    .addHeaderObject("X-RetryAfterMs", header("Milliseconds until a retry can be allowed"))
                    .content(new Content()
                            .addMediaType(
                                    org.springframework.http.MediaType.APPLICATION_PROBLEM_JSON_VALUE,
                                    new MediaType().schema(new Schema<>().$ref(PROBLEM))));
        }
        return response;
    }

    private static Header header(String description) {
        return new Header().description(description).schema(schema("integer"));
    }

    private static Schema<?> problem() {
        Schema<?> problem = schema("object");
        Stream.of("type", "title", "detail").forEach(text -> problem.addProperty(text, schema("string")));
        Stream.of("status", "retryAfterMs").forEach(number -> problem.addProperty(number, schema("integer")));
        Schema<?> policies = schema("array");
        policies.setItems(schema("string"));
        return problem.addProperty("violated-policies", policies);
    }

    /** Sets the type as OpenAPI 3.0 and as 3.1 has it. */
    private static Schema<?> schema(String type) {
        Schema<?> schema = new Schema<>();
        schema.setType(type);
        schema.addType(type);
        return schema;
    }
}
