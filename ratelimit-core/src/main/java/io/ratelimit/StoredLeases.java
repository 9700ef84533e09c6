package io.ratelimit;

/**
 * The leases of a {@link StoredBucket}: the stretches of its time line whose tokens instances use by themselves.
 *
 * @param fullAt the tick at which time has paid for the leased tokens; no give-back pulls the bucket's moment nearer
 * @param endMicros the end of the last lease
 */
record StoredLeases(long fullAt, long endMicros) {
    /*
     * Why leased tokens are always within the limit. A take owns a stretch of the bucket's time line: from the later of
     * now and the moment at which the bucket was full before, to the moment at which it is full after. Stretches never
     * overlap. So the grants of any time own stretches within that time plus the time from empty to full, if each token
     * is used no later than its stretch begins, and no earlier than the time to full before its end. The tokens of a
     * lease are used after they are taken. Therefore their stretch begins at the end of the lease or later: what comes
     * back until then (the hold) is missing first, and the tokens come on top.
     *
     * Tokens that are given back pull the bucket's moment nearer, and with it the stretches of leases. Therefore a
     * second moment counts leases alone. A take on top of leases may then have to move before them, and time pays for it
     * sooner: the leased ticks were missing before the take, but they don't count as such.
     *
     * At 400/s, full, and a lease of 100 ms, 40 tokens are the hold. A lease of 50 leaves 310. After the lease 350 are
     * there, after another 125 ms all 400.
     */

    StoredLeases with(long now, long held, long ticks, long end) {
        return new StoredLeases(now + Math.max(missing(now), held) + ticks, Math.max(endMicros, end));
    }

    long missing(long now) {
        return BucketState.missing(fullAt, now);
    }

    /** Returns these leases of a bucket that was moved back from one moment of its time to an earlier one. */
    StoredLeases movedBack(long ticks, long fromMicros, long toMicros) {
        return new StoredLeases(fullAt - ticks, toMicros + Math.max(endMicros - fromMicros, 0));
    }

    /** Returns the state of a bucket that counts under its spec until the last lease ends, as if a call waited for the end. */
    BucketState promisedIn(BucketState state, long nanos) {
        TickScale scale = state.scale();
        long now = scale.at(nanos);
        long end = scale.atOrAfter(1_000 * endMicros);
        if (missing(now) == 0 || end - now <= 0) {
            return state;
        }
        Backlog backlog = state.backlog();
        long last = backlog.lastPromise(state.fullAt(), scale.full());
        Backlog after = backlog.owing(end - last > 0 ? end : last, backlog.owedTo());
        return new BucketState(scale, state.fullAt(), state.returned(), after);
    }
}
