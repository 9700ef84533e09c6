package io.ratelimit.migration;

import io.ratelimit.ManualTimeSource;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.context.annotation.ImportCandidates;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * An application on a free port of the loopback address, started from the text of its {@code application.yml}. Of the
 * libraries on the class path, those that would limit every application are off unless a property turns them on.
 */
public final class RunningApplication implements AutoCloseable {

    private static final String EXCLUDE = "spring.autoconfigure.exclude";
    private static final String GATEWAY_ON_REDIS =
            "org.springframework.cloud.gateway.config.GatewayRedisAutoConfiguration";

    /** The property of an application with Resilience4j and springdoc. One with neither starts in a third of the time. */
    public static final String ALL_LIBRARIES = EXCLUDE + "=" + GATEWAY_ON_REDIS;

    /** The property of an application with springdoc alone. */
    public static final String SPRINGDOC = EXCLUDE + "=" + withoutLibraries("io\\.github\\.resilience4j");

    private static final String FEW_LIBRARIES = withoutLibraries("io\\.github\\.resilience4j|org\\.springdoc");

    private static String withoutLibraries(String packages) {
        return Stream.concat(
                        Stream.of(GATEWAY_ON_REDIS),
                        ImportCandidates.load(AutoConfiguration.class, null).getCandidates().stream()
                                .filter(name -> name.matches("(" + packages + ")\\..*")))
                .collect(Collectors.joining(","));
    }

    private final ConfigurableApplicationContext context;
    private final Path directory;

    private RunningApplication(ConfigurableApplicationContext context, Path directory) {
        this.context = context;
        this.directory = directory;
    }

    public static RunningApplication start(Class<?> configuration, String yaml, String... properties) {
        return start(WebApplicationType.SERVLET, configuration, yaml, properties);
    }

    /** @param properties as {@code name=value} */
    public static RunningApplication start(
            WebApplicationType type, Class<?> configuration, String yaml, String... properties) {
        Map<String, Object> defaults = new HashMap<>(Map.of(
                "server.port",
                "0",
                "server.address",
                "127.0.0.1",
                "bucket4j.enabled",
                "false",
                "springdoc.api-docs.enabled",
                "false",
                "spring.cloud.gateway.server.webflux.enabled",
                "false",
                "spring.reactor.netty.shutdown-quiet-period",
                "0s",
                EXCLUDE,
                FEW_LIBRARIES));
        for (String property : properties) {
            defaults.put(property.replaceFirst("=.*", ""), property.replaceFirst("^.*?=", ""));
        }
        try {
            Path directory = Files.createTempDirectory("migration");
            Files.writeString(directory.resolve("application.yml"), yaml);
            SpringApplication application = new SpringApplication(configuration);
            application.setWebApplicationType(type);
            application.setDefaultProperties(defaults);
            return new RunningApplication(
                    application.run("--spring.config.location=" + directory + "/", "--spring.main.banner-mode=off"),
                    directory);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    public Client client() {
        return Client.of(((WebServerApplicationContext) context).getWebServer().getPort());
    }

    public <T> T bean(Class<T> type) {
        return context.getBean(type);
    }

    public void publish(Object event) {
        context.publishEvent(event);
    }

    public ManualTimeSource time() {
        return bean(ManualTimeSource.class);
    }

    @Override
    public void close() {
        context.close();
        try {
            Files.delete(directory.resolve("application.yml"));
            Files.delete(directory);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }
}
