package io.ratelimit.web.servlet.rejection;

import io.ratelimit.web.servlet.endpoint.Endpoints;
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
import java.util.Map;
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
 * The CORS headers of a rejection. Without them, a browser hides the response from its page.
 *
 * <p>A rejection is written before Spring MVC or Spring Security process the request. For a request with {@code Origin}, and
 * only then, this class finds the configuration as MVC would. The bean {@code corsConfigurationSource} is the fallback.
 *
 * @param endpoints the endpoints, which decide whether Spring MVC handles a request
 */
record RejectionCors(Endpoints endpoints, CorsConfigurationSource fallback) {

    /** The longest query string whose parameters are parsed, because a rejection has to stay cheap. */
    static final int MAX_QUERY_LENGTH = 2_000;

    /** Longer paths get no CORS headers, because each handler mapping parses the path to find the configuration. */
    private static final int MAX_PATH_LENGTH = 500;

    private static final int MAX_SEGMENTS = 32;

    /** A scheme, the longest possible host name, and a port are shorter. */
    private static final int MAX_ORIGIN_LENGTH = 300;

    private static final int MAX_REQUESTED_HEADERS_LENGTH = 1_000;

    private static final Log logger = LogFactory.getLog(RejectionCors.class);
    private static final DefaultCorsProcessor PROCESSOR = new DefaultCorsProcessor() {
        /** Does nothing: an origin that isn't allowed gets no headers, and the rejection stays as it is. */
        @Override
        protected void rejectRequest(ServerHttpResponse response) {}
    };

    void apply(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String origin = request.getHeader(HttpHeaders.ORIGIN);
        if (origin == null || origin.length() > MAX_ORIGIN_LENGTH || isLong(request)) {
            return;
        }
        try {
            CorsConfiguration configuration = configuration(new LookupRequest(request));
            if (configuration != null) {
                PROCESSOR.processRequest(configuration, request, response);
            }
        } catch (RuntimeException unreadable) { // such as an origin that is no URI, or a path that can't be parsed
            logger.debug("The rejection gets no CORS headers, because their look-up failed: "
                    + unreadable.getClass().getSimpleName());
        }
    }

    private static boolean isLong(HttpServletRequest request) {
        String path = request.getRequestURI();
        return path.length() > MAX_PATH_LENGTH || segments(path) > MAX_SEGMENTS || listsManyHeaders(request);
    }

    /** Returns the number of segments and path parameters. */
    private static long segments(String path) {
        return path.chars().filter(c -> c == '/' || c == ';').count();
    }

    /** Returns whether a preflight lists so many headers that the response, which repeats them, would be large. */
    private static boolean listsManyHeaders(HttpServletRequest request) {
        return request.getMethod().equals("OPTIONS")
                && Collections.list(request.getHeaders(HttpHeaders.ACCESS_CONTROL_REQUEST_HEADERS)).stream()
                                .mapToInt(String::length)
                                .sum()
                        > MAX_REQUESTED_HEADERS_LENGTH;
    }

    private @Nullable CorsConfiguration configuration(HttpServletRequest request) {
        CorsConfiguration configuration = endpoints.targetsDispatcher(request) ? mvcConfiguration(request) : null;
        return configuration != null ? configuration : fallback.getCorsConfiguration(request);
    }

    private @Nullable CorsConfiguration mvcConfiguration(HttpServletRequest request) {
        try {
            ServletRequestPathUtils.parseAndCache(request);
            for (HandlerMapping mapping : endpoints.mappings()) {
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
     * A view of the request for the look-up. It keeps the attributes that a look-up sets, and leaves the request itself
     * unchanged. Its parameters are those of the query alone: reading a form's parameters would wait for the body.
     */
    private static final class LookupRequest extends HttpServletRequestWrapper {

        private final Map<String, @Nullable Object> attributes = new HashMap<>();
        private @Nullable Map<String, String[]> parameters;

        LookupRequest(HttpServletRequest request) {
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
                parameters = queryParameters();
            }
            return parameters;
        }

        private Map<String, String[]> queryParameters() {
            Map<String, String[]> parameters = new LinkedHashMap<>();
            if (getQueryString() == null || getQueryString().length() > RejectionCors.MAX_QUERY_LENGTH) {
                return parameters;
            }
            UriComponentsBuilder.newInstance()
                    .query(getQueryString())
                    .build()
                    .getQueryParams()
                    .forEach((name, values) -> parameters.put(
                            decode(name),
                            values.stream().map(LookupRequest::decode).toArray(String[]::new)));
            return parameters;
        }

        private static String decode(@Nullable String text) {
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
