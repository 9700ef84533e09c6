package io.ratelimit;

import java.util.Set;
import java.util.TreeSet;

/** Thrown if no throttle policy has the requested name. */
public final class UnknownPolicyException extends IllegalArgumentException {

    private static final long serialVersionUID = 1;

    private final String policy;
    private final String[] policies;

    /** Creates the exception from the requested name and the names of all policies. */
    public UnknownPolicyException(String policy, Set<String> policies) {
        super("no throttle policy is named '" + policy + "'; the policies are: "
                + String.join(", ", new TreeSet<>(policies)));
        this.policy = policy;
        this.policies = policies.toArray(String[]::new);
    }

    /** Returns the requested name. */
    public String policy() {
        return policy;
    }

    /** Returns the names of all policies. */
    public Set<String> policies() {
        return Set.of(policies);
    }
}
