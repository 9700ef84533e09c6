package io.ratelimit.annotation;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.key.CurrentRequest;
import io.ratelimit.key.FailureListener;
import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.expression.spel.support.StandardEvaluationContext;
import org.springframework.util.ClassUtils;

/** What {@link RateLimited} says of each method, read once: at the start, or with a call that comes before. Thread-safe. */
public final class RateLimitedOperations {

    private final Map<Class<?>, Map<Method, RateLimitedOperation>> operations = new ConcurrentHashMap<>();
    private final Map<String, Set<Placed>> charges = new ConcurrentHashMap<>();
    private final RateLimitedReading reading;

    /** @param place the method, with the key and the wait that its calls have in place of the policy's */
    private record Placed(String place, MethodCharge charge) {}

    /**
     * @param policies those of the configuration that annotations may name, by name
     * @param mode of the limits that annotations bring themselves
     * @param current the request that a key may need
     * @param failures is told where what an annotation says can't be found out for a call
     * @param beans whose methods are annotated
     */
    public RateLimitedOperations(
            Map<String, AnnotatedPolicy> policies,
            ThrottlePolicy.Mode mode,
            Throttlers throttlers,
            CurrentRequest current,
            FailureListener failures,
            ConfigurableListableBeanFactory beans) {
        StandardEvaluationContext shared = new StandardEvaluationContext();
        shared.setBeanResolver(new BeanFactoryResolver(beans));
        this.reading = new RateLimitedReading(
                Map.copyOf(policies),
                throttlers,
                new OwnLimits(throttlers, mode),
                new CallExpressions(shared, beans.getBeanClassLoader()),
                new BeanTypes(beans),
                current,
                failures);
    }

    RateLimitedOperation of(MethodInvocation call) {
        Object target = call.getThis();
        return of(
                call.getMethod(),
                target != null ? target.getClass() : call.getMethod().getDeclaringClass());
    }

    /** The operation of a method that has the annotation. */
    RateLimitedOperation of(Method method, Class<?> type) {
        Map<Method, RateLimitedOperation> known = operations.get(type);
        RateLimitedOperation operation = known == null ? null : known.get(method);
        return operation != null ? operation : read(method, type);
    }

    private RateLimitedOperation read(Method method, Class<?> type) {
        Class<?> userType = ClassUtils.getUserClass(type);
        Method specific = AopUtils.getMostSpecificMethod(method, userType);
        List<MethodCharge> read = RateLimitedSearch.find(method, type).stream()
                .flatMap(annotation -> new RateLimitedReader(reading, annotation, specific, userType).read().stream())
                .toList();
        checkNames(read, userType, specific);
        read.forEach(charge -> charges.computeIfAbsent(charge.policy().name(), absent -> ConcurrentHashMap.newKeySet())
                .add(new Placed(
                        Places.of(userType, specific)
                                + (isOwn(charge) ? "" : charge.describeKey())
                                + charge.describeWait(),
                        charge)));
        RateLimitedOperation operation = new RateLimitedOperation(read);
        operations.computeIfAbsent(type, absent -> new ConcurrentHashMap<>()).put(method, operation);
        return operation;
    }

    /** Two limits of its own that have the name of the method would be one bucket, charged twice. */
    private void checkNames(List<MethodCharge> charges, Class<?> type, Method method) {
        Set<String> names = new HashSet<>();
        for (MethodCharge charge : charges) {
            String name = charge.policy().name();
            if (!names.add(name) && isOwn(charge)) {
                throw new InvalidRateLimitedException(
                        "@RateLimited on " + Places.of(type, method) + " has two limits of the name '" + name + "'.",
                        "Give each a name of its own, '@RateLimited(name = \"burst\", rate = …)'.");
            }
        }
    }

    /** Whether it is of a limit that the annotation brings itself: the key is that limit's own then. */
    private boolean isOwn(MethodCharge charge) {
        return !reading.policies().containsKey(charge.policy().name());
    }

    private Stream<Placed> of(String policy) {
        return charges.getOrDefault(policy, Set.of()).stream();
    }

    private boolean any(String policy, Predicate<MethodCharge> what) {
        return of(policy).map(Placed::charge).anyMatch(what);
    }

    /** The methods that a policy limits, as far as they have been read, with the key that they have in place of its own. */
    public Set<String> placesOf(String policy) {
        return of(policy).map(Placed::place).collect(Collectors.toUnmodifiableSet());
    }

    /** What a policy or a limit of its own is, if any method that has been read is held to it. */
    public @Nullable AnnotatedPolicy limit(String policy) {
        return of(policy).findAny().map(placed -> placed.charge().limit()).orElse(null);
    }

    /** Whether calls of any method that has been read may wait for tokens of a policy or a limit of its own. */
    public boolean letsWait(String policy) {
        return any(policy, MethodCharge::letsWait);
    }

    /** Whether any annotation that has been read gives calls keys of its own, which may have any number of parts. */
    public boolean givesKeys(String policy) {
        return any(policy, charge -> charge.key() != null);
    }

    /** Whether any annotation that has been read says which tier of a policy calls belong to. */
    public boolean givesTiers(String policy) {
        return any(policy, charge -> charge.tier() != null);
    }

    BeanTypes beans() {
        return reading.beans();
    }
}
