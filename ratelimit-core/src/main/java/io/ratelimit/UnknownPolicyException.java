package io.ratelimit;

import java.util.Set;
import java.util.TreeSet;

/** No throttle policy has the name that was asked for. */
public final class UnknownPolicyException extends IllegalArgumentException {

    private static final long serialVersionUID = 1;

    private final String policy;
    private final transient Set<String> known;

    public UnknownPolicyException(String policy, Set<String> known) {
        super("no throttle policy is named '" + policy + "'; the policies are: "
                + String.join(", ", new TreeSet<>(known)));
        this.policy = policy;
        this.known = Set.copyOf(known);
    }

    /** The name that was asked for. */
    public String policy() {
        return policy;
    }

    /** The names that there are. */
    public Set<String> known() {
        return known;
    }
}
