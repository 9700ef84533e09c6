package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.annotation.RateLimited;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.servlet.View;

/** A handler that calls a method with an exhausted limit runs no more often than the policies of the filter allow. */
class RejectedCallChargesTests {

    private static final String YAML = """
            ratelimit:
              policies:
                early: { key: ip, rate: 5/1h, paths: /early/** }
                written: { key: ip, rate: 5/1h, paths: /written/**, phase: before-authentication }
                late: { key: user, rate: 5/1h, paths: /late/** }
                wide: { key: ip, rate: 1000/1h }
                narrow: { rate: 1/1h, applies-to: annotated }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, BasicSecurity.class, Api.class, Work.class);

    @ParameterizedTest
    @ValueSource(strings = {"early", "written", "late"})
    void aHandlerRunsAsOftenAsTheFilterAllows(String policy) {
        for (String path : new String[] {"plain", "async", "view", "servlet"}) {
            server.refill();
            AtomicInteger runs = server.bean(Api.class).runs;
            runs.set(0);
            for (int i = 0; i < 50; i++) {
                assertThat(server.http()
                                .get("/" + policy + "/" + path, basic("alice"))
                                .status())
                        .isEqualTo(i == 0 ? 200 : 429);
            }
            assertThat(runs).as(path).hasValue(5);
            assertThat(server.available("wide", "127.0.0.1"))
                    .as("what the filter itself refuses is given back")
                    .isEqualTo(995);
        }
    }

    static class Work {

        @RateLimited("narrow")
        public String once() {
            return "done";
        }
    }

    @Controller
    static class Api {

        final AtomicInteger runs = new AtomicInteger();
        private final Work work;

        Api(Work work) {
            this.work = work;
        }

        @GetMapping("/*/plain")
        @ResponseBody
        String plain() {
            runs.incrementAndGet();
            return work.once();
        }

        @GetMapping("/*/async")
        @ResponseBody
        Callable<String> async() {
            runs.incrementAndGet();
            return work::once;
        }

        /** Calls the method outside the reach of exception resolvers. */
        @GetMapping("/*/view")
        View view() {
            runs.incrementAndGet();
            return (Map<String, ?> model, HttpServletRequest request, HttpServletResponse response) ->
                    response.getWriter().write(work.once());
        }

        @Bean
        static ServletRegistrationBean<HttpServlet> servlet(Work work, Api api) {
            HttpServlet servlet = new HttpServlet() {
                @Override
                protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
                    api.runs.incrementAndGet();
                    response.getWriter().write(work.once());
                }
            };
            return new ServletRegistrationBean<>(servlet, "/early/servlet", "/written/servlet", "/late/servlet");
        }
    }
}
