package io.ratelimit.annotation;

import io.ratelimit.Decision;
import io.ratelimit.Throttlers;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.ClassFilter;
import org.springframework.aop.config.AopConfigUtils;
import org.springframework.aop.framework.ProxyConfig;
import org.springframework.aop.support.DefaultPointcutAdvisor;
import org.springframework.aop.support.StaticMethodMatcherPointcut;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.util.ClassUtils;

/**
 * The advisor that charges calls of {@link RateLimited} methods. Its place is after method security, so a forbidden call
 * takes no token. It is also before transactions and caches, so a denied call opens no transaction.
 */
final class RateLimitedAdvisor extends DefaultPointcutAdvisor {

    /** Method security has the orders 100 to 600; transactions and caches come last. */
    static final int ORDER = 700;

    private static final long serialVersionUID = 1;

    /** @param beans contains the operations, which are created after the advisor */
    RateLimitedAdvisor(BeanFactory beans) {
        super(new AnnotatedMethods(beans), new Interceptor(beans));
        setOrder(ORDER);
    }

    private static final class AnnotatedMethods extends StaticMethodMatcherPointcut {

        private final BeanFactory beans;

        AnnotatedMethods(BeanFactory beans) {
            this.beans = beans;
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

        /** Returns whether proxies are subclasses, also of classes that have an interface. */
        private boolean extendsClasses() {
            return beans.getBean(AopConfigUtils.AUTO_PROXY_CREATOR_BEAN_NAME, ProxyConfig.class)
                    .isProxyTargetClass();
        }

        /** Proxies of lambdas and of other proxies always implement interfaces. */
        private boolean needsSubclass(Class<?> type) {
            return !Proxy.isProxyClass(type)
                    && !ClassUtils.isLambdaClass(type)
                    && (extendsClasses() || ClassUtils.getAllInterfacesForClass(type).length == 0);
        }
    }

    /** Looks the operations up once, with the first call. Thread-safe. */
    private static final class Interceptor implements MethodInterceptor {

        private final BeanFactory beans;
        private volatile @Nullable RateLimitedOperations found;

        Interceptor(BeanFactory beans) {
            this.beans = beans;
        }

        private RateLimitedOperations operations() {
            RateLimitedOperations operations = found;
            if (operations == null) {
                operations = beans.getBean(RateLimitedOperations.class);
                found = operations;
            }
            return operations;
        }

        @Override
        public @Nullable Object invoke(MethodInvocation call) throws Throwable {
            RateLimitedOperations operations = operations();
            Throttlers throttlers = operations.throttlers();
            RateLimitedOperation operation = operations.operation(call);
            Decision decision = acquire(throttlers, operation, call.getArguments());
            if (!decision.allowed()) {
                return operation.answerDenied(call, decision);
            }
            try {
                Object result = call.proceed();
                Object settled = operation.settles()
                        ? operation.settled(result, call.getArguments(), decision, throttlers)
                        : result;
                return decision.isInFlight() ? CallResult.ending(settled, decision::release) : settled;
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
