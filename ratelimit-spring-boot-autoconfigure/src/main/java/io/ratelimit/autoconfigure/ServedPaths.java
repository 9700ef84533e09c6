package io.ratelimit.autoconfigure;

import io.ratelimit.web.servlet.endpoint.Endpoints;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.Registration;
import jakarta.servlet.ServletContext;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.springframework.aot.AotDetector;
import org.springframework.context.ApplicationContext;
import org.springframework.core.io.ClassPathResource;
import org.springframework.core.io.Resource;
import org.springframework.http.server.PathContainer;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.util.matcher.RequestMatcher;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;
import org.springframework.web.context.WebApplicationContext;
import org.springframework.web.context.support.ServletContextResource;
import org.springframework.web.filter.GenericFilterBean;
import org.springframework.web.servlet.handler.AbstractUrlHandlerMapping;
import org.springframework.web.servlet.resource.DefaultServletHttpRequestHandler;
import org.springframework.web.servlet.resource.ResourceHttpRequestHandler;
import org.springframework.web.servlet.resource.ResourceResolver;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;
import org.springframework.web.util.pattern.PatternParseException;

/**
 * The paths that something in the application may serve: endpoints, files, other servlets, and the filters of Spring Security
 * and of others. In doubt a path counts as served.
 */
final class ServedPaths {

    private static final boolean SPRING_SECURITY = ClassUtils.isPresent(
            "org.springframework.security.web.SecurityFilterChain", ServedPaths.class.getClassLoader());

    private static final String OURS = "rateLimit";

    private final PathPatternParser parser;
    private final List<String> patterns = new ArrayList<>();
    private final List<Resource> files = new ArrayList<>();
    private boolean everything;

    /** @param servers the endpoints of all servers */
    ServedPaths(ApplicationContext context, List<Endpoints> servers, PathPatternParser parser) {
        this.parser = parser;
        for (Endpoints server : servers) {
            everything |= !server.isComplete();
            patterns.addAll(server.patterns());
        }
        ServletContext server =
                context instanceof WebApplicationContext application ? application.getServletContext() : null;
        if (server == null || server.getServletRegistrations().isEmpty()) {
            everything = true; // without a server its servlets and filters are unknown
        } else {
            addServlets(server, servers);
            addFilters(server);
        }
        context.getBeansOfType(AbstractUrlHandlerMapping.class).values().forEach(this::addFiles);
        everything |= context.containsBean("serverEndpointExporter");
        if (SPRING_SECURITY) {
            patterns.addAll(Security.paths(context));
        }
    }

    private void addServlets(ServletContext server, List<Endpoints> servers) {
        server.getServletRegistrations().forEach((name, servlet) -> {
            if (servers.stream().noneMatch(endpoints -> endpoints.isServlet(name))) {
                servlet.getMappings().forEach(this::addMapping);
            }
        });
    }

    /** Adds filters that may answer requests by themselves, as Jersey's does. Those made with Spring rarely do. */
    private void addFilters(ServletContext server) {
        for (FilterRegistration filter : server.getFilterRegistrations().values()) {
            if (mayAnswer(filter)) {
                filter.getUrlPatternMappings().forEach(this::addMapping);
                everything |= !filter.getServletNameMappings().isEmpty();
            }
        }
    }

    private static boolean mayAnswer(Registration filter) {
        String name = String.valueOf(filter.getClassName());
        boolean known = Stream.of("org.springframework.", "org.apache.tomcat.", "org.eclipse.jetty.")
                .anyMatch(name::startsWith);
        if (known || filter.getName().startsWith(OURS)) {
            return false;
        }
        ClassLoader loader = ServedPaths.class.getClassLoader();
        return !ClassUtils.isPresent(name, loader)
                || !GenericFilterBean.class.isAssignableFrom(ClassUtils.resolveClassName(name, loader));
    }

    /** Adds the mapping of a servlet or a filter, such as {@code /rest/*} or {@code *.jsp}. */
    private void addMapping(String mapping) {
        if (mapping.equals("/") || mapping.equals("/*") || mapping.startsWith("*.")) {
            everything = true;
        } else {
            patterns.add(mapping.endsWith("/*") ? mapping + "*" : mapping);
        }
    }

