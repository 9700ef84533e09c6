package io.ratelimit.replay;

import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.demand.Demand;
import io.ratelimit.demand.Demand.Suggestion;
import io.ratelimit.policy.RateLimitProperties;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The figures and sentences that the reports of a replay share. */
record Findings(
        ReplayOptions options,
        LogReader reader,
        LogFormat format,
        LogClock clock,
        UnreadLines unread,
        Replay replay,
        RateLimitProperties properties) {

    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss", Locale.ROOT);

    static String count(long count, String noun) {
        return String.format(Locale.ROOT, "%,d %s%s", count, noun, count == 1 ? "" : "s");
    }

    static String percent(long part, long whole) {
        double percent = whole == 0 ? 0 : 100.0 * part / whole;
        return percent == 0 ? "0 %" : String.format(Locale.ROOT, percent < 0.01 ? "%.4f %%" : "%.2f %%", percent);
    }

    String time(long nanos) {
        return TIME.format(Instant.ofEpochSecond(nanos / 1_000_000_000L).atZone(clock.zone()));
    }

    static String duration(Duration duration) {
        Duration shown = duration.compareTo(Duration.ofMinutes(2)) < 0
                ? Duration.ofMillis(duration.toMillis())
                : Duration.ofMinutes(duration.toMinutes());
        return shown.toString().substring(2).replaceAll("([HMS])(?=\\d)", "$1 ").toLowerCase(Locale.ROOT);
    }

    /** Returns a figure as one number, or as two if it depends on when in its second a request began. */
    static String range(long[] figures, String noun) {
        long min = Math.min(figures[0], figures[1]);
        long max = Math.max(figures[0], figures[1]);
        return min == max ? count(max, noun) : String.format(Locale.ROOT, "%,d to %s", min, count(max, noun));
    }

    /** Returns the figures of both arrangements, which are one if the stamps are exact. */
    long[] exact(long... figures) {
        return replay.hasExactStamps()
                ? new long[] {figures[PolicyResult.AT_ONCE], figures[PolicyResult.AT_ONCE]}
                : figures;
    }

    private boolean isRange(long[] figures) {
        return !replay.hasExactStamps() && figures[PolicyResult.SPREAD] != figures[PolicyResult.AT_ONCE];
    }

    /** Returns why the numbers of denied requests and keys of a policy may be too high; empty if nothing was denied. */
    List<String> doubts(PolicyResult result) {
        List<String> doubts = new ArrayList<>();
        if (result.denied[PolicyResult.SPREAD] + result.denied[PolicyResult.AT_ONCE] == 0) {
            return doubts;
        }
        note(doubts, replay.late(), "request", "requests", " began before others that had already been decided");
        note(doubts, result.overflows, "request", "requests", " shared an overflow bucket");
        note(
                doubts,
                result.withoutStatus,
                "request keeps its",
                "requests keep their",
                " tokens, since the log lacks their status (refund-on)");
        RateLimitProperties.Policy policy = properties.policies().get(result.policy.name());
        if (policy != null && policy.settle() != null) {
            doubts.add("a log has no actual costs (settle), so each request keeps its estimate");
        }
        return doubts;
    }

    /** Returns why the number of all denied requests may be too high. */
    List<String> doubts() {
        return replay.results().stream()
                .filter(result -> result.policy.mode() != Mode.SHADOW)
                .flatMap(result -> doubts(result).stream())
                .distinct()
                .toList();
    }

    boolean refunds(ThrottlePolicy policy) {
        RateLimitProperties.Policy configured = properties.policies().get(policy.name());
        return configured != null && !configured.refundOn().isEmpty();
    }

    long[] deniedKeys(PolicyResult result) {
        return exact(result.keys.marked(1 << PolicyResult.SPREAD), result.keys.marked(1 << PolicyResult.AT_ONCE));
    }

    static boolean isDecided(PolicyResult result) {
        return result.decided[PolicyResult.AT_ONCE] > 0 || result.undecided == 0;
    }

    /** Returns what was noticed about the log, one sentence each. */
    List<String> notes() {
        List<String> notes = new ArrayList<>(reader.problems());
        note(
                notes,
                replay.results().stream()
                        .filter(result -> result.policy.spec().inFlight() > 0)
                        .count(),
                "policy also limits",
                "policies also limit",
                " requests in flight, which a log doesn't show reliably: only the rates are replayed");
        note(notes, unread.count(), "line doesn't have", "lines don't have", " the format '" + format + "'");
        note(notes, reader.tooLong(), "line is", "lines are", " longer than 64 KB");
        note(notes, replay.withoutRequest(), "line has", "lines have", " no request, such as a connection without one");
        note(notes, replay.outsideContext(), "request is", "requests are", " outside the context path");
        note(notes, reader.notUtf8(), "line is", "lines are", " no UTF-8, and read as ISO 8859-1");
        note(
                notes,
                clock.contradicted(),
                "line has",
                "lines have",
                " another UTC offset than the lines around, which would move requests by hours: the offset of the lines"
                        + " around is used");
        if (clock.stepsBack() > 0) {
            notes.add("The time steps back " + count(clock.stepsBack(), "time") + ", by at most "
                    + duration(clock.largestStepBack()) + " (line " + clock.lineOfLargestStepBack()
                    + "). The requests are decided in the order of their times");
        }
        note(
                notes,
                replay.late(),
                "request began",
                "requests began",
                " before others that had already been decided, and were decided when the line was reached");
        if (replay.results().stream().anyMatch(result -> isRange(result.denied) || isRange(deniedKeys(result)))) {
            notes.add(
                    "The stamps are whole seconds: where two numbers are given, one is for the requests of each second"
                            + " spread evenly, and one for all of them at once");
        }
        return notes;
    }

    private static void note(List<String> notes, long count, String one, String several, String rest) {
        if (count > 0) {
            notes.add(String.format(Locale.ROOT, "%,d %s%s", count, count == 1 ? one : several, rest));
        }
    }

    /** Returns whether a policy has a rate for some requests. */
    private static boolean hasRate(RateLimitProperties.Policy policy) {
        return policy.limit() != null
                || policy.tiers().values().stream().anyMatch(tier -> tier.rate() != null)
                || policy.overrides().stream().anyMatch(override -> override.rate() != null);
    }

    /** Returns the policies that weren't asked, with the reason. */
    Map<String, String> notAsked() {
        Map<String, String> reasons = new LinkedHashMap<>();
        properties.policies().forEach((name, policy) -> {
            if (policy.appliesTo() == RateLimitProperties.AppliesTo.ANNOTATED) {
                reasons.put(name, "limits calls of methods, which a log doesn't contain");
            } else if (policy.mode() == Mode.OFF || properties.mode() == Mode.OFF) {
                reasons.put(name, "is off");
            } else if (replay.results().stream()
                    .noneMatch(result -> result.policy.name().equals(name))) {
                reasons.put(
                        name,
                        hasRate(policy)
                                ? "has a rate only in its tiers, overrides or bean, which is not replayed"
                                : "limits requests in flight, which a log doesn't show reliably");
            }
        });
        replay.results().stream()
                .filter(result -> !isDecided(result))
                .forEach(result -> reasons.put(result.policy.name(), "the log lacks " + result.lacks()));
        return reasons;
    }

    /** Returns the limit for the share of keys of the command line; null if there is none, or the traffic is too little. */
    @Nullable
    Suggestion suggestion(ThrottlePolicy policy, Demand demand) {
        return demand.isTooLittle(policy.isGlobal()) ? null : demand.suggest(options.touch(), options.within());
    }

    /** Returns whether the demand, which is measured for greedy refill, is that of a policy with another refill. */
    static boolean isCalendar(ThrottlePolicy policy) {
        return policy.spec().refill() == BucketSpec.Refill.CALENDAR;
    }

    static String describe(ThrottlePolicy policy) {
        return (policy.isGlobal() ? "one bucket" : "key " + String.join(", ", policy.key())) + ", "
                + yaml(policy.spec()) + (policy.mode() == Mode.SHADOW ? ", mode: shadow" : "");
    }

    static String yaml(BucketSpec spec) {
        return "rate: " + spec.rate() + ", capacity: " + spec.capacity()
                + (spec.refill() == BucketSpec.Refill.GREEDY
                        ? ""
                        : ", refill: " + spec.refill().name().toLowerCase(Locale.ROOT))
                + (spec.refill() == BucketSpec.Refill.CALENDAR ? ", zone: " + spec.zone() : "");
    }
}
