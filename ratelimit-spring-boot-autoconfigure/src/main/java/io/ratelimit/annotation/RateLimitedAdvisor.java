package io.ratelimit.annotation;

import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Throttlers;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.List;
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
 * Holds calls of {@link RateLimited} methods to their limits: after method security, so that a call that is forbidden
 * takes no token, and before transactions and caches, so that a refused one opens none.
 */
public final class RateLimitedAdvisor extends AbstractPointcutAdvisor {

    /** Method security has 100 to 600; transactions and caches come last. */
    public static final int ORDER = 700;

    private static final long serialVersionUID = 1;

    private final transient Advice advice;
    private final transient Pointcut pointcut;

    /**
     * @param throttlers asked for with the first call
     * @param operations what the annotations say; asked for with the first call
     * @param byClass whether proxies are subclasses, even where there is an interface
     */
    public RateLimitedAdvisor(
            Supplier<Throttlers> throttlers, Supplier<RateLimitedOperations> operations, BooleanSupplier byClass) {
        this.advice = new Interceptor(throttlers, operations);
        this.pointcut = new AnnotatedMethods(byClass);
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

        private final BooleanSupplier byClass;

        AnnotatedMethods(BooleanSupplier byClass) {
            this.byClass = byClass;
            setClassFilter((ClassFilter) RateLimitedSearch::isCandidate);
        }

        @Override
        public boolean matches(Method method, Class<?> targetClass) {
            boolean matches = !RateLimitedSearch.find(method, targetClass).isEmpty();
            if (matches && Modifier.isFinal(targetClass.getModifiers()) && needsSubclass(targetClass)) {
                throw new InvalidRateLimitedException(
                        "@RateLimited on " + Places.of(targetClass, method)
                                + " can't be enforced: the class is final, and no proxy can be made of it.",
                        "Make the class one that can be extended ('open' in Kotlin; a record can't be), or put the"
                                + " annotation on a method of another bean.");
            }
            return matches;
        }

        /** Proxies of what is a lambda or a proxy already are made by its interfaces in any case. */
        private boolean needsSubclass(Class<?> type) {
            return !Proxy.isProxyClass(type)
                    && !ClassUtils.isLambdaClass(type)
                    && (byClass.getAsBoolean() || ClassUtils.getAllInterfacesForClass(type).length == 0);
        }
    }

    private record Interceptor(Supplier<Throttlers> throttlers, Supplier<RateLimitedOperations> operations)
            implements MethodInterceptor {

        @Override
        public @Nullable Object invoke(MethodInvocation call) throws Throwable {
            RateLimitedOperation operation = operations.get().of(call);
            Decision decision = acquire(operation.charges(call.getArguments()));
            return decision.allowed() ? call.proceed() : operation.refuse(call, decision);
        }

        private Decision acquire(List<Charge> charges) {
            try {
                return throttlers.get().acquire(charges);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new RateLimitInterruptedException(stopped);
            }
        }
    }
}
