package io.ratelimit.annotation;

import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.SourceLocation.Signature;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.aot.hint.ExecutableMode;
import org.springframework.aot.hint.ReflectionHints;
import org.springframework.aot.hint.annotation.SimpleReflectiveProcessor;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.util.ReflectionUtils;

/** The charges for calls of one method of one class, by all of its annotations. Thread-safe. */
final class RateLimitedOperation {

    private static final Comparator<MethodCharge> NARROWEST_FIRST = Comparator.<MethodCharge>comparingInt(
                    charge -> -charge.keySize())
            .thenComparing(charge -> charge.policy().name());

    private final List<MethodCharge> methodCharges;
    private final boolean constant;
    private final boolean settles;
    private volatile @Nullable Prepared prepared;

    RateLimitedOperation(List<MethodCharge> methodCharges) {
        this.methodCharges = methodCharges.stream().sorted(NARROWEST_FIRST).toList();
        this.constant = methodCharges.stream().allMatch(MethodCharge::isConstant);
        this.settles = methodCharges.stream().anyMatch(charge -> charge.settle() != null);
    }

    /** Returns the policies without a fallback. */
    List<ThrottlePolicy> rejecting() {
        return methodCharges.stream()
                .filter(charge -> charge.fallback() == null)
                .map(MethodCharge::policy)
                .toList();
    }

    List<Charge> charges(@Nullable Object[] arguments) {
        if (!constant) {
            return compute(arguments);
        }
        Prepared current = prepared;
        return current != null && current.isUpToDate(methodCharges) ? current.charges : prepare();
    }

    /** Reads the policies first: if one of them changes during the computation, the next call prepares again. */
    private List<Charge> prepare() {
        List<ThrottlePolicy> policies =
                methodCharges.stream().map(MethodCharge::policy).toList();
        Prepared fresh = new Prepared(policies, List.copyOf(compute(new Object[0])));
        prepared = fresh;
        return fresh.charges;
    }

    private List<Charge> compute(@Nullable Object[] arguments) {
        List<Charge> charges = new ArrayList<>(methodCharges.size());
        for (int i = 0; i < methodCharges.size(); i++) {
            Charge charge = methodCharges.get(i).charge(arguments);
            if (charge != null) {
                charges.add(charge);
            }
        }
        return charges;
    }

    /** Returns whether calls have an actual cost, which is known when they return. */
    boolean settles() {
        return settles;
    }

    /** Returns the result of a call, and settles the call when its value is there. */
    @Nullable
    Object settled(@Nullable Object result, @Nullable Object[] arguments, Decision decision, Throttlers throttlers) {
        return CallResult.settled(result, (value, mayWait) -> {
            @Nullable Object[] all = Arrays.copyOf(arguments, arguments.length + 1);
            all[arguments.length] = value;
            for (Answer taken : decision.taken()) {
                methodCharges.stream()
                        .filter(charge ->
                                charge.policy().name().equals(taken.policy().name()))
                        .forEach(charge -> charge.settle(taken, all, throttlers, mayWait));
            }
        });
    }

    /** @throws RateLimitExceededException if the limit has no fallback */
    @Nullable
    Object answerDenied(MethodInvocation call, Decision decision) throws Throwable {
        RateLimitExceededException denied = new RateLimitExceededException(decision);
        Fallback fallback = fallback(denied.policy(), call.getArguments());
        if (fallback == null) {
            throw noted(denied);
        }
        return fallback.call(call.getThis(), call.getArguments(), denied);
    }

    /** Returns the exception of a call, after the current request has noted it. */
    <T extends RuntimeException> T noted(T rejected) {
        methodCharges.get(0).current().noteRejectedCall(rejected);
        return rejected;
    }

    private @Nullable Fallback fallback(String policy, @Nullable Object[] arguments) {
        for (MethodCharge charge : methodCharges) {
            if (charge.policy().name().equals(policy) && charge.applies(arguments)) {
                return charge.fallback();
            }
        }
        return null;
    }

    /** Charges that are the same for all calls, until one of the policies changes. */
    private record Prepared(List<ThrottlePolicy> policies, List<Charge> charges) {

        boolean isUpToDate(List<MethodCharge> methodCharges) {
            for (int i = 0; i < policies.size(); i++) {
                if (policies.get(i) != methodCharges.get(i).policy()) {
                    return false;
                }
            }
            return true;
        }
    }

    /** @param withException whether the last parameter is the exception */
    record Fallback(Method method, boolean withException) {

        /** @throws IllegalArgumentException if the class has no method of that name that fits */
        static Fallback find(String name, Method limited, Class<?> type) {
            Fallback found = Stream.of(ReflectionUtils.getUniqueDeclaredMethods(type))
                    .filter(method -> method.getName().equals(name) && !method.isBridge())
                    .flatMap(method -> fitting(method, limited))
                    .findFirst()
                    .orElseThrow(() -> new IllegalArgumentException(type.getName() + " has no "
                            + (Signature.of(limited).suspends() ? "suspend function" : "method")
                            + " of that name with the same parameters, with or without a"
                            + " RateLimitExceededException at the end"));
            Class<?> expected = Signature.of(limited).result();
            Class<?> result = Signature.of(found.method).result();
            if (!expected.isAssignableFrom(result)) {
                throw new IllegalArgumentException(
                        "it returns " + result.getTypeName() + ", which isn't assignable to " + expected.getTypeName());
            }
            return found;
        }

        private static Stream<Fallback> fitting(Method method, Method limited) {
            Signature expected = Signature.of(limited);
            Signature found = Signature.of(method);
            int size = expected.parameters().size();
            if (expected.suspends() != found.suspends()) {
                return Stream.empty();
            } else if (expected.parameters().equals(found.parameters())) {
                return Stream.of(new Fallback(method, false));
            }
            boolean withException = found.parameters().size() == size + 1
                    && found.parameters().get(size).isAssignableFrom(RateLimitExceededException.class)
                    && expected.parameters().equals(found.parameters().subList(0, size));
            return withException ? Stream.of(new Fallback(method, true)) : Stream.empty();
        }

        /**
         * Calls the method. The continuation of a {@code suspend} function stays its last argument; Spring awaits the result.
         */
        @Nullable
        Object call(@Nullable Object target, @Nullable Object[] arguments, RateLimitExceededException denied)
                throws Throwable {
            @Nullable Object[] all = arguments;
            if (withException) {
                int last = Signature.of(method).parameters().size() - 1;
                all = Arrays.copyOf(arguments, arguments.length + 1);
                System.arraycopy(arguments, last, all, last + 1, arguments.length - last);
                all[last] = denied;
            }
            return AopUtils.invokeJoinpointUsingReflection(target, method, all);
        }

        /** Registers an annotated method for native images, and the methods of its class that may be the fallback. */
        static final class Hints extends SimpleReflectiveProcessor {

            @Override
            protected void registerMethodHint(ReflectionHints hints, Method limited) {
                super.registerMethodHint(hints, limited);
                Set<String> names = MergedAnnotations.from(limited).stream(RateLimited.class)
                        .map(annotation -> annotation.getString("fallback"))
                        .collect(Collectors.toSet());
                for (Method method : ReflectionUtils.getUniqueDeclaredMethods(limited.getDeclaringClass())) {
                    if (names.contains(method.getName())) {
                        hints.registerMethod(method, ExecutableMode.INVOKE);
                    }
                }
            }
        }
    }
}
