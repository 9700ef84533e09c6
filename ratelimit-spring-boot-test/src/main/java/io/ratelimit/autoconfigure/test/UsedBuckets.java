package io.ratelimit.autoconfigure.test;

import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.context.ApplicationContext;
import org.springframework.test.context.TestContext;
import org.springframework.test.context.TestExecutionListener;

/**
 * The buckets that calls have taken from, one charge for each. To remember them makes their reset independent of the place
 * where the store keeps them, and leaves the buckets of other applications in the same Redis alone. Thread-safe.
 */
final class UsedBuckets implements ThrottleListener {

    private final Map<List<String>, Charge> charges = new ConcurrentHashMap<>();

    @Override
    public void decided(Decision decision) {
        for (Answer taken : decision.taken()) {
            charges.putIfAbsent(List.of(taken.policy().name(), taken.charge().key()), taken.charge());
        }
    }

    private void reset(Throttlers throttlers) {
        charges.values().removeIf(charge -> {
            throttlers.reset(charge);
            return true;
        });
    }

    /** Resets the buckets before each test method. */
    static final class Reset implements TestExecutionListener {

        @Override
        public void beforeTestMethod(TestContext test) {
            ApplicationContext context = test.getApplicationContext();
            context.getBeanProvider(Throttlers.class).ifAvailable(context.getBean(UsedBuckets.class)::reset);
        }
    }
}
