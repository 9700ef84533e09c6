package io.ratelimit.benchmarks;

import org.springframework.boot.SpringApplication;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** The smallest web application with bucket4j's starter, which keeps its buckets in a cache of JCache. */
@Configuration(proxyBeanMethods = false)
@EnableCaching
@Import(HelloApplication.class)
public class Bucket4jStarterApplication {

    public static void main(String[] args) {
        SpringApplication.run(Bucket4jStarterApplication.class, args);
    }
}
