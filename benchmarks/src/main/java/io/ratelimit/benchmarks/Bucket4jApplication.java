package io.ratelimit.benchmarks;

import io.github.bucket4j.Bucket;
import io.github.bucket4j.ConsumptionProbe;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.HttpStatus;
import org.springframework.web.filter.OncePerRequestFilter;

/** The smallest web application with a filter as one writes it by hand: three buckets, in maps that never forget. */
@Configuration(proxyBeanMethods = false)
@Import(HelloApplication.class)
public class Bucket4jApplication {

    public static void main(String[] args) {
        SpringApplication.run(Bucket4jApplication.class, args);
    }

    @Bean
    HandWrittenFilter handWrittenFilter(@Value("${hand-written.capacity}") long capacity) {
        return new HandWrittenFilter(capacity);
    }

    static final class HandWrittenFilter extends OncePerRequestFilter {

        private final long capacity;
        private final ConcurrentMap<String, Bucket> byClientAndPath = new ConcurrentHashMap<>();
        private final ConcurrentMap<String, Bucket> byPath = new ConcurrentHashMap<>();
        private final Bucket global;

        HandWrittenFilter(long capacity) {
            this.capacity = capacity;
            this.global = newBucket();
        }

        private Bucket newBucket() {
            return capacity == 1
                    ? Peers.bucket4j(1, 1, Duration.ofDays(1))
                    : Peers.bucket4j(capacity, 1_000_000, Duration.ofSeconds(1));
        }

        @Override
        protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                throws ServletException, IOException {
            String path = request.getRequestURI();
            Bucket narrowest =
                    byClientAndPath.computeIfAbsent(request.getRemoteAddr() + ' ' + path, key -> newBucket());
            ConsumptionProbe probe = narrowest.tryConsumeAndReturnRemaining(1);
            if (!probe.isConsumed()) {
                refuse(response, TimeUnit.NANOSECONDS.toSeconds(probe.getNanosToWaitForRefill()) + 1);
            } else if (!byPath.computeIfAbsent(path, key -> newBucket()).tryConsume(1) || !global.tryConsume(1)) {
                refuse(response, 1);
            } else {
                response.setHeader("X-Rate-Limit-Remaining", Long.toString(probe.getRemainingTokens()));
                chain.doFilter(request, response);
            }
        }

        private static void refuse(HttpServletResponse response, long seconds) throws IOException {
            response.setStatus(HttpStatus.TOO_MANY_REQUESTS.value());
            response.setHeader("X-Rate-Limit-Retry-After-Seconds", Long.toString(seconds));
            response.setContentType("application/json");
            response.getWriter().append("{\"message\":\"Too many requests\"}");
        }
    }
}
