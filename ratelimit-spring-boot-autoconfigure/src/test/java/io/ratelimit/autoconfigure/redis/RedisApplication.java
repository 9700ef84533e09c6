package io.ratelimit.autoconfigure.redis;

import static org.awaitility.Awaitility.await;

import io.ratelimit.Backend;
import io.ratelimit.Backend.Condition;
import io.ratelimit.BucketSpec;
import io.ratelimit.autoconfigure.WithoutSecurity;
import io.ratelimit.key.LimitResolver;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.function.UnaryOperator;
import org.springframework.boot.Banner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** An application on a real Tomcat and a real Redis, configured by the text of its application.yml. */
final class RedisApplication implements AutoCloseable {

    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private final ConfigurableApplicationContext context;

    private RedisApplication(ConfigurableApplicationContext context) {
        this.context = context;
    }

    static RedisApplication start(int redisPort, String yaml, Class<?>... sources) {
        String where = "spring:\n  application.name: shop\n  data.redis: { host: 127.0.0.1, port: " + redisPort
                + " }\n  autoconfigure.exclude: " + WithoutSecurity.EXCLUDED + "\n";
        return new RedisApplication(new SpringApplicationBuilder(Api.class)
                .sources(sources)
                .bannerMode(Banner.Mode.OFF)
                .properties("server.port=0", "server.tomcat.threads.max=60")
                .initializers(starting -> {
                    for (String text : List.of(where, yaml)) {
                        try {
                            starting.getEnvironment()
                                    .getPropertySources()
                                    .addFirst(new YamlPropertySourceLoader()
                                            .load(
                                                    "yaml " + text.hashCode(),
                                                    new ByteArrayResource(text.getBytes(StandardCharsets.UTF_8)))
                                            .get(0));
                        } catch (IOException failed) {
                            throw new UncheckedIOException(failed);
                        }
                    }
                })
                .run());
    }

    HttpResponse<String> get(String path) {
        return request("GET", path);
    }

    HttpResponse<String> request(String method, String path) {
        return send(path, request -> request.method(method, BodyPublishers.noBody()));
    }

    HttpResponse<String> post(String path, String json) {
        return send(path, request -> request.header("Content-Type", "application/json")
                .POST(BodyPublishers.ofString(json)));
    }

    private HttpResponse<String> send(String path, UnaryOperator<HttpRequest.Builder> request) {
        try {
            return HTTP.send(
                    request.apply(HttpRequest.newBuilder(URI.create("http://127.0.0.1:"
                                    + context.getEnvironment().getProperty("local.server.port") + path)))
                            .timeout(Duration.ofSeconds(30))
                            .build(),
                    BodyHandlers.ofString());
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    int status(String path) {
        return get(path).statusCode();
    }

    Condition condition() {
        return bean(Backend.class).state().condition();
    }

    /** Waits until Redis is used. The start of an application on a busy machine may give up before. */
    void awaitUp() {
        await().until(() -> {
            bean(Backend.class).probe();
            return condition() == Condition.UP;
        });
    }

    <T> T bean(Class<T> type) {
        return context.getBean(type);
    }

    void stop() {
        context.stop();
    }

    void startAgain() {
        context.start();
    }

    @Override
    public void close() {
        context.close();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Answers.class)
    static class Api {

        /** The limit that a request names. */
        @Bean
        LimitResolver plans() {
            return request -> request.query("plan") == null ? null : BucketSpec.of(request.query("plan"));
        }
    }

    @RestController
    static class Answers {

        @GetMapping("/{name}")
        String hello(@PathVariable String name) {
            return name;
        }
    }
}
