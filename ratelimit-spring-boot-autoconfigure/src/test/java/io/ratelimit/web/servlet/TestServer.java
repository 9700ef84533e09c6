package io.ratelimit.web.servlet;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.WithoutSecurity;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestEvent;
import jakarta.servlet.ServletRequestListener;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.springframework.boot.Banner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.PropertySource;
import org.springframework.core.io.ByteArrayResource;

/**
 * An application on a real Tomcat, configured by YAML as users do, with time that stands still. All buckets are full at the
 * start of each test of a class that has it as a static {@code @RegisterExtension}.
 */
public final class TestServer
        implements BeforeAllCallback, AfterAllCallback, BeforeEachCallback, AfterEachCallback, AutoCloseable {

    private static final String NO_SECURITY = "spring.autoconfigure.exclude: " + WithoutSecurity.EXCLUDED;

    private final List<String> yaml;
    private final Class<?>[] sources;
    private ConfigurableApplicationContext context;

    private TestServer(List<String> yaml, Class<?>... sources) {
        this.yaml = yaml;
        this.sources = sources;
    }

    /** Returns a server with Spring Security, if the sources configure it. */
    public static TestServer secured(String yaml, Class<?>... sources) {
        return new TestServer(List.of(yaml), sources);
    }

    /** Returns a server without Spring Security. */
    public static TestServer open(String yaml, Class<?>... sources) {
        return new TestServer(List.of(yaml, NO_SECURITY), sources);
    }

    public TestServer start() {
        SpringApplicationBuilder application = new SpringApplicationBuilder(Application.class)
                .sources(sources)
                .bannerMode(Banner.Mode.OFF)
                // a request that Tomcat has lost never ends, and a graceful shutdown would wait 30 seconds for it
                .properties("server.port=0", "server.tomcat.max-keep-alive-requests=-1", "server.shutdown=immediate")
                .initializers(starting -> yaml.forEach(
                        text -> starting.getEnvironment().getPropertySources().addFirst(parse(text))));
        context = application.run();
        return this;
    }

    private static PropertySource<?> parse(String yaml) {
        try {
            return new YamlPropertySourceLoader()
                    .load(
                            "application.yml " + yaml.hashCode(),
                            new ByteArrayResource(yaml.getBytes(StandardCharsets.UTF_8)))
                    .get(0);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    public RawHttp http() {
        return new RawHttp(context.getEnvironment().getRequiredProperty("local.server.port", int.class), "127.0.0.1");
    }

    public <T> T bean(Class<T> type) {
        return context.getBean(type);
    }

    public <T> Collection<T> beans(Class<T> type) {
        return context.getBeansOfType(type).values();
    }

    /** Returns the whole tokens in a bucket. */
    public long available(String policy, String... key) {
        return bean(Throttlers.class).snapshot(policy, key).available();
    }

    /**
     * Waits until the container has ended the requests of the present test, which is after their responses. What follows
     * a request in memory has then happened.
     */
    public void awaitEnds() {
        Set<ServletRequest> open = bean(Requests.class).open;
        Awaitility.await()
                .pollDelay(Duration.ZERO)
                .pollInterval(Duration.ofMillis(1))
                .until(open::isEmpty);
    }

    public void advance(Duration step) {
        bean(ManualTimeSource.class).advance(step);
    }

    /** Fills all buckets that need at most a day for it, and advances the time to a whole number of days. */
    public void refill() {
        long nanos = bean(ManualTimeSource.class).nanoTime();
        advance(Duration.ofDays(2).minusNanos(nanos % Duration.ofDays(1).toNanos()));
    }

    @Override
    public void beforeAll(ExtensionContext test) {
        start();
    }

    @Override
    public void beforeEach(ExtensionContext test) {
        bean(Requests.class).open.clear(); // Tomcat may have lost some
        refill();
    }

    /** Advances the time so that the log lines of a test are in the output of that test. */
    @Override
    public void afterEach(ExtensionContext test) {
        advance(Duration.ofSeconds(10));
    }

    @Override
    public void afterAll(ExtensionContext test) {
        close();
    }

    @Override
    public void close() {
        context.close();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    public static class Application {

        @Bean
        public ManualTimeSource time() {
            return new ManualTimeSource();
        }

        @Bean
        Requests requests() {
            return new Requests();
        }
    }

    /** The requests that the container has begun and not ended. */
    private static final class Requests implements ServletRequestListener {

        final Set<ServletRequest> open = ConcurrentHashMap.newKeySet();

        @Override
        public void requestInitialized(ServletRequestEvent request) {
            open.add(request.getServletRequest());
        }

        @Override
        public void requestDestroyed(ServletRequestEvent request) {
            open.remove(request.getServletRequest());
        }
    }
}
