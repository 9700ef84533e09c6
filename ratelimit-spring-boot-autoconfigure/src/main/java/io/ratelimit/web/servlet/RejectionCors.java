package io.ratelimit.web.servlet;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.server.ServerHttpResponse;
import org.springframework.web.cors.CorsConfiguration;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.cors.DefaultCorsProcessor;
import org.springframework.web.servlet.HandlerExecutionChain;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.util.ServletRequestPathUtils;
import org.springframework.web.util.UriComponentsBuilder;

/**
 * The headers that CORS asks for on a refusal, without which a browser hides the answer from its page. A refusal is
 * written before Spring MVC or Spring Security get to it, so for a request with {@code Origin}, and only then, the
 * configuration is looked up as MVC would, and else in the bean {@code corsConfigurationSource}.
 */
public final class RejectionCors {

    /** Beyond it the parameters are not read: a refusal has to stay cheap. */
    private static final int LONGEST_QUERY = 2_000;

    private static final Log logger = LogFactory.getLog(RejectionCors.class);
    private static final DefaultCorsProcessor PROCESSOR = new DefaultCorsProcessor() {
        /** An origin that isn't allowed gets no headers; the refusal stays what it is. */
        @Override
        protected void rejectRequest(ServerHttpResponse response) {}
    };

    private final Supplier<Endpoints> endpoints;
    private final Supplier<? extends List<? extends HandlerMapping>> mappings;
    private final Supplier<CorsConfigurationSource> fallback;

    /**
     * @param endpoints know which requests are for MVC
     * @param mappings in the {@code DispatcherServlet}'s order
     * @param fallback for requests that MVC has no configuration for
     */
    public RejectionCors(
            Supplier<Endpoints> endpoints,
            Supplier<? extends List<? extends HandlerMapping>> mappings,
            Supplier<CorsConfigurationSource> fallback) {
        this.endpoints = endpoints;
        this.mappings = mappings;
        this.fallback = fallback;
    }

    void apply(HttpServletRequest request, HttpServletResponse response) throws IOException {
        if (request.getHeader(HttpHeaders.ORIGIN) == null) {
            return;
        }
        try {
            CorsConfiguration configuration = configuration(new Untouched(request));
            if (configuration != null) {
                PROCESSOR.processRequest(configuration, request, response);
            }
        } catch (RuntimeException unreadable) { // such as an origin that is no URI, or a path that can't be parsed
            logger.debug(
                    "No CORS headers on the refusal: " + unreadable.getClass().getSimpleName());
        }
    }

    private @Nullable CorsConfiguration configuration(HttpServletRequest request) {
        CorsConfiguration configuration = endpoints.get().isMine(request) ? configurationOfMvc(request) : null;
        return configuration != null ? configuration : fallback.get().getCorsConfiguration(request);
    }

    private @Nullable CorsConfiguration configurationOfMvc(HttpServletRequest request) {
        try {
            ServletRequestPathUtils.parseAndCache(request);
            for (HandlerMapping mapping : mappings.get()) {
                HandlerExecutionChain chain = mapping.getHandler(request);
                if (chain != null) {
                    return configuration(chain, request);
                }
            }
        } catch (Exception noHandler) { // such as a method that is not allowed
            return null;
        }
        return null;
    }

    private static @Nullable CorsConfiguration configuration(HandlerExecutionChain chain, HttpServletRequest request) {
        for (Object interceptor : chain.getInterceptorList()) {
            if (interceptor instanceof CorsConfigurationSource source) {
                return source.getCorsConfiguration(request);
            }
        }
        return chain.getHandler() instanceof CorsConfigurationSource source
                ? source.getCorsConfiguration(request)
                : null;
    }

    /**
     * Keeps the attributes that a look-up sets from the request itself, and has the parameters of the query alone: those
     * of a form are in the body, and a refusal doesn't wait for it.
     */
    private static final class Untouched extends HttpServletRequestWrapper {

        private final Map<String, @Nullable Object> attributes = new HashMap<>();
        private @Nullable Map<String, String[]> parameters;

        Untouched(HttpServletRequest request) {
            super(request);
        }

        @Override
        public @Nullable Object getAttribute(String name) {
            return attributes.containsKey(name) ? attributes.get(name) : super.getAttribute(name);
        }

        @Override
        public void setAttribute(String name, @Nullable Object value) {
            attributes.put(name, value);
        }

        @Override
        public void removeAttribute(String name) {
            attributes.put(name, null);
        }

        @Override
        public Map<String, String[]> getParameterMap() {
            if (parameters == null) {
                parameters = parametersOfQuery();
            }
            return parameters;
        }

        private Map<String, String[]> parametersOfQuery() {
            Map<String, String[]> parameters = new LinkedHashMap<>();
            if (getQueryString() == null || getQueryString().length() > LONGEST_QUERY) {
                return parameters;
            }
            UriComponentsBuilder.newInstance()
                    .query(getQueryString())
                    .build()
                    .getQueryParams()
                    .forEach((name, values) -> parameters.put(
                            decoded(name),
                            values.stream().map(Untouched::decoded).toArray(String[]::new)));
            return parameters;
        }

        private static String decoded(@Nullable String text) {
            return text == null ? "" : URLDecoder.decode(text, StandardCharsets.UTF_8);
        }

        @Override
        public Enumeration<String> getParameterNames() {
            return Collections.enumeration(getParameterMap().keySet());
        }

        @Override
        public String @Nullable [] getParameterValues(String name) {
            return getParameterMap().get(name);
        }

        @Override
        public @Nullable String getParameter(String name) {
            String[] values = getParameterValues(name);
            return values == null ? null : values[0];
        }
    }
}
