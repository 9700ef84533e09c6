package io.ratelimit.benchmarks;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;
import org.springframework.http.HttpStatus;

/**
 * The smallest web application with a filter that limits nothing: under the profile {@code allowed} it sets the two headers
 * that the limits would set, under {@code refused} it always sends their rejection, both prepared beforehand. Its cost is that
 * of the server alone.
 */
@Configuration(proxyBeanMethods = false)
@Import(HelloApplication.class)
public class FixedAnswerApplication {

    private static final byte[] BODY = """
            {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests",\
            "status":429,"detail":"The request is throttled by 'per-ip-per-endpoint' policy, please retry after \
            86312345 ms.","violated-policies":["per-ip-per-endpoint"],"retryAfterMs":86312345}""".getBytes(StandardCharsets.UTF_8);

    public static void main(String[] args) {
        SpringApplication.run(FixedAnswerApplication.class, args);
    }

    /** Stands at the place of the filter before authentication. */
    @Bean
    FilterRegistrationBean<Filter> fixedAnswer(Environment environment) {
        FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>(
                environment.matchesProfiles("refused")
                        ? (request, response, chain) -> refuse((HttpServletResponse) response)
                        : FixedAnswerApplication::allow);
        registration.setOrder(-9950);
        return registration;
    }

    private static void allow(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        HttpServletResponse http = (HttpServletResponse) response;
        http.setHeader("RateLimit-Policy", "\"per-ip-per-endpoint\";q=1000000000;w=1000");
        http.setHeader("RateLimit", "\"per-ip-per-endpoint\";r=999999999;t=1");
        chain.doFilter(request, response);
    }

    private static void refuse(HttpServletResponse response) throws IOException {
        response.setStatus(HttpStatus.TOO_MANY_REQUESTS.value());
        response.setHeader("Cache-Control", "no-store");
        response.setHeader("Retry-After", "86313");
        response.setHeader("X-RetryAfterMs", "86312345");
        response.setHeader("RateLimit-Policy", "\"per-ip-per-endpoint\";q=1;w=86400");
        response.setHeader("RateLimit", "\"per-ip-per-endpoint\";r=0;t=86313");
        response.setContentType("application/problem+json");
        response.setContentLength(BODY.length);
        response.getOutputStream().write(BODY);
    }
}
