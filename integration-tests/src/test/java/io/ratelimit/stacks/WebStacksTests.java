package io.ratelimit.stacks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.jayway.jsonpath.JsonPath;
import graphql.ErrorClassification;
import graphql.GraphQLError;
import graphql.GraphqlErrorBuilder;
import graphql.schema.DataFetchingEnvironment;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.migration.Client;
import io.ratelimit.migration.RunningApplication;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.net.http.WebSocketHandshakeException;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.glassfish.jersey.server.ResourceConfig;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.graphql.data.method.annotation.GraphQlExceptionHandler;
import org.springframework.graphql.data.method.annotation.QueryMapping;
import org.springframework.messaging.handler.annotation.MessageExceptionHandler;
import org.springframework.messaging.handler.annotation.MessageMapping;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.messaging.simp.annotation.SendToUser;
import org.springframework.messaging.simp.config.MessageBrokerRegistry;
import org.springframework.stereotype.Controller;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerResponse;
import org.springframework.web.socket.config.annotation.EnableWebSocketMessageBroker;
import org.springframework.web.socket.config.annotation.StompEndpointRegistry;
import org.springframework.web.socket.config.annotation.WebSocketMessageBrokerConfigurer;

/** The web rows of {@code docs/stacks.md}. */
@Tag("slow")
class WebStacksTests {

    /** The application with the policy of the annotated methods alone. */
    private static RunningApplication withCalls;

    @AfterAll
    static void stop() {
        if (withCalls != null) {
            withCalls.close();
        }
    }

    /** Returns the application whose annotated methods alone are limited, with a full bucket. */
    private static RunningApplication withCalls() {
        if (withCalls == null) {
            withCalls = start("");
        }
        withCalls.bean(Throttlers.class).reset("calls");
        return withCalls;
    }

    /** Starts the application with policies beside that of the annotated methods, each call of which it allows once an hour. */
    private static RunningApplication start(String policies) {
        return RunningApplication.start(Application.class, """
                spring:
                  web.resources.static-locations: classpath:/stacks/static/
                  jersey.application-path: /jersey
                  graphql.schema.locations: classpath:/stacks/
                ratelimit.policies:
                  calls: { rate: 1/1h, applies-to: annotated }
                """ + policies.indent(2));
    }

    @Test
    void aStaticResourceIsARequestUnlessExcluded() {
        try (RunningApplication application = start("site: { key: ip, rate: 2/1h }")) {
            assertThat(application.client().statuses(3, "/style.css")).containsExactly(200, 200, 429);
        }
        try (RunningApplication application = start("site: { key: ip, rate: 2/1h, exclude-paths: /*.css }")) {
            assertThat(application.client().statuses(3, "/style.css")).containsOnly(200);
            assertThat(application.client().statuses(3, "/")).containsExactly(404, 404, 429);
        }
    }

    @Test
    void aRouterFunctionIsAnEndpointAndItsDeniedCallA429() {
        try (RunningApplication application = start("per-endpoint: { key: endpoint, rate: 2/1h }")) {
            Client client = application.client();

            assertThat(client.get("/f/items/1").statusCode()).isEqualTo(200);
            assertThat(client.get("/f/items/2").statusCode()).isEqualTo(200);
            assertThat(violated(client.get("/f/items/3"))).isEqualTo("per-endpoint");
            assertThat(client.get("/f/call").statusCode()).isEqualTo(200);
            assertThat(violated(client.get("/f/call"))).isEqualTo("calls");
        }
    }

    @Test
    void theResourcesOfJerseyShareTheKeyOfRequestsWithoutAnEndpoint() {
        try (RunningApplication application = start("""
                orders:       { key: ip, rate: 2/1h, paths: /jersey/orders }
                per-endpoint: { key: endpoint, rate: 3/1h }
                """)) {
            Client client = application.client();

            assertThat(client.get("/jersey/orders").statusCode()).isEqualTo(200);
            assertThat(client.get("/jersey/orders").statusCode()).isEqualTo(200);
            assertThat(violated(client.get("/jersey/orders"))).isEqualTo("orders");
            assertThat(client.get("/jersey/items").statusCode()).isEqualTo(200);
            assertThat(violated(client.get("/jersey/items"))).isEqualTo("per-endpoint");
        }
    }

