package io.ratelimit.autoconfigure;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.PolicyListener;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.TimeSource;
import io.ratelimit.key.FailureListener;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;
import org.springframework.util.ClassUtils;

/**
 * A listener that logs denials and changes of policies. A policy has at most one line about denials in ten seconds, with
 * their number. A flood of requests thus causes no flood of lines, and the denials at its end are logged too. Lines contain
 * no data of requests. Thread-safe.
 */
final class PolicyLog implements ThrottleListener {

    private static final Log logger = LogFactory.getLog("io.ratelimit.logging.PolicyLog");
    private static final boolean HAS_FIELDS = ClassUtils.isPresent("org.slf4j.MDC", PolicyLog.class.getClassLoader());

    private final TimeSource time;

    /** @param time the clock of the pauses between lines */
    PolicyLog(TimeSource time) {
        this.time = time;
    }

    /**
     * Returns a listener that logs facts of requests that policies can't determine: for each policy at most one line in ten
     * seconds, with the count since the previous line. Lines contain only the given texts and no data of requests.
     */
    static FailureListener failures(TimeSource time) {
        Map<String, Failures> policies = new ConcurrentHashMap<>();
        return (policy, fact, reason) -> policies.computeIfAbsent(policy, name -> new Failures(name, time))
                .failed(fact + " (" + reason + ")");
    }

    /**
     * Writes a line with fields: as entries of SLF4J's MDC, which Spring Boot's structured logging prints, and patterns with
     * {@code %X}. Without SLF4J the line has no fields. The entries of the calling thread are afterwards as before.
     *
     * @param outcome null for a line without an outcome
     */
    static void write(String policy, @Nullable String outcome, Runnable line) {
        if (!HAS_FIELDS) {
            line.run();
            return;
        }
        Map<String, String> before = Objects.requireNonNullElse(MDC.getCopyOfContextMap(), Map.of());
        MDC.put("ratelimit.policy", policy);
        if (outcome != null) {
            MDC.put("ratelimit.outcome", outcome);
        }
        try {
            line.run();
        } finally {
            MDC.setContextMap(before);
        }
    }

    @Override
    public PolicyListener added(PolicyThrottler throttler) {
        return new Lines(throttler.configured());
    }

    @Override
    public void decided(Decision decision) {}

    private final class Lines implements PolicyListener {

        private final ThrottlePolicy configured;
        private final String policy;
        private final LineSampler denied;
        private final LineSampler shadowDenied;

        Lines(ThrottlePolicy configured) {
            this.configured = configured;
            this.policy = "Throttle policy '" + configured.name() + "'";
            this.denied = new LineSampler(time, requests -> log("denied", requests, ""));
            this.shadowDenied = new LineSampler(
                    time, requests -> log("shadow-denied", requests, "; it is in shadow mode, so none was rejected"));
        }

        private void log(String outcome, String requests, String suffix) {
            write(configured.name(), outcome, () -> logger.info(policy + " denied " + requests + suffix));
        }

        @Override
        public void decided(Decision decision, Answer answer) {
            if (!answer.allowed() && answer.outcome() != Outcome.BACKEND_FAILED) {
                (answer.policy().mode() == Mode.SHADOW ? shadowDenied : denied).count();
            }
        }

        @Override
        public boolean handlesReleased() {
            return false;
        }

        @Override
        public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
            write(configured.name(), null, () -> {
                log(policy, before.spec(), after.spec(), configured.spec());
                after.tiers()
                        .forEach((tier, spec) -> log(
                                policy + " in tier '" + tier + "'",
                                before.tiers().getOrDefault(tier, before.spec()),
                                spec,
                                configured.tiers().get(tier)));
            });
        }

        private static void log(String limit, BucketSpec before, BucketSpec after, @Nullable BucketSpec configured) {
            if (!after.equals(before)) {
                logger.info(
                        limit + (after.equals(configured) ? " is as configured again: " : " was changed at runtime: ")
                                + after + "; before: " + before);
            }
        }
    }

    private static final class Failures {

        private static final Log logger = LogFactory.getLog("io.ratelimit.logging.FailureLog");

        private final String policy;
        private final LineSampler lines;
        private volatile String latest = "";

        Failures(String policy, TimeSource time) {
            this.policy = policy;
            this.lines = new LineSampler(time, this::log);
        }

        void failed(String failure) {
            latest = failure;
            lines.count();
        }

        private void log(String requests) {
            write(
                    policy,
                    null,
                    () -> logger.warn(
                            "Throttle policy '" + policy + "' could not determine " + latest + ", for " + requests));
        }
    }

    /**
     * Counts requests and writes a line for them. The first one is written at once. The following ones are written together,
     * ten seconds after the previous line. Each counted request is part of a line in the end. Thread-safe.
     */
    static final class LineSampler {

        private static final long PAUSE_NANOS = Duration.ofSeconds(10).toNanos();

        private final TimeSource time;
        private final Consumer<String> writer;
        private final LongAdder requests = new LongAdder();
        private final AtomicLong due;
        private final AtomicBoolean scheduled = new AtomicBoolean();
        private volatile boolean written;
        private volatile long writtenAt;

        /**
         * @param writer writes a line, from the number of requests since the previous line: {@code its first request}, or
         *     {@code 1,000 requests in the last 4 min}
         */
        LineSampler(TimeSource time, Consumer<String> writer) {
            this.time = time;
            this.writer = writer;
            this.due = new AtomicLong(time.nanoTime());
        }

        /**
         * Counts a request, and writes a line if none was written in the last ten seconds. Leaves the next line to the scheduled
         * call if there is one: a second line would come too early.
         */
        void count() {
            requests.increment();
            if (scheduled.get()) {
                return;
            }
            long now = time.nanoTime();
            long seen = due.get();
            if (now - seen >= 0 && due.compareAndSet(seen, now + PAUSE_NANOS)) {
                write(now);
            } else if (scheduled.compareAndSet(false, true)) {
                try {
                    time.maintainAt(due.get(), this::writeScheduled);
                } catch (RuntimeException | Error failed) {
                    scheduled.set(false);
                    throw failed;
                }
            }
        }

        /** Clears the flag before the sum is read, so that a later request schedules another call. */
        private void writeScheduled() {
            long now = time.nanoTime();
            due.set(now + PAUSE_NANOS);
            scheduled.set(false);
            write(now);
        }

        private void write(long now) {
            long count = requests.sumThenReset();
            if (count > 0) {
                String noun = count == 1 ? " request" : " requests";
                String text = written
                        ? String.format(Locale.ROOT, "%,d%s in the last %s", count, noun, period(now - writtenAt))
                        : "its first" + (count == 1 ? "" : " " + count) + noun;
                writtenAt = now;
                written = true;
                writer.accept(text);
            }
        }

        private static String period(long nanos) {
            Duration period = Duration.ofNanos(nanos + Duration.ofSeconds(1).toNanos() - 1);
            return period.toMinutes() < 2
                    ? Math.max(period.toSeconds(), 1) + " s"
                    : period.toHours() < 2 ? period.toMinutes() + " min" : period.toHours() + " h";
        }
    }
}
