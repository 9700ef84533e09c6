package io.ratelimit.web.servlet.rejection;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.web.util.UriComponentsBuilder;

/**
 * A view of the request for the look-up. It keeps the attributes that a look-up sets, and leaves the request itself
 * unchanged. Its parameters are those of the query alone: reading a form's parameters would wait for the body.
 */
final class LookupRequest extends HttpServletRequestWrapper {

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
                        decode(name), values.stream().map(LookupRequest::decode).toArray(String[]::new)));
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
