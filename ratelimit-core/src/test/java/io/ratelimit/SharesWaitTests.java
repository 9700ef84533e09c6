package io.ratelimit;

import java.time.Duration;

/** Calls that wait for their guaranteed share in memory. */
class SharesWaitTests extends SharesWaitContract {

    private final ManualTimeSource time = new ManualTimeSource();
    private final BucketStore store = BucketStore.local(time);

    @Override
    protected BucketStore store() {
        return store;
    }

    @Override
    protected void advance(Duration duration) {
        time.advance(duration);
    }

    @Override
    protected int histories() {
        return GrantOracle.steps(3_000);
    }
}
