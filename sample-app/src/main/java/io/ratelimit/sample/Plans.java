package io.ratelimit.sample;

import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.LoadingCache;
import io.ratelimit.BucketSpec;
import io.ratelimit.key.LimitResolver;
import io.ratelimit.key.RequestFacts;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Component;

/** The limits that customers have by contract: one row each in a table, kept for a minute. */
@Component
class Plans implements LimitResolver {

    private final JdbcClient database;
    private final LoadingCache<String, Optional<BucketSpec>> cache = Caffeine.newBuilder()
            .maximumSize(10_000)
            .expireAfterWrite(Duration.ofMinutes(1))
            .build(this::read);

    Plans(JdbcClient database) {
        this.database = database;
    }

    /** Returns null for users without a plan of their own, who then have the policy's limit. */
    @Override
    public @Nullable BucketSpec limit(RequestFacts request) {
        String user = request.user();
        return user == null ? null : cache.get(user).orElse(null);
    }

    private Optional<BucketSpec> read(String customer) {
        return database.sql("select rate, capacity from plans where customer = ?")
                .param(customer)
                .query((row, number) -> BucketSpec.of(row.getString("rate")).withCapacity(row.getLong("capacity")))
                .optional();
    }

    /** Changes a customer's plan, from the next request on. */
    void change(String customer, BucketSpec plan) {
        int rows = database.sql("update plans set rate = ?, capacity = ? where customer = ?")
                .params(plan.rate().toString(), plan.capacity(), customer)
                .update();
        if (rows == 0) {
            database.sql("insert into plans (rate, capacity, customer) values (?, ?, ?)")
                    .params(plan.rate().toString(), plan.capacity(), customer)
                    .update();
        }
        cache.invalidate(customer);
    }
}