    /** Jersey's own exception mapper answers before the exception reaches a filter. */
    @Test
    void aDeniedCallInAJerseyResourceIsA500() {
        RunningApplication application = withCalls();
        assertThat(application.client().get("/jersey/call").body()).isEqualTo("called");
        assertThat(application.client().get("/jersey/call").statusCode()).isEqualTo(500);
    }

    private static String violated(HttpResponse<String> rejection) {
        assertThat(rejection.statusCode()).isEqualTo(429);
        return JsonPath.read(rejection.body(), "$['violated-policies'][0]");
    }

    @Test
    void aGraphQlRequestIsAPostToOneEndpoint() {
        try (RunningApplication application = start("per-endpoint: { key: endpoint, rate: 1/1h }")) {
            assertThat(graphQl(application, "{ orders }").statusCode()).isEqualTo(200);
            assertThat(violated(graphQl(application, "{ handled }"))).isEqualTo("per-endpoint");
        }
    }

    @Test
    void aDeniedResolverIsAnErrorOfItsField() {
        RunningApplication application = withCalls();
        assertThat(graphQl(application, "{ orders }").body()).isEqualTo("{\"data\":{\"orders\":\"all\"}}");

        HttpResponse<String> plain = graphQl(application, "{ orders }");
        assertThat(plain.statusCode()).isEqualTo(200);
        assertThat(plain.body()).contains("\"orders\":null", "\"classification\":\"INTERNAL_ERROR\"");

        HttpResponse<String> handled = graphQl(application, "{ handled }");
        assertThat(handled.statusCode()).isEqualTo(200);
        assertThat(handled.body())
                .contains("\"handled\":null", "\"retryAfterMs\":3600000", "\"classification\":\"TOO_MANY_REQUESTS\"");
    }

