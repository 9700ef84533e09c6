package io.ratelimit.annotation;

import io.ratelimit.Decision;
import io.ratelimit.Throttlers;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.aopalliance.aop.Advice;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.ClassFilter;
import org.springframework.aop.Pointcut;
import org.springframework.aop.support.AbstractPointcutAdvisor;
import org.springframework.aop.support.StaticMethodMatcherPointcut;
import org.springframework.util.ClassUtils;

/**
 * The advisor that charges calls of {@link RateLimited} methods. Its place is after method security, so a forbidden call
 * takes no token. It is also before transactions and caches, so a denied call opens no transaction.
 */
final class RateLimitedAdvisor extends AbstractPointcutAdvisor {

    /** Method security has the orders 100 to 600; transactions and caches come last. */
    static final int ORDER = 700;

    private static final long serialVersionUID = 1;

    private final transient Advice advice;
    private final transient Pointcut pointcut;

    /**
     * @param operations supplies the charges of annotated methods at the first call
     * @param proxyTargetClass whether proxies are subclasses, also of classes that have an interface
     */
    RateLimitedAdvisor(Supplier<RateLimitedOperations> operations, BooleanSupplier proxyTargetClass) {
        this.advice = new Interceptor(operations);
        this.pointcut = new AnnotatedMethods(proxyTargetClass);
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

        private final BooleanSupplier proxyTargetClass;

        AnnotatedMethods(BooleanSupplier proxyTargetClass) {
            this.proxyTargetClass = proxyTargetClass;
            setClassFilter((ClassFilter) RateLimitedScanner::isCandidate);
        }

        @Override
        public boolean matches(Method method, Class<?> targetClass) {
            boolean matches = !RateLimitedScanner.find(method, targetClass).isEmpty();
            if (matches && Modifier.isFinal(targetClass.getModifiers()) && needsSubclass(targetClass)) {
                throw new SourceLocation(targetClass, method)
                        .invalid(
                                "can't be enforced: the class is final, so no proxy can extend it",
                                "Make the class non-final ('open' in Kotlin; a record is always final), or move the"
                                        + " annotation to a method of another bean.");
            }
            return matches;
        }

        /** Proxies of lambdas and of other proxies always implement interfaces. */
        private boolean needsSubclass(Class<?> type) {
            return !Proxy.isProxyClass(type)
                    && !ClassUtils.isLambdaClass(type)
                    && (proxyTargetClass.getAsBoolean() || ClassUtils.getAllInterfacesForClass(type).length == 0);
        }
    }

    private record Interceptor(Supplier<RateLimitedOperations> operations) implements MethodInterceptor {

        @Override
        public @Nullable Object invoke(MethodInvocation call) throws Throwable {
            Throttlers throttlers = operations.get().throttlers();
            RateLimitedOperation operation = operations.get().operation(call);
            Decision decision = acquire(throttlers, operation, call.getArguments());
            if (!decision.allowed()) {
                return operation.answerDenied(call, decision);
            }
            try {
                Object result = call.proceed();
                Object settled = operation.settles()
                        ? operation.settled(result, call.getArguments(), decision, throttlers)
                        : result;
                return decision.isInFlight() ? InFlightResult.of(settled, decision::release) : settled;
            } catch (Throwable failure) {
                decision.release();
                throw failure;
            }
        }

        private static Decision acquire(
                Throttlers throttlers, RateLimitedOperation operation, @Nullable Object[] arguments) {
            try {
                return throttlers.acquire(operation.charges(arguments));
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw operation.noted(new RateLimitInterruptedException(interrupted));
            }
        }
    }
}
