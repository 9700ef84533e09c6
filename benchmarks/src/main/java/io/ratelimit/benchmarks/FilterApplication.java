package io.ratelimit.benchmarks;

import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.web.servlet.RateLimitWebServletAutoConfiguration;
import jakarta.servlet.Filter;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.context.servlet.AnnotationConfigServletWebApplicationContext;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;

/** The real filters of an application with fifty mappings, from the real auto-configuration, without a server. */
@Configuration(proxyBeanMethods = false)
@ImportAutoConfiguration({RateLimitAutoConfiguration.class, RateLimitWebServletAutoConfiguration.class})
public class FilterApplication {

    static final String SERVLET = "dispatcherServlet";

    /** A request that reaches one of the mappings with a variable. */
    static final String URI = "/api/resource17/4711";

    /** The property with the patterns of the mappings, in which a number replaces {@code %d}. */
    static final String MAPPINGS = "benchmark.mappings";

    /** The property with how many mappings each pattern has. */
    static final String COUNT = "benchmark.count";

    /** The filters in their order. */
    static List<Filter> filters(Map<String, Object> properties) {
        ApplicationContext context = new SpringApplicationBuilder(FilterApplication.class)
                .contextFactory(type -> new AnnotationConfigServletWebApplicationContext())
                .web(WebApplicationType.SERVLET)
                .bannerMode(Banner.Mode.OFF)
                .logStartupInfo(false)
                .properties(properties)
                .run();
        return Stream.of("rateLimitFilterBeforeAuthentication", "rateLimitFilterAfterAuthentication")
                .<Filter>map(name ->
                        context.getBean(name, FilterRegistrationBean.class).getFilter())
                .toList();
    }

    @Bean
    DispatcherServletRegistrationBean dispatcherServlet() {
        DispatcherServletRegistrationBean registration =
                new DispatcherServletRegistrationBean(new DispatcherServlet(), "/");
        registration.setName(SERVLET);
        return registration;
    }

    @Bean
    RequestMappingHandlerMapping mappings(
            @Value("${" + MAPPINGS + ":/api/resource%d,/api/resource%d/{id}}") String patterns,
            @Value("${" + COUNT + ":25}") int count)
            throws NoSuchMethodException {
        RequestMappingHandlerMapping mappings = new RequestMappingHandlerMapping();
        for (String pattern : patterns.split(",")) {
            for (int i = 0; i < count; i++) {
                RequestMappingInfo info = RequestMappingInfo.paths(pattern.formatted(i))
                        .methods(RequestMethod.GET)
                        .build();
                mappings.registerMapping(
                        info, new FilterApplication(), FilterApplication.class.getDeclaredMethod("handle"));
            }
        }
        return mappings;
    }

    void handle() {}
}
