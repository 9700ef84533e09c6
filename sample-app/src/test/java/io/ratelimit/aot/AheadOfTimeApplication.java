package io.ratelimit.aot;

import io.ratelimit.annotation.RateLimited;
import io.ratelimit.aot.AheadOfTimeApplication.Orders;
import io.ratelimit.sample.SampleApplication;
import org.springframework.aot.hint.annotation.RegisterReflectionForBinding;
import org.springframework.boot.SpringApplication;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** The sample application with an annotated service. Spring Boot finds generated code for a top-level class only. */
@Configuration(proxyBeanMethods = false)
@Import({SampleApplication.class, Orders.class})
class AheadOfTimeApplication {

    public static void main(String[] settings) {
        SpringApplication.run(AheadOfTimeApplication.class, settings);
    }

    record Order(String customer, int pieces) {}

    /** An application registers the types whose properties its expressions read. */
    @RegisterReflectionForBinding(Order.class)
    static class Orders {

        @RateLimited(name = "orders", rate = "5/1m", key = "#order.customer", cost = "#order.pieces")
        String place(Order order) {
            return "placed";
        }
    }
}
