package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.key.RequestFacts;
import io.ratelimit.key.ip.ClientIp;
import io.ratelimit.web.servlet.RateLimitWebServletAutoConfiguration.BoundRequest;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import io.ratelimit.web.servlet.rejection.PolicyResponses;
import io.ratelimit.web.servlet.rejection.RateLimitHeaders;
import io.ratelimit.web.servlet.rejection.Rejections;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.support.StaticListableBeanFactory;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

class BoundRequestTests {

    private final BoundRequest bound = new BoundRequest(limits());

    private static ServerLimits.Late limits() {
        Endpoints endpoints = new Endpoints("dispatcherServlet", "", List.of());
        ClientIp clientIp = new ClientIp(List.of(), "x-forwarded-for", 64);
        Throttlers throttlers = Throttlers.local(List.of());
        StaticListableBeanFactory beans = new StaticListableBeanFactory();
        beans.addBean("throttlers", throttlers);
        beans.addBean("time", TimeSource.system());
        beans.addBean("policies", new RequestPolicies(List.of(), endpoints, clientIp, ThrottleListener.NONE));
        beans.addBean(
                "rejections",
                Rejections.of(
                        (request, response, decision) -> {},
                        new PolicyResponses(RateLimitHeaders.NONE),
                        TimeSource.system(),
                        ThrottleListener.NONE,
                        endpoints,
                        request -> null));
        return new ServerLimits.Late(beans);
    }

    @AfterEach
    void unbind() {
        RequestContextHolder.resetRequestAttributes();
    }

    private RequestFacts facts(HttpServletRequest request) {
        RequestContextHolder.setRequestAttributes(new ServletRequestAttributes(request));
        return bound.facts();
    }

    @Test
    void theRequestOfTheThreadHasFacts() {
        assertThat(bound.facts()).isNull();
        assertThat(facts(new MockHttpServletRequest("POST", "/")))
                .extracting(RequestFacts::method)
                .isEqualTo("POST");
    }

    /** A thread may keep the request that it was given after the response is complete. */
    @Test
    void aRequestThatIsOverIsNone() {
        assertThat(facts(new HttpServletRequestWrapper(new MockHttpServletRequest()) {
                    @Override
                    public Object getAttribute(String name) {
                        throw new IllegalStateException("recycled");
                    }
                }))
                .isNull();
    }
}
