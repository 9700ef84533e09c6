package io.ratelimit.benchmarks;

import io.ratelimit.annotation.RateLimited;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** A call of an annotated method, beside a call of the same method through a proxy whose advice only proceeds. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class AnnotationBenchmark {

    private static final String PLENTY = "1000000/1s";
    private static final String CAPACITY = "1000000000";

    private Calls proxied;
    private Calls limited;
    private final Item item = new Item("alice");
    private int id;

    @Setup
    public void start() {
        ProxyFactory factory = new ProxyFactory(new Calls());
        factory.setProxyTargetClass(true);
        factory.addAdvice((MethodInterceptor) MethodInvocation::proceed);
        proxied = (Calls) factory.getProxy();
        limited = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .bannerMode(Banner.Mode.OFF)
                .logStartupInfo(false)
                .properties(Map.of("spring.main.register-shutdown-hook", "false"))
                .run()
                .getBean(Calls.class);
    }

    @Benchmark
    public int proxied() {
        return proxied.constant(id++ & 1023);
    }

    @Benchmark
    public int constantKey() {
        return limited.constant(id++ & 1023);
    }

    @Benchmark
    public int argumentAsKey() {
        return limited.argument(id++ & 1023);
    }

    @Benchmark
    public int expressionAsKey() {
        return limited.expression(item);
    }

    /** The methods. */
    public static class Calls {

        @RateLimited(name = "constant", rate = PLENTY, capacity = CAPACITY, key = "'all'")
        public int constant(int id) {
            return id;
        }

        @RateLimited(name = "argument", rate = PLENTY, capacity = CAPACITY, key = "#id")
        public int argument(int id) {
            return id;
        }

        @RateLimited(name = "expression", rate = PLENTY, capacity = CAPACITY, key = "#item.owner")
        public int expression(Item item) {
            return item.owner().length();
        }
    }

    /** An argument. */
    public record Item(String owner) {}

    /** An application with one bean. Its auto-configurations are in a file of its name. */
    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration
    public static class Application {

        @Bean
        Calls calls() {
            return new Calls();
        }
    }
}
