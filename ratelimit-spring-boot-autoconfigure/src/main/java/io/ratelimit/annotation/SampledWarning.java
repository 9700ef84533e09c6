package io.ratelimit.annotation;

import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/** A warning of what calls may do often: logged at most once in ten seconds. Nothing of a call is in it. */
final class SampledWarning {

    private static final Log logger = LogFactory.getLog(RateLimited.class);
    private static final long PAUSE = Duration.ofSeconds(10).toNanos();

    private final TimeSource time;
    private final String text;
    private final AtomicLong due;

    SampledWarning(TimeSource time, String text) {
        this.time = time;
        this.text = text;
        this.due = new AtomicLong(time.nanoTime());
    }

    void log(String why) {
        long now = time.nanoTime();
        long before = due.get();
        if (now - before >= 0 && due.compareAndSet(before, now + PAUSE)) {
            logger.warn(text + why);
        }
    }
}
