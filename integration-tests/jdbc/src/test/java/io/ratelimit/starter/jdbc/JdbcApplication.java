package io.ratelimit.starter.jdbc;

import io.ratelimit.Backend;
import io.ratelimit.Backend.Condition;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.springframework.boot.Banner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** An application on a real Tomcat, configured by the text of its application.yml. */
final class JdbcApplication implements AutoCloseable {

    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final String COMMON = """
            spring: { application.name: shop, flyway.enabled: false }
            server: { port: 0, tomcat.threads.max: 60 }
            management.endpoints.web.exposure.include: "*"
            management.endpoint.health.show-details: always
            management.endpoint.ratelimits: { access: unrestricted, roles: "" }
            """;

    private final ConfigurableApplicationContext context;

    private JdbcApplication(ConfigurableApplicationContext context) {
        this.context = context;
    }

    static JdbcApplication start(String url, String yaml, Class<?>... sources) {
        String where = "spring.datasource.url: " + url + "\n";
        return new JdbcApplication(new SpringApplicationBuilder(Api.class)
                .sources(sources)
                .bannerMode(Banner.Mode.OFF)
                .initializers(starting -> {
                    for (String text : List.of(COMMON, where, yaml)) {
                        try {
                            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
                            starting.getEnvironment()
                                    .getPropertySources()
                                    .addFirst(new YamlPropertySourceLoader()
                                            .load("yaml " + text.hashCode(), new ByteArrayResource(bytes))
                                            .get(0));
                        } catch (IOException failed) {
                            throw new UncheckedIOException(failed);
                        }
                    }
                })
                .run());
    }

    HttpResponse<String> get(String path) {
        return send(path, HttpRequest.newBuilder().GET());
    }

    HttpResponse<String> post(String path, String json) {
        return send(
                path,
                HttpRequest.newBuilder()
                        .header("Content-Type", "application/json")
                        .POST(BodyPublishers.ofString(json)));
    }

    HttpResponse<String> delete(String path) {
        return send(path, HttpRequest.newBuilder().DELETE());
    }

    private HttpResponse<String> send(String path, HttpRequest.Builder request) {
        try {
            return HTTP.send(
                    request.uri(URI.create("http://127.0.0.1:" + port() + path)).build(), BodyHandlers.ofString());
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private String port() {
        return context.getEnvironment().getProperty("local.server.port");
    }

    int status(String path) {
        return get(path).statusCode();
    }

    Condition condition() {
        return bean(Backend.class).state().condition();
    }

    <T> T bean(Class<T> type) {
        return context.getBean(type);
    }

    @Override
    public void close() {
        context.close();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Answers.class)
    static class Api {}

    @RestController
    static class Answers {

        @GetMapping("/{name}")
        String hello(@PathVariable String name) {
            return name;
        }
    }
}
