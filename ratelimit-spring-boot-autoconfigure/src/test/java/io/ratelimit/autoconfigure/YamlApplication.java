package io.ratelimit.autoconfigure;

import io.ratelimit.key.LimitResolver;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.tomcat.autoconfigure.servlet.TomcatServletWebServerAutoConfiguration;
import org.springframework.boot.web.context.servlet.AnnotationConfigServletWebApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.MutablePropertySources;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.mock.web.MockServletContext;
import org.springframework.web.context.support.StandardServletEnvironment;

/**
 * An application that starts as {@link SpringApplication} has it, from the text of its {@code application.yml}: without
 * web, or with Spring MVC and no server. It doesn't see environment variables and system properties of the machine.
 */
public final class YamlApplication {

    private static final String TITLE = "APPLICATION FAILED TO START";

    private final Path directory;
    private final Map<String, Object> variables = new HashMap<>();
    private final Map<String, Object> systemProperties = new HashMap<>();
    private final List<String> arguments = new ArrayList<>();
    private Class<?> configuration = Plain.class;
    private boolean server;
    private WebApplicationType type = WebApplicationType.NONE;

    /** @param directory an empty one, for its files */
    public YamlApplication(Path directory, String yaml) {
        this.directory = directory;
        write("application.yml", yaml);
        arguments.add("--spring.config.location=" + directory + "/");
    }

    public YamlApplication withProperties(String properties) {
        write("application.properties", properties);
        return this;
    }

    public YamlApplication withProfile(String profile, String yaml) {
        write("application-" + profile + ".yml", yaml);
        arguments.add("--spring.profiles.active=" + profile);
        return this;
    }

    public YamlApplication withVariable(String name, String value) {
        variables.put(name, value);
        return this;
    }

    public YamlApplication withSystemProperty(String name, String value) {
        systemProperties.put(name, value);
        return this;
    }

    public YamlApplication withArgument(String argument) {
        arguments.add(argument);
        return this;
    }

    /** Starts without web, with this configuration in place of {@link Plain}. */
    public YamlApplication with(Class<?> configuration) {
        this.configuration = configuration;
        return this;
    }

    public YamlApplication withWeb() {
        return withWeb(WebMvc.class);
    }

    /** Starts the server on a random port. */
    public YamlApplication withServer(Class<?> configuration) {
        server = true;
        return withWeb(configuration).withArgument("--server.port=0");
    }

    public YamlApplication withWeb(Class<?> configuration) {
        this.configuration = configuration;
        this.type = WebApplicationType.SERVLET;
        return this;
    }

    public ConfigurableApplicationContext start() {
        SpringApplication application = new SpringApplication(configuration);
        application.setBannerMode(Banner.Mode.OFF);
        application.setLogStartupInfo(false);
        application.setRegisterShutdownHook(false);
        application.setWebApplicationType(type);
        if (!server) {
            application.setApplicationContextFactory(
                    type -> type == WebApplicationType.NONE ? new AnnotationConfigApplicationContext() : webContext());
        }
        application.setEnvironment(environment());
        return application.run(arguments.toArray(String[]::new));
    }

    /** Returns the lines of our loggers from the start to the stop, as level and message. */
    public List<String> log(CapturedOutput output) {
        int before = output.getOut().length();
        start().close();
        return output.getOut()
                .substring(before)
                .lines()
                .filter(line ->
                        line.contains("] i.r.") || line.contains("] i.ratelimit.") || line.contains("] io.ratelimit."))
                .map(line -> line.replaceFirst("^\\S+\\s+(\\S+) .*? : ", "$1 "))
                .toList();
    }

    /** Returns the report of a failed start without its title and the directory of the files. */
    public String failure(CapturedOutput output) {
        int before = output.getOut().length();
        try (ConfigurableApplicationContext started = start()) {
            throw new AssertionError("It started: " + started);
        } catch (RuntimeException failed) {
            String all = output.getOut().substring(before).replace(directory + "/", "");
            if (!all.contains(TITLE)) {
                throw new AssertionError("It failed without a report", failed);
            }
            return all.substring(all.indexOf(TITLE))
                    .replaceFirst("(?s)^.*?\\*{5,}\\s+", "")
                    .strip();
        }
    }

    private void write(String file, String yaml) {
        try {
            Files.writeString(directory.resolve(file), yaml);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private static ConfigurableApplicationContext webContext() {
        AnnotationConfigServletWebApplicationContext context = new AnnotationConfigServletWebApplicationContext();
        context.setServletContext(new MockServletContext());
        return context;
    }

    private StandardEnvironment environment() {
        StandardEnvironment environment =
                type == WebApplicationType.NONE ? new StandardEnvironment() : new StandardServletEnvironment();
        MutablePropertySources sources = environment.getPropertySources();
        String system = StandardEnvironment.SYSTEM_PROPERTIES_PROPERTY_SOURCE_NAME;
        sources.replace(system, new MapPropertySource(system, systemProperties));
        String outside = StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME;
        sources.replace(outside, new SystemEnvironmentPropertySource(outside, variables));
        return environment;
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration
    public static class Plain {}

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration
    public static class WebMvc {}

    /** Adds the beans of the server, which is not started. */
    @Configuration(proxyBeanMethods = false)
    @Import(WebMvc.class)
    @ImportAutoConfiguration(TomcatServletWebServerAutoConfiguration.class)
    public static class OnTomcat {

        /** The bean that the documentation names. */
        @Bean
        LimitResolver plans() {
            return request -> null;
        }
    }
}
