package io.ratelimit.web.servlet.endpoint;

import io.ratelimit.annotation.RateLimitExempt;
import java.lang.reflect.AnnotatedElement;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.function.support.RouterFunctionMapping;
import org.springframework.web.servlet.handler.AbstractHandlerMapping;
import org.springframework.web.servlet.handler.AbstractUrlHandlerMapping;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;
import org.springframework.web.servlet.mvc.method.RequestMappingInfoHandlerMapping;
import org.springframework.web.servlet.resource.DefaultServletHttpRequestHandler;
import org.springframework.web.servlet.resource.ResourceHttpRequestHandler;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;
import org.springframework.web.util.pattern.PatternParseException;

/**
 * The endpoints of one handler mapping.
 *
 * @param endpoints the endpoints in the order in which the mapping tries them; in no order for controllers
 * @param controllers whether the endpoints are controllers, which Spring MVC compares by its own rules
 * @param complete whether these are all endpoints of the mapping
 */
record MappedEndpoints(List<Endpoint> endpoints, boolean controllers, boolean complete) {

    private static final Log logger = LogFactory.getLog(MappedEndpoints.class);

    static MappedEndpoints of(HandlerMapping mapping) {
        try {
            if (mapping instanceof RequestMappingInfoHandlerMapping controllers) {
                return new MappedEndpoints(controllers(controllers), true, controllers.getPatternParser() != null);
            } else if (mapping instanceof RouterFunctionMapping functions) {
                return RouterFunctionEndpoints.of(functions);
            } else if (mapping instanceof AbstractUrlHandlerMapping handlers) {
                return new MappedEndpoints(handlers(handlers), false, handlers.getPatternParser() != null);
            }
        } catch (RuntimeException unreadable) {
            logger.warn(
                    "The endpoints of " + mapping.getClass().getName() + " can't be read: in keys with 'endpoint',"
                            + " all its requests share one endpoint",
                    unreadable);
        }
        return new MappedEndpoints(List.of(), false, false);
    }

    private static List<Endpoint> controllers(RequestMappingInfoHandlerMapping mapping) {
        List<Endpoint> endpoints = new ArrayList<>();
        PathPatternParser parser = parser(mapping);
        for (Map.Entry<RequestMappingInfo, HandlerMethod> mapped :
                mapping.getHandlerMethods().entrySet()) {
            Set<String> methods = methods(mapped.getKey());
            Exemption exemption = Exemption.of(mapped.getKey(), mapped.getValue());
            for (PathPattern pattern : patterns(mapped.getKey(), parser)) {
                endpoints.add(Endpoint.of(pattern, methods).with(exemption));
            }
        }
        return endpoints;
    }

    private static Collection<PathPattern> patterns(RequestMappingInfo info, PathPatternParser parser) {
        var condition = info.getPathPatternsCondition();
        if (condition != null) {
            return condition.getPatterns();
        }
        List<PathPattern> patterns = new ArrayList<>();
        for (String text : info.getPatternValues()) {
            PathPattern pattern = parse(parser, text);
            if (pattern != null) {
                patterns.add(pattern);
            }
        }
        return patterns;
    }

    private static Set<String> methods(RequestMappingInfo info) {
        Set<String> methods = new TreeSet<>();
        for (RequestMethod method : info.getMethodsCondition().getMethods()) {
            methods.add(method.name());
        }
        return methods;
    }

    private static List<Endpoint> handlers(AbstractUrlHandlerMapping mapping) {
        List<Endpoint> endpoints = new ArrayList<>();
        for (Map.Entry<String, Object> mapped : mapping.getHandlerMap().entrySet()) {
            add(endpoints, mapping, mapped.getKey(), mapped.getValue());
        }
        endpoints.sort(Comparator.comparing(Endpoint::hasSyntax)
                .thenComparing(Endpoint::pattern, PathPattern.SPECIFICITY_COMPARATOR));
        add(endpoints, mapping, "/", mapping.getRootHandler());
        add(endpoints, mapping, "/**", mapping.getDefaultHandler());
        return endpoints;
    }

    /** Adds an endpoint. Files are added as none: they hide the endpoints after them. */
    private static void add(
            List<Endpoint> endpoints, AbstractUrlHandlerMapping mapping, String pattern, @Nullable Object handler) {
        boolean files =
                handler instanceof ResourceHttpRequestHandler || handler instanceof DefaultServletHttpRequestHandler;
        PathPattern parsed = handler == null ? null : parse(parser(mapping), pattern);
        if (parsed != null) {
            Endpoint endpoint = Endpoint.of(parsed, Set.of());
            endpoints.add(files ? endpoint.asNone() : endpoint);
        }
    }

    /** Returns these endpoints without exemptions, since an unknown endpoint may get their requests. */
    MappedEndpoints withoutExemptions() {
        List<Endpoint> notExempt = endpoints.stream()
                .map(endpoint -> endpoint.with(endpoint.exemption.withoutExemption()))
                .toList();
        return new MappedEndpoints(notExempt, controllers, complete);
    }

