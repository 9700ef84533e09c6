package io.ratelimit.autoconfigure;

import io.ratelimit.Decision;
import io.ratelimit.ThrottleEvent;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import java.util.stream.Stream;

/** All listeners there are, told one after the other. */
final class ThrottleListeners implements ThrottleListener {

    private final ThrottleListener[] each;

    ThrottleListeners(Stream<ThrottleListener> each) {
        this.each = each.toArray(ThrottleListener[]::new);
    }

    @Override
    public void decided(Decision decision) {
        for (ThrottleListener listener : each) {
            listener.decided(decision);
        }
    }

    @Override
    public void added(ThrottlePolicy policy) {
        for (ThrottleListener listener : each) {
            listener.added(policy);
        }
    }

    @Override
    public void happened(ThrottlePolicy policy, ThrottleEvent event) {
        for (ThrottleListener listener : each) {
            listener.happened(policy, event);
        }
    }

    @Override
    public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
        for (ThrottleListener listener : each) {
            listener.reconfigured(before, after);
        }
    }
}
