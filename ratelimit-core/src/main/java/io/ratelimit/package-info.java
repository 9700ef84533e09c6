/**
 * Token-bucket throttling, free of any framework.
 *
 * <p>Start at {@link io.ratelimit.Throttler}: it decides whether a call may proceed, and returns a
 * {@link io.ratelimit.Decision}. A {@link io.ratelimit.BucketSpec} is a rate and a capacity, a
 * {@link io.ratelimit.TimeSource} is the clock, a {@link io.ratelimit.BucketStore} holds the buckets. A
 * {@link io.ratelimit.TokenBucket} can be used on its own. Everything that is not public may change.
 *
 * <h2>How a bucket is kept</h2>
 *
 * <p><b>The state</b> ({@code BucketState}). A bucket is one long: the moment at which it will be full again. Taking
 * pushes the moment away, time brings it nearer, giving back pulls it nearer. A take is one compare-and-set. It is
 * denied if the moment would be further away than an empty bucket needs to fill up; the excess is the time to wait. A
 * state belongs to one spec. When a call comes with another spec, the state is closed and converted: its tokens are
 * kept, cut to the new capacity ({@code BucketConversion} has an example).
 *
 * <p><b>The scale of time</b> ({@code TickScale}). Moments are counted in ticks, chosen for each spec so that a clock
 * step and a token are both whole numbers of ticks: no operation rounds. A rate for which no tick is small enough is
 * rounded down by less than 1/10,000. Interval refill is the same with a clock that moves once a period, and calendar
 * refill with a clock on which all months have one length ({@link io.ratelimit.CalendarClock}).
 *
 * <p><b>The backlog</b> ({@code Backlog}). A call that may wait takes its tokens ahead, and the bucket is then in debt.
 * <i>Waiting:</i> the debt is the wait, so it is known at once, and later calls wait longer. <i>Promises:</i> tokens
 * given back during a debt return only as far as no later waiting call depends on them. <i>Late returns:</i> tokens
 * given back after their moment return only as far as time has not brought them back already. <i>Owed tokens:</i> a
 * call that costs more than its estimate puts the bucket into debt as well, but no call waits for them. {@code
 * StripedBucket} uses the same notion, that a take owns a stretch of the time line, to lend tokens to several threads.
 *
 * <p><b>Expiry</b> ({@code ExpiringBuckets}). A key may only be forgotten when its bucket is full, because a new key
 * gets a full bucket. An entry therefore lives for twice the time that its spec needs from empty to full, and use in the
 * second half of that life renews it. No bucket is evicted because there are many. An evicted state is closed, and a
 * thread that still holds it looks the key up again. {@code BucketIndex} leads from the hash of a key straight to its
 * state, past the map that owns the states; there too a closed state is looked up again.
 *
 * <p><b>Overflow</b> ({@code PolicyBuckets}). At {@code max-keys} a new key shares one of 4,096 overflow buckets,
 * chosen by a hash with a random key. When there is room again, the key gets its own bucket, short of what its overflow
 * bucket is missing. No drained key is refilled by this, and memory is bounded.
 *
 * <p><b>Guaranteed shares</b> ({@link io.ratelimit.Shares}). They are parts of one bucket that other calls can't take. A call with
 * a share may use what the pool has beyond the reserve, as all calls may; then a small bucket of its own, its lane ({@code
 * Lanes}), serves it, and the pool pays too.
 *
 * <p><b>Calls in flight</b> ({@code InFlightCalls}) are counted beside the tokens: a call takes its slots and its tokens, all or
 * none. {@code PolicySlots} has the slots in memory by their keys, and {@link io.ratelimit.SharedSlots} those that processes share.
 *
 * <h2>A decision over several buckets</h2>
 *
 * <p>{@link io.ratelimit.Throttlers#decide} passes the charges of the enforced policies to the {@link
 * io.ratelimit.BucketStore}, which takes all or none. {@code LocalBucketStore} finds each bucket in the {@code
 * PolicyBuckets} of its policy, and takes from one bucket after the other. If the second of three denies, the first
 * gets its tokens back, and the first and the third are only looked at: the decision then names every bucket that is
 * short. A call without a slot asks no bucket. The decision is allowed if all answers are. Its retry time is the
 * longest of the answers, plus jitter. Policies in shadow mode decide after the others have allowed the call, one by
 * one. The listener gets each decision. {@link io.ratelimit.Throttlers#acquire} waits: {@code WaitQueues} joins the
 * queue of each policy that is short, takes the tokens ahead, and parks the thread once.
 */
@NullMarked
package io.ratelimit;

import org.jspecify.annotations.NullMarked;
