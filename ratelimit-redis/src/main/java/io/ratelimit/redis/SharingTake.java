package io.ratelimit.redis;

import io.ratelimit.redis.RedisScript.Started;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A take that may share its call of the script with other takes. Thread-safe. */
abstract class SharingTake extends Started {

    private volatile @Nullable Shared shared;

    private record Shared(List<? extends SharingTake> takes, Started call) {

        void cancelIfAbandoned() {
            if (takes.stream().allMatch(SharingTake::isDone)) {
                call.cancel(true);
            }
        }
    }

    /** Has takes wait for a call that was started. */
    static void share(List<? extends SharingTake> takes, Started call) {
        Shared shared = new Shared(takes, call);
        for (SharingTake take : takes) {
            take.shared = shared;
        }
        shared.cancelIfAbandoned(); // takes may have timed out while the call was started
    }

    boolean isStarted() {
        return shared != null;
    }

    @Override
    long sentAt() {
        Shared sent = shared;
        return sent == null ? 0 : sent.call.sentAt();
    }

    /** Cancels the call as well, if no other take waits for it. */
    @Override
    public boolean cancel(boolean mayInterrupt) {
        boolean cancelled = super.cancel(mayInterrupt);
        Shared sent = shared;
        if (sent != null) {
            sent.cancelIfAbandoned();
        }
        return cancelled;
    }
}
