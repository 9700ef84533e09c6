package io.ratelimit.replay;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.key.KeyResolver;
import io.ratelimit.key.LimitResolver;
import io.ratelimit.key.RequestFacts;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.web.servlet.RateLimitWebServletAutoConfiguration;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.web.context.servlet.AnnotationConfigServletWebApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.PropertySource;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;
import org.springframework.web.util.pattern.PathPatternParser;

/**
 * The policies of a configuration, read by Spring Boot and the library's own auto-configuration, without a server.
 *
 * @param request the request that they decide, which changes with each line of the log
 */
record ReplayPolicies(
        RequestPolicies requests,
        RateLimitProperties properties,
        LoggedRequest request,
        ConfigurableApplicationContext context)
        implements AutoCloseable {

    private static final Pattern BEAN =
            Pattern.compile("\\bbean\\(\\s*['\"]([^'\"]+)['\"]\\s*\\)|\\bbean:\\s*([^\\s,\\]\"']+)");
    private static final Pattern ENDPOINT = Pattern.compile("(?:([A-Z,]+)\\s+)?(/\\S*)");

    /**
     * @param arguments properties such as {@code --spring.config.location=application.yml}
     * @param endpoints a file with one endpoint a line, such as {@code GET /items/{id}}; null if they are unknown
     * @param authenticates whether the application authenticates between the two phases
     * @throws RuntimeException if the configuration would stop the start of the application; the log has the report
     */
    static ReplayPolicies read(List<String> arguments, @Nullable Path endpoints, boolean authenticates)
            throws IOException {
        RequestMappingHandlerMapping mapping = new RequestMappingHandlerMapping();
        if (endpoints != null) {
            map(endpoints, mapping);
        }
        LoggedRequest[] request = new LoggedRequest[1];
        SpringApplication application = new SpringApplication(Beans.class);
        application.setWebApplicationType(WebApplicationType.SERVLET);
        application.setApplicationContextFactory(type -> new AnnotationConfigServletWebApplicationContext());
        application.setBannerMode(Banner.Mode.OFF);
        application.setLogStartupInfo(false);
        application.setRegisterShutdownHook(false);
        application.addInitializers(context -> {
            ConfigurableEnvironment environment = context.getEnvironment();
            String contextPath = environment.getProperty("server.servlet.context-path", "");
            LoggedRequest logged = new LoggedRequest(contextPath.equals("/") ? "" : contextPath, endpoints != null);
            request[0] = logged;
            String servletPath = environment.getProperty("spring.mvc.servlet.path", "");
            context.getBeanFactory()
                    .registerSingleton(
                            "endpoints",
                            new Endpoints("", servletPath.equals("/") ? "" : servletPath, List.of(mapping)));
            if (authenticates) {
                context.getBeanFactory().registerSingleton("springSecurityFilterChain", new Object());
            }
            for (String bean : beans(environment)) {
                context.getBeanFactory().registerSingleton(bean, new UnknownBean(bean, logged));
            }
        });
        List<String> properties = new ArrayList<>(arguments);
        properties.add("--ratelimit.enabled=true");
        ConfigurableApplicationContext context = application.run(properties.toArray(String[]::new));
        RateLimitProperties bound = context.getBean(RateLimitProperties.class);
        RequestPolicies policies = context.getBean(RequestPolicies.class).forRecordedRequests();
        return new ReplayPolicies(policies, bound, request[0], context);
    }

    /** Returns the names of beans that the policies read. A log doesn't contain what they return. */
    private static Set<String> beans(ConfigurableEnvironment environment) {
        Set<String> names = new TreeSet<>();
        for (PropertySource<?> source : environment.getPropertySources()) {
            if (source instanceof EnumerablePropertySource<?> enumerable) {
                for (String property : enumerable.getPropertyNames()) {
                    if (property.startsWith("ratelimit.")) {
                        Matcher matcher = BEAN.matcher(environment.getProperty(property, ""));
                        while (matcher.find()) {
                            names.add(matcher.group(1) == null ? matcher.group(2) : matcher.group(1));
                        }
                    }
                }
            }
        }
        return names;
    }

    /** Maps each endpoint to a method that no request calls. */
    private static void map(Path file, RequestMappingHandlerMapping mapping) throws IOException {
        RequestMappingInfo.BuilderConfiguration options = new RequestMappingInfo.BuilderConfiguration();
        options.setPatternParser(PathPatternParser.defaultInstance);
        for (String line : Files.readAllLines(file)) {
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            Matcher endpoint = ENDPOINT.matcher(line.strip());
            if (!endpoint.matches()) {
                throw new WrongEndpointException(
                        "--endpoints must have lines such as 'GET /items/{id}', but was '" + line + "'");
            }
            List<RequestMethod> methods = new ArrayList<>();
            for (String method : endpoint.group(1) == null
                    ? new String[0]
                    : endpoint.group(1).split(",")) {
                RequestMethod known = RequestMethod.resolve(method);
                if (known == null) {
                    throw new WrongEndpointException("--endpoints has the unknown method '" + method + "'");
                }
                methods.add(known);
            }
            RequestMappingInfo info = RequestMappingInfo.paths(endpoint.group(2))
                    .methods(methods.toArray(RequestMethod[]::new))
                    .options(options)
                    .build();
            mapping.registerMapping(info, new Object(), Object.class.getMethods()[0]);
        }
    }

    /** A bean of the application. A log doesn't contain what it returns. */
    private record UnknownBean(String name, LoggedRequest request) implements KeyResolver, LimitResolver {

        @Override
        public @Nullable String resolve(RequestFacts facts) {
            request.miss("bean " + name);
            return null;
        }

        @Override
        public @Nullable BucketSpec limit(RequestFacts facts) {
            request.miss("bean " + name);
            return null;
        }
    }

    /** A line of the endpoints that can't be read. */
    static final class WrongEndpointException extends IllegalArgumentException {

        private static final long serialVersionUID = 1;

        WrongEndpointException(String message) {
            super(message);
        }
    }

    @Override
    public void close() {
        context.close();
    }

    /** The auto-configurations of an application on Spring MVC that apply without a server. Buckets are elsewhere. */
    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({RateLimitAutoConfiguration.class, RateLimitWebServletAutoConfiguration.class})
    static class Beans {

        /** Keeps the store of the configuration, such as Redis, out of the replay. */
        @Bean
        BucketStore bucketStore() {
            return BucketStore.local(TimeSource.system());
        }
    }
}
