package io.ratelimit.starter.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.jdbc.TestDatabase;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** Methods that are {@code @Transactional} and {@code @RateLimited}. */
@Tag("slow")
class TransactionTests {

    private static final String YAML = """
            ratelimit:
              backend: jdbc
              jdbc.timeout: 5s
              policies.orders: { rate: 1/1d, applies-to: annotated }
            """;

    @Test
    void anAllowedCallRunsInATransactionAndADeniedCallStartsNone() {
        String url = TestDatabase.url(TestDatabase.h2());
        try (JdbcApplication application = JdbcApplication.start(url, YAML, Orders.class, Begins.class)) {
            Orders orders = application.bean(Orders.class);
            AtomicInteger begun = application.bean(Begins.class).count;

            assertThat(begun).hasValue(0);
            assertThat(orders.placeInTransaction()).isTrue();
            assertThat(begun).hasValue(1);
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(orders::placeInTransaction);
            assertThat(begun).hasValue(1);
        }
    }

    static class Orders {

        @Transactional
        @RateLimited("orders")
        boolean placeInTransaction() {
            return TransactionSynchronizationManager.isActualTransactionActive();
        }
    }

    static class Begins implements TransactionExecutionListener {

        private final AtomicInteger count = new AtomicInteger();

        @Override
        public void beforeBegin(TransactionExecution transaction) {
            count.incrementAndGet();
        }
    }
}
