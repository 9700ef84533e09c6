package io.ratelimit.annotation;

import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ThrottlePolicy;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;

/** What one method of one class is charged for a call, by all of its annotations. Thread-safe. */
final class RateLimitedOperation {

    private static final Comparator<MethodCharge> NARROWEST_FIRST = Comparator.<MethodCharge>comparingInt(
                    charge -> -charge.keySize())
            .thenComparing(charge -> charge.policy().name());

    private final List<MethodCharge> charges;
    private final boolean constant;
    private volatile @Nullable Prepared prepared;

    RateLimitedOperation(List<MethodCharge> charges) {
        this.charges = charges.stream().sorted(NARROWEST_FIRST).toList();
        this.constant = charges.stream().allMatch(MethodCharge::isConstant);
    }

    List<Charge> charges(@Nullable Object[] arguments) {
        if (!constant) {
            return compute(arguments);
        }
        Prepared known = prepared;
        return known != null && known.isOf(charges) ? known.charges : prepare();
    }

    /** The policies are read first: if one is changed meanwhile, the next call prepares anew. */
    private List<Charge> prepare() {
        List<ThrottlePolicy> policies =
                charges.stream().map(MethodCharge::policy).toList();
        Prepared fresh = new Prepared(policies, List.copyOf(compute(new Object[0])));
        prepared = fresh;
        return fresh.charges;
    }

    private List<Charge> compute(@Nullable Object[] arguments) {
        List<Charge> computed = new ArrayList<>(charges.size());
        for (int i = 0; i < charges.size(); i++) {
            Charge charge = charges.get(i).of(arguments);
            if (charge != null) {
                computed.add(charge);
            }
        }
        return computed;
    }

    /** Asks the fallback of the limit that the exception names; without one the exception is thrown. */
    @Nullable
    Object refuse(MethodInvocation call, Decision decision) throws Throwable {
        RateLimitExceededException refused = new RateLimitExceededException(decision);
        Fallback fallback = fallback(refused.policy());
        if (fallback == null) {
            throw refused;
        }
        return fallback.call(call.getThis(), call.getArguments(), refused);
    }

    private @Nullable Fallback fallback(String policy) {
        for (MethodCharge charge : charges) {
            if (charge.policy().name().equals(policy)) {
                return charge.fallback();
            }
        }
        return null;
    }

    /** Charges that are the same for all calls, until one of the policies is changed. */
    private record Prepared(List<ThrottlePolicy> policies, List<Charge> charges) {

        boolean isOf(List<MethodCharge> methodCharges) {
            for (int i = 0; i < policies.size(); i++) {
                if (policies.get(i) != methodCharges.get(i).policy()) {
                    return false;
                }
            }
            return true;
        }
    }
}
