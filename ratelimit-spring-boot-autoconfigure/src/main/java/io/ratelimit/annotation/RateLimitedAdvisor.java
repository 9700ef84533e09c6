package io.ratelimit.annotation;

import io.ratelimit.Decision;
import io.ratelimit.Throttlers;
import java.lang.reflect.Method;
import java.util.function.Supplier;
import org.aopalliance.aop.Advice;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.ClassFilter;
import org.springframework.aop.Pointcut;
import org.springframework.aop.support.AbstractPointcutAdvisor;
import org.springframework.aop.support.StaticMethodMatcherPointcut;

/**
 * Holds calls of {@link RateLimited} methods to their limits: after method security, so that a call that is forbidden
 * takes no token, and before transactions and caches, so that a refused one opens none.
 */
public final class RateLimitedAdvisor extends AbstractPointcutAdvisor {

    /** Method security has 100 to 600; transactions and caches come last. */
    public static final int ORDER = 700;

    private static final long serialVersionUID = 1;

    private final transient Advice advice;
    private final transient Pointcut pointcut = new AnnotatedMethods();

    /**
     * @param throttlers asked for with the first call
     * @param operations what the annotations say; asked for with the first call
     */
    public RateLimitedAdvisor(Supplier<Throttlers> throttlers, Supplier<RateLimitedOperations> operations) {
        this.advice = new Interceptor(throttlers, operations);
        setOrder(ORDER);
    }

    @Override
    public Advice getAdvice() {
        return advice;
    }

    @Override
    public Pointcut getPointcut() {
        return pointcut;
    }

    private static final class AnnotatedMethods extends StaticMethodMatcherPointcut {

        AnnotatedMethods() {
            setClassFilter((ClassFilter) RateLimitedSearch::isCandidate);
        }

        @Override
        public boolean matches(Method method, Class<?> targetClass) {
            return !RateLimitedSearch.find(method, targetClass).isEmpty();
        }
    }

    private record Interceptor(Supplier<Throttlers> throttlers, Supplier<RateLimitedOperations> operations)
            implements MethodInterceptor {

        @Override
        public @Nullable Object invoke(MethodInvocation call) throws Throwable {
            RateLimitedOperation operation = operations.get().of(call);
            Decision decision = throttlers.get().decide(operation.charges(call.getArguments()));
            return decision.allowed() ? call.proceed() : operation.refuse(call, decision);
        }
    }
}
