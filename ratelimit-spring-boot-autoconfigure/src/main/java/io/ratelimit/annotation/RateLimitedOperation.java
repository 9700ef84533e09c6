package io.ratelimit.annotation;

import io.ratelimit.Charge;
import io.ratelimit.Decision;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;

/** What one method of one class is charged for a call, by all of its annotations. Immutable. */
final class RateLimitedOperation {

    private static final Comparator<MethodCharge> NARROWEST_FIRST = Comparator.<MethodCharge>comparingInt(
                    charge -> -charge.keySize())
            .thenComparing(charge -> charge.policy().name());

    private final List<MethodCharge> charges;
    private final @Nullable List<Charge> constant;

    RateLimitedOperation(List<MethodCharge> charges) {
        this.charges = charges.stream().sorted(NARROWEST_FIRST).toList();
        this.constant =
                charges.stream().allMatch(MethodCharge::isConstant) ? List.copyOf(compute(new Object[0])) : null;
    }

    List<Charge> charges(@Nullable Object[] arguments) {
        return constant != null ? constant : compute(arguments);
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
}