    /** Adds the handlers of files. The handler of all paths serves those that its directories contain. */
    private void addFiles(AbstractUrlHandlerMapping mapping) {
        mapping.getHandlerMap().forEach((pattern, handler) -> {
            if (handler instanceof ResourceHttpRequestHandler resources && pattern.equals("/**")) {
                files.addAll(resources.getLocations());
                everything |= !resources.getResourceResolvers().stream().allMatch(ServedPaths::isSprings)
                        || !resources.getLocations().stream().allMatch(ServedPaths::isFixed);
            } else if (handler instanceof ResourceHttpRequestHandler) {
                patterns.add(pattern);
            }
            everything |= handler instanceof DefaultServletHttpRequestHandler;
        });
    }

    private static boolean isSprings(ResourceResolver resolver) {
        return resolver.getClass().getName().startsWith("org.springframework.");
    }

    /** Returns whether the files of a location don't change while the application runs. */
    private static boolean isFixed(Resource location) {
        return location instanceof ClassPathResource || location instanceof ServletContextResource;
    }

    /** Returns whether the application may serve a path that a pattern matches. */
    boolean contains(PathPattern pattern) {
        List<String> segments = segments(pattern.getPatternString());
        return everything
                || patterns.stream().anyMatch(served -> overlap(segments, segments(served)))
                || isFile(segments);
    }

    private static List<String> segments(String pattern) {
        return Stream.of(pattern.split("/"))
                .filter(segment -> !segment.isEmpty())
                .toList();
    }

    /** Returns whether a path may match both patterns. Two segments with wildcards are assumed to overlap. */
    private boolean overlap(List<String> one, List<String> other) {
        for (int i = 0; i < Math.max(one.size(), other.size()); i++) {
            if (i < one.size() && isOpen(one.get(i)) || i < other.size() && isOpen(other.get(i))) {
                return true;
            }
            if (i >= one.size() || i >= other.size() || !agree(one.get(i), other.get(i))) {
                return false;
            }
        }
        return true;
    }

    private static boolean isOpen(String segment) {
        return segment.equals("**") || segment.startsWith("{*");
    }

    private boolean agree(String one, String other) {
        return hasWildcards(one) && hasWildcards(other) || matches(one, other) || matches(other, one);
    }

    private boolean matches(String pattern, String text) {
        try {
            return parser.parse("/" + pattern).matches(PathContainer.parsePath("/" + text));
        } catch (PatternParseException slashInExpression) {
            return true;
        }
    }

    private static boolean hasWildcards(String segment) {
        return segment.matches(".*[{}*?].*");
    }

    /** Returns whether files may exist whose paths begin with the literal segments of a pattern. */
    private boolean isFile(List<String> segments) {
        String beginning =
                segments.stream().takeWhile(segment -> !hasWildcards(segment)).collect(Collectors.joining("/"));
        return !files.isEmpty()
                && (beginning.isEmpty() || files.stream().anyMatch(location -> exists(location, beginning)));
    }

    private static boolean exists(Resource location, String path) {
        try {
            return location.createRelative(path).exists()
                    || location.createRelative(path + "/").exists();
        } catch (IOException unreadable) {
            return true;
        }
    }

    /** The paths that filters of Spring Security answer, such as a login with another URL than usual. */
    private static final class Security {

        private static final List<String> USUAL = List.of(
                "/login/**", "/logout/**", "/oauth2/**", "/saml2/**", "/webauthn/**", "/ott/**", "/.well-known/**");
        private static final Pattern PATH = Pattern.compile("/[^\\s\\],'\"]*");

        static List<String> paths(ApplicationContext context) {
            Collection<SecurityFilterChain> chains =
                    context.getBeansOfType(SecurityFilterChain.class).values();
            if (chains.isEmpty()) {
                return List.of();
            }
            if (AotDetector.useGeneratedArtifacts()) {
                return List.of("/**"); // a native image can't read the fields
            }
            List<String> paths = new ArrayList<>(USUAL);
            chains.forEach(chain -> chain.getFilters().forEach(filter -> addMatchers(filter, paths)));
            return paths;
        }

        /** Adds the paths in the texts of a filter's matchers, since filters have no method that returns the paths. */
        private static void addMatchers(Filter filter, List<String> paths) {
            ReflectionUtils.doWithFields(
                    filter.getClass(),
                    field -> {
                        field.setAccessible(true);
                        PATH.matcher(String.valueOf(field.get(filter)))
                                .results()
                                .map(MatchResult::group)
                                .filter(path -> !path.equals("/**"))
                                .forEach(paths::add);
                    },
                    field -> RequestMatcher.class.isAssignableFrom(field.getType()));
        }
    }
}