    /** Returns the first mapping that matches by {@code AntPathMatcher}, or null. */
    static @Nullable AbstractHandlerMapping withAntPathMatcher(List<? extends HandlerMapping> mappings) {
        for (HandlerMapping mapping : mappings) {
            if (mapping instanceof AbstractHandlerMapping ant && ant.getPatternParser() == null) {
                return ant;
            }
        }
        return null;
    }

    /** Returns the parser of a mapping; for one with {@code AntPathMatcher} a parser that compares letters as that does. */
    @SuppressWarnings("removal") // of getPathMatcher()
    static PathPatternParser parser(AbstractHandlerMapping mapping) {
        PathPatternParser parser = mapping.getPatternParser();
        if (parser != null) {
            return parser;
        }
        PathPatternParser likeAnt = new PathPatternParser();
        likeAnt.setCaseSensitive(!mapping.getPathMatcher().match("/a", "/A"));
        return likeAnt;
    }

    /** Returns null for a malformed pattern, such as one for {@code AntPathMatcher}. Its endpoint is left out. */
    static @Nullable PathPattern parse(PathPatternParser parser, String pattern) {
        try {
            return parser.parse(pattern);
        } catch (PatternParseException ex) {
            return null;
        }
    }

    /**
     * @param methods the admitted methods; empty for all methods
     * @param key the name of the endpoint in keys
     */
    record Endpoint(PathPattern pattern, Set<String> methods, String key, Exemption exemption) {

        private static final int NOT_ADMITTED = 3;

        static Endpoint of(PathPattern pattern, Collection<String> methods) {
            String path = pattern.getPatternString().isEmpty() ? "/" : pattern.getPatternString();
            Set<String> sorted = new TreeSet<>(methods);
            String key = sorted.isEmpty() ? path : String.join(",", sorted) + " " + path;
            return new Endpoint(pattern, sorted, key, Exemption.NONE);
        }

        Endpoint asNone() {
            return new Endpoint(pattern, methods, Endpoints.NONE, Exemption.NO_HANDLER);
        }

        Endpoint with(Exemption exemption) {
            return new Endpoint(pattern, methods, key, exemption);
        }

        private boolean hasSyntax() {
            return pattern.hasPatternSyntax();
        }

        boolean admits(String method) {
            return methods.isEmpty() || methods.contains(method);
        }

        boolean isAdmittedByController(String method) {
            return rank(method) != NOT_ADMITTED;
        }

        boolean isAsSpecificAs(Endpoint other) {
            return PathPattern.SPECIFICITY_COMPARATOR.compare(pattern, other.pattern) == 0;
        }

        /** Ranks how a controller's endpoint admits the method: by name, HEAD as GET, as any method, or not at all. */
        private int rank(String method) {
            if (methods.isEmpty()) {
                return method.equals("OPTIONS") ? NOT_ADMITTED : 2;
            }
            return methods.contains(method) ? 0 : method.equals("HEAD") && methods.contains("GET") ? 1 : NOT_ADMITTED;
        }

        /** Compares controllers as MVC does. MVC tries literal paths first, and for HEAD compares methods before paths. */
        int compareTo(Endpoint other, String method) {
            int byMethod = rank(method) - other.rank(method);
            int order = Boolean.compare(other.isAdmittedByController(method), isAdmittedByController(method));
            order = order != 0 ? order : Boolean.compare(hasSyntax(), other.hasSyntax());
            order = order != 0 || !method.equals("HEAD") ? order : byMethod;
            order = order != 0 ? order : PathPattern.SPECIFICITY_COMPARATOR.compare(pattern, other.pattern);
            order = order != 0 ? order : byMethod;
            return order != 0 ? order : key.compareTo(other.key);
        }
    }

    /**
     * The contribution of an endpoint to the exemption of a request.
     *
     * @param certain whether path and method suffice to reach the endpoint; otherwise another endpoint may get the request
     */
    record Exemption(boolean exempt, boolean certain, boolean handler) {

        /** The contribution of a handler that isn't exempt. */
        static final Exemption NONE = new Exemption(false, true, true);

        /** The contribution of files and of Spring MVC's own responses: they do no work, so other endpoints decide. */
        static final Exemption NO_HANDLER = new Exemption(false, false, false);

        static Exemption of(RequestMappingInfo mapping, HandlerMethod handler) {
            boolean exempt = isOn(handler.getMethod()) || isOn(handler.getBeanType());
            return new Exemption(exempt, isCertain(mapping), true);
        }

        private static boolean isOn(AnnotatedElement element) {
            return MergedAnnotations.from(element, SearchStrategy.TYPE_HIERARCHY)
                    .isPresent(RateLimitExempt.class);
        }

        private static boolean isCertain(RequestMappingInfo mapping) {
            return mapping.getParamsCondition().isEmpty()
                    && mapping.getHeadersCondition().isEmpty()
                    && mapping.getConsumesCondition().isEmpty()
                    && mapping.getProducesCondition().isEmpty()
                    && mapping.getVersionCondition().isEmpty()
                    && mapping.getCustomCondition() == null;
        }

        /** Returns this contribution without the exemption, for an endpoint behind unknown endpoints. */
        Exemption withoutExemption() {
            return new Exemption(false, certain, handler);
        }
    }
}
