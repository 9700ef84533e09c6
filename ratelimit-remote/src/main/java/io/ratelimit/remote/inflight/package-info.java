/**
 * Calls in flight over several processes: each process has a register at the store for each key in use, with the slots that
 * it uses. Start at {@link io.ratelimit.remote.inflight.Register}, which has the rules of a process; those of the store are at
 * {@link io.ratelimit.remote.inflight.RegisterStore}.
 */
@NullMarked
package io.ratelimit.remote.inflight;

import org.jspecify.annotations.NullMarked;
