package io.ratelimit.annotation;

import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.CandidateBeans.CandidateBean;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestFacts;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.key.RequestKey;
import io.ratelimit.policy.RateLimitConfigurationException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.expression.spel.support.StandardEvaluationContext;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * The methods with {@link RateLimited} and their charges. Annotations are read once: by
 * {@link #afterSingletonsInstantiated} at the start, or by an earlier call of the method. Thread-safe.
 */
public final class RateLimitedOperations implements SmartInitializingSingleton {

    private final Map<Class<?>, Map<Method, RateLimitedOperation>> operations = new ConcurrentHashMap<>();
    private final Set<LimitedMethod> methods = ConcurrentHashMap.newKeySet();
    private final AnnotatedLimits limits;
    private final Throttlers throttlers;
    private final CandidateBeans beans;
    private final RateLimitedReader.Context context;

    /** @param description the method, with what its annotation replaces or adds */
    private record LimitedMethod(String description, MethodCharge charge) {}

    /**
     * @param policies the policies of the configuration that annotations may name
     * @param mode the mode of inline limits
     * @param currentRequest supplies the request that keys of policies are read from
     * @param failures notified if a key, a cost or a tier of a call can't be computed
     */
    public RateLimitedOperations(
            List<AnnotatedPolicy> policies,
            ThrottlePolicy.Mode mode,
            Throttlers throttlers,
            Current currentRequest,
            FailureListener failures,
            ConfigurableListableBeanFactory beans) {
        StandardEvaluationContext shared = new StandardEvaluationContext();
        shared.setBeanResolver(new BeanFactoryResolver(beans));
        this.limits = new AnnotatedLimits(policies, mode, throttlers, failures);
        this.throttlers = throttlers;
        this.beans = new CandidateBeans(beans);
        this.context = new RateLimitedReader.Context(
                limits, new CallExpressions(shared, beans.getBeanClassLoader()), this.beans, currentRequest);
    }

    /**
     * Reads the annotations of all beans, also of beans that are created later.
     *
     * @throws RateLimitConfigurationException if an annotation has a mistake or would not be enforced
     */
    @Override
    public void afterSingletonsInstantiated() {
        Validator validator = new Validator(this);
        for (CandidateBean bean : beans.candidates()) {
            validator.validate(bean);
        }
    }

    Throttlers throttlers() {
        return throttlers;
    }

    RateLimitedOperation operation(MethodInvocation call) {
        Object target = call.getThis();
        return operation(
                call.getMethod(),
                target != null ? target.getClass() : call.getMethod().getDeclaringClass());
    }

    RateLimitedOperation operation(Method method, Class<?> type) {
        Map<Method, RateLimitedOperation> ofType = operations.get(type);
        RateLimitedOperation operation = ofType == null ? null : ofType.get(method);
        return operation != null ? operation : read(method, type);
    }

    private RateLimitedOperation read(Method method, Class<?> type) {
        Class<?> userType = ClassUtils.getUserClass(type);
        SourceLocation location = new SourceLocation(userType, AopUtils.getMostSpecificMethod(method, userType));
        List<MergedAnnotation<RateLimited>> annotations = RateLimitedScanner.find(method, type);
        checkExempt(annotations, location);
        List<MethodCharge> charges = annotations.stream()
                .flatMap(annotation -> new RateLimitedReader(context, annotation, location).read().stream())
                .toList();
        checkNames(charges, location);
        charges.forEach(charge -> methods.add(new LimitedMethod(
                location + charge.describe(limits.isInline(charge.policy().name())), charge)));
        RateLimitedOperation operation = new RateLimitedOperation(charges);
        operations.computeIfAbsent(type, absent -> new ConcurrentHashMap<>()).put(method, operation);
        return operation;
    }

    private static void checkExempt(List<MergedAnnotation<RateLimited>> annotations, SourceLocation location) {
        for (MergedAnnotation<RateLimited> annotation : annotations) {
            Method annotated = RateLimitedScanner.annotatedMethod(annotation);
            if (annotated != null && RateLimitedScanner.isExempt(annotated)) {
                throw location.invalid(
                        "stands beside a @RateLimitExempt, which would free the calls of the limit",
                        "Remove one of them. To exempt only the requests of a handler, set 'ratelimit.exclude-paths', or"
                                + " move the @RateLimited to a method of another bean that the handler calls.");
            }
        }
    }

    /**
     * Two inline limits that have the name of their method would be one bucket, which each call charges twice. The answers
     * of a call are settled, and its fallback is found, by the names of their policies.
     */
    private void checkNames(List<MethodCharge> charges, SourceLocation location) {
        Map<String, MethodCharge> named = new HashMap<>();
        for (MethodCharge charge : charges) {
            String name = charge.policy().name();
            MethodCharge other = named.put(name, charge);
            if (other != null && limits.isInline(name)) {
                throw location.invalid(
                        "has two limits with the name '" + name + "'",
                        "Give each limit a different name, as in '@RateLimited(name = \"burst\", rate = …)'.");
            } else if (other != null && (charge.settle() != null || other.settle() != null)) {
                throw location.invalid(
                        "has a settle, and names the throttle policy '" + name + "' twice",
                        "Name the policy once, or remove the settle.");
            } else if (other != null
                    && (charge.condition() == null || other.condition() == null)
                    && !Objects.equals(charge.fallback(), other.fallback())) {
                throw location.invalid(
                        "has two fallbacks, or one and none, for the throttle policy '" + name + "'",
                        "Name the policy once, or give both annotations the same fallback.");
            }
        }
    }

    /** Returns the policies that may reject calls of a bean's method: all that limit it and have no fallback there. */
    public List<ThrottlePolicy> rejecting(Method method, Class<?> type) {
        return RateLimitedScanner.find(method, type).isEmpty()
                ? List.of()
                : operation(method, type).rejecting();
    }

    private Stream<LimitedMethod> methods(String policy) {
        return methods.stream().filter(method -> method.charge().policy().name().equals(policy));
    }

    private boolean any(String policy, Predicate<MethodCharge> condition) {
        return methods(policy).map(LimitedMethod::charge).anyMatch(condition);
    }

    /**
     * Returns descriptions of the methods that a policy limits, as far as they have been read. A description contains the
     * key and the wait that replace the policy's, the actual cost, and the condition.
     */
    public Set<String> describeMethods(String policy) {
        return methods(policy).map(LimitedMethod::description).collect(Collectors.toUnmodifiableSet());
    }

    /** Returns the policy or inline limit of that name; null if it limits no method that has been read. */
    public @Nullable AnnotatedPolicy limit(String policy) {
        return methods(policy).findAny().map(method -> method.charge().limit()).orElse(null);
    }

    /** Returns whether a policy or inline limit lets calls of any method wait, among those that have been read. */
    public boolean mayWait(String policy) {
        return any(policy, MethodCharge::mayWait);
    }

    /** Returns whether an annotation that has been read replaces a policy's key, by a key of any number of parts. */
    public boolean givesKeys(String policy) {
        return any(policy, charge -> charge.key() != null);
    }

    /**
     * Returns whether all calls of a policy share one bucket: it has no key, and no annotation that has been read gives one.
     *
     * @param operations looked up with each test, since annotations are read after the policies; none without annotations
     */
    public static Predicate<ThrottlePolicy> oneBucket(ObjectProvider<RateLimitedOperations> operations) {
        return policy -> policy.isGlobal() && operations.stream().noneMatch(read -> read.givesKeys(policy.name()));
    }

    /** Returns whether annotations replace a policy's key for all calls of the methods that have been read. */
    public boolean giveAllKeys(String policy) {
        return givesKeys(policy) && !any(policy, charge -> charge.key() == null);
    }

    /** Returns whether an annotation that has been read settles calls in a bucket that all calls share. */
    public boolean settlesOneBucket(String policy) {
        return any(policy, MethodCharge::settlesOneBucket);
    }

    /** Returns whether an annotation that has been read chooses the tier of calls. */
    public boolean givesTiers(String policy) {
        return any(policy, charge -> charge.tier() != null);
    }

    /**
     * A policy for the calls of annotated methods: one of the configuration, or an inline limit.
     *
     * @param key the key of a call if the annotation has none
     * @param cost the tokens of a call if the annotation has no cost; its maximum also holds for costs of annotations
     */
    public record AnnotatedPolicy(PolicyThrottler throttler, RequestKey key, RequestCost cost) {

        /** Returns the policy with its present limits. */
        ThrottlePolicy policy() {
            return throttler.policy();
        }

        /** Returns the policy's own cost of a call. A cost that depends on a request is 1 if there is no request. */
        long cost(Current current) {
            Long constant = cost.constant();
            RequestFacts request = constant == null ? current.facts() : null;
            return request == null ? cost.minTokens() : cost.tokens(request, policy().name(), key.failures());
        }
    }

    /**
     * Reads the annotations of all beans at the start, also of beans that are created later. An annotation that has a mistake
     * or would not be enforced stops the start.
     */
    private record Validator(RateLimitedOperations operations) {

        void validate(CandidateBean bean) {
            List<Method> methods = methods(bean.type());
            for (Method method : methods) {
                checkCanBeProxied(method, bean.type());
            }
            List<Method> limited = new ArrayList<>();
            for (Method method : methods) {
                if (!RateLimitedScanner.find(method, bean.type()).isEmpty()) {
                    limited.add(method);
                }
            }
            if (limited.isEmpty()) {
                return;
            }
            if (!bean.type().isInterface()) { // of an interface, the class is unknown until the bean is created
                limited.forEach(method -> operations.operation(method, bean.type()));
            }
            if (bean.isCreated() && !bean.isAdvised()) {
                throw new SourceLocation(bean.type(), limited.get(0))
                        .invalid(
                                "would not be enforced: the bean '" + bean.name()
                                        + "' has no proxy that enforces limits. The"
                                        + " bean was proxied by hand, or created too early, as a dependency of a"
                                        + " BeanPostProcessor",
                                "Let Spring create the proxy, or remove the early dependency on the bean.");
            }
            if (RateLimitedScanner.isController(bean.type())) {
                methods.forEach(method -> checkControllerMethod(method, bean.type()));
            }
        }

        private static List<Method> methods(Class<?> type) {
            boolean isProxy = Proxy.isProxyClass(type);
            List<Method> methods = new ArrayList<>();
            for (Method method : isProxy ? new Method[0] : ReflectionUtils.getUniqueDeclaredMethods(type)) {
                if (!method.isSynthetic()) {
                    methods.add(method);
                }
            }
            for (Class<?> declaring : RateLimitedScanner.interfaces(type)) {
                for (Method method : ReflectionUtils.getDeclaredMethods(declaring)) {
                    if ((isProxy || method.isDefault()) && !Modifier.isStatic(method.getModifiers())) {
                        methods.add(method);
                    }
                }
            }
            return methods;
        }

        /**
         * A method that a proxy can't override would run without a limit. A final one would also run on the proxy itself, whose
         * fields are null.
         */
        private static void checkCanBeProxied(Method method, Class<?> type) {
            String obstacle = obstacle(method);
            boolean isAnnotated = obstacle != null && RateLimitedScanner.isOn(method);
            boolean isCoveredByType = "final".equals(obstacle)
                    && !Proxy.isProxyClass(type)
                    && RateLimitedScanner.isOnHierarchyOf(method.getDeclaringClass())
                    && !RateLimitedScanner.find(method, type).isEmpty();
            if (isAnnotated || isCoveredByType) {
                throw new SourceLocation(type, method)
                        .invalid(
                                "can't be enforced: the method is " + obstacle + ", so no proxy can override it",
                                "Make the method public and not final or static, or move the annotation to a method of another"
                                        + " bean that calls it.");
            }
        }

        private static @Nullable String obstacle(Method method) {
            int modifiers = method.getModifiers();
            return Modifier.isPrivate(modifiers)
                    ? "private"
                    : Modifier.isStatic(modifiers) ? "static" : Modifier.isFinal(modifiers) ? "final" : null;
        }

        private static void checkControllerMethod(Method method, Class<?> type) {
            String obstacle = obstacle(method);
            if (obstacle != null && !obstacle.equals("static") && RateLimitedScanner.isCalledByMvc(method)) {
                throw new RateLimitConfigurationException(
                        type.getName() + " has a proxy for its @RateLimited methods, but "
                                + new SourceLocation(type, method) + " is " + obstacle
                                + ": Spring MVC would call it on the proxy, whose fields are null.",
                        "Make the method public and not final.");
            }
        }
    }
}
