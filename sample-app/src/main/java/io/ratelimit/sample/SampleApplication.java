package io.ratelimit.sample;

import org.springframework.aot.hint.MemberCategory;
import org.springframework.aot.hint.annotation.RegisterReflection;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Starts the shop on port 8080. Caffeine composes the names of the classes of {@link Plans}' cache from its options. */
@RegisterReflection(
        classNames = {"com.github.benmanes.caffeine.cache.SSMSW", "com.github.benmanes.caffeine.cache.PSWMS"},
        memberCategories = {MemberCategory.INVOKE_DECLARED_CONSTRUCTORS, MemberCategory.ACCESS_DECLARED_FIELDS})
@SpringBootApplication
public class SampleApplication {

    public static void main(String[] args) {
        SpringApplication.run(SampleApplication.class, args);
    }
}
