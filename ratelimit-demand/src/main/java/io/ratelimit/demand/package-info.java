/**
 * Measures which limits the traffic of a policy needs.
 *
 * <p>Start at {@link io.ratelimit.demand.DemandListener}, which observes the decisions of all policies. A
 * {@link io.ratelimit.demand.DemandMeter} measures one policy or one tier, in bounded memory. A
 * {@link io.ratelimit.demand.Demand} is its result: the least capacity for each of nine rates, the share of keys that a
 * limit touches, and the tightest limit for a share of keys. Nothing here changes a limit.
 */
@NullMarked
package io.ratelimit.demand;

import org.jspecify.annotations.NullMarked;