    private static HttpResponse<String> graphQl(RunningApplication application, String query) {
        Client client = application.client();
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + client.port() + "/graphql"))
                .header("Content-Type", "application/json")
                .POST(BodyPublishers.ofString("{\"query\":\"" + query + "\"}"))
                .build();
        return client.http().sendAsync(request, BodyHandlers.ofString()).join();
    }

    @Test
    void aHandshakeIsARequestAndItsMessagesAreNot() throws InterruptedException {
        try (RunningApplication application = start("site: { key: ip, rate: 1/1h }")) {
            Stomp stomp = Stomp.connect(application.client());
            for (int i = 0; i < 3; i++) {
                stomp.send("/app/free");
                assertThat(stomp.next()).contains("destination:/topic/answers", "free");
            }
            assertThatThrownBy(() -> Stomp.connect(application.client()))
                    .isInstanceOf(CompletionException.class)
                    .cause()
                    .isInstanceOfSatisfying(WebSocketHandshakeException.class, failure -> assertThat(
                                    failure.getResponse().statusCode())
                            .isEqualTo(429));
        }
    }

    @Test
    void aMessageIsLimitedByTheAnnotation() throws InterruptedException {
        RunningApplication application = withCalls();
        Stomp stomp = Stomp.connect(application.client());
        stomp.send("/app/chat");
        assertThat(stomp.next()).contains("destination:/topic/answers", "chat");
        stomp.send("/app/chat");
        assertThat(stomp.next()).contains("destination:/user/queue/errors", "retry after PT1H");
    }

    /** A connection with the two subscriptions of the tests. */
    private record Stomp(WebSocket socket, BlockingQueue<String> frames) {

        static Stomp connect(Client client) throws InterruptedException {
            BlockingQueue<String> frames = new LinkedBlockingQueue<>();
            WebSocket socket = client.http()
                    .newWebSocketBuilder()
                    .buildAsync(URI.create("ws://127.0.0.1:" + client.port() + "/ws"), new WebSocket.Listener() {
                        @Override
                        public CompletionStage<?> onText(WebSocket socket, CharSequence text, boolean last) {
                            frames.add(text.toString());
                            socket.request(1);
                            return CompletableFuture.completedStage(null);
                        }
                    })
                    .join();
            Stomp stomp = new Stomp(socket, frames);
            stomp.frame("CONNECT\naccept-version:1.2\nhost:127.0.0.1\n\n");
            assertThat(stomp.next()).startsWith("CONNECTED");
            stomp.subscribe("/topic/answers");
            stomp.subscribe("/user/queue/errors");
            return stomp;
        }

        private void subscribe(String destination) {
            frame("SUBSCRIBE\nid:%1$s\ndestination:%1$s\n\n".formatted(destination));
        }

        void send(String destination) {
            frame("SEND\ndestination:" + destination + "\n\n" + destination);
        }

        private void frame(String text) {
            socket.sendText(text + "\0", true).join();
        }

        String next() throws InterruptedException {
            return frames.poll(1, TimeUnit.MINUTES);
        }
    }

    @SpringBootConfiguration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Calls.class, Resource.class, Orders.class, HandledOrders.class, Chat.class, Broker.class})
    static class Application {

        @Bean
        ManualTimeSource time() {
            return new ManualTimeSource();
        }

        @Bean
        RouterFunction<ServerResponse> routes(Calls calls) {
            return RouterFunctions.route()
                    .GET("/f/items/{id}", request -> ServerResponse.ok().build())
                    .GET("/f/call", request -> ServerResponse.ok().body(calls.call()))
                    .build();
        }

        @Bean
        ResourceConfig jersey(Resource resource) {
            return new ResourceConfig().register(resource);
        }
    }

    static class Calls {

        @RateLimited("calls")
        public String call() {
            return "called";
        }
    }

    @Path("/")
    public static class Resource {

        @GET
        @Path("{name: orders|items}")
        public String orders() {
            return "all";
        }

        @GET
        @Path("call")
        @RateLimited("calls")
        public String call() {
            return "called";
        }
    }

    @Controller
    static class Orders {

        @QueryMapping
        @RateLimited("calls")
        public String orders() {
            return "all";
        }
    }

    @Controller
    static class HandledOrders {

        @QueryMapping
        @RateLimited("calls")
        public String handled() {
            return "all";
        }

        @GraphQlExceptionHandler
        GraphQLError denied(RateLimitExceededException denied, DataFetchingEnvironment environment) {
            return GraphqlErrorBuilder.newError(environment)
                    .errorType(ErrorClassification.errorClassification("TOO_MANY_REQUESTS"))
                    .message("Retry later")
                    .extensions(Map.of("retryAfterMs", denied.retryAfter().toMillis()))
                    .build();
        }
    }

    @Controller
    static class Chat {

        @MessageMapping("/free")
        @SendTo("/topic/answers")
        String free(String text) {
            return text;
        }

        @MessageMapping("/chat")
        @SendTo("/topic/answers")
        @RateLimited("calls")
        public String chat(String text) {
            return text;
        }

        @MessageExceptionHandler
        @SendToUser("/queue/errors")
        String denied(RateLimitExceededException denied) {
            return "retry after " + denied.retryAfter();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableWebSocketMessageBroker
    static class Broker implements WebSocketMessageBrokerConfigurer {

        @Override
        public void registerStompEndpoints(StompEndpointRegistry registry) {
            registry.addEndpoint("/ws");
            registry.setPreserveReceiveOrder(true);
        }

        @Override
        public void configureMessageBroker(MessageBrokerRegistry registry) {
            registry.enableSimpleBroker("/topic", "/queue");
            registry.setApplicationDestinationPrefixes("/app");
        }
    }
}
