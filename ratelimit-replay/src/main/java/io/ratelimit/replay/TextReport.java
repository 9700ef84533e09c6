package io.ratelimit.replay;

import static io.ratelimit.replay.Findings.count;
import static io.ratelimit.replay.Findings.describe;
import static io.ratelimit.replay.Findings.duration;
import static io.ratelimit.replay.Findings.isCalendar;
import static io.ratelimit.replay.Findings.percent;
import static io.ratelimit.replay.Findings.range;
import static io.ratelimit.replay.Findings.yaml;

import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.demand.Demand;
import io.ratelimit.demand.Demand.Suggestion;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The findings of a replay as text. */
final class TextReport {

    private static final int MAX_KEYS = 5;

    private final Findings findings;

    TextReport(Findings findings) {
        this.findings = findings;
    }

    String text() {
        StringWriter text = new StringWriter();
        PrintWriter out = new PrintWriter(text);
        out.printf(
                "%s: %s, ",
                Terminal.escape(String.join(", ", findings.options().files)),
                count(findings.reader().lines(), "line"));
        out.printf(
                "%s from %s to ",
                count(findings.replay().requests(), "request"),
                findings.time(findings.replay().firstNanos()));
        out.printf(
                "%s %s%n",
                findings.time(findings.replay().lastNanos()), findings.clock().zone());
        findings.notes().forEach(note -> out.printf("  %s.%n", note));
        findings.unread().first().forEach(line -> out.printf("  %s%n", line));
        findings.replay().results().stream().filter(Findings::isDecided).forEach(result -> print(out, result));
        findings.notAsked().forEach((name, reason) -> out.printf("%n%s: not decided, %s.%n", name, reason));
        long[] denied = findings.replay().denied();
        String share = percent(Math.max(denied[0], denied[1]), findings.replay().requests());
        out.printf("%nDenied in all: %s, %s%s.%n", range(denied, "request"), share, text(findings.doubts()));
        return text.toString();
    }

    private void print(PrintWriter out, PolicyResult result) {
        ThrottlePolicy policy = result.policy;
        long decided = result.decided[PolicyResult.AT_ONCE];
        long[] denied = findings.exact(result.denied);
        long[] keys = findings.deniedKeys(result);
        String verb = policy.mode() == Mode.SHADOW ? "would deny" : "denies";
        out.printf("%n%s: %s%n  asked by %s", policy.name(), describe(policy), count(decided, "request"));
        if (!policy.isGlobal()) {
            out.printf(" of %s%s", result.keys.isFull() ? "more than " : "", count(result.keys.size(), "key"));
        }
        out.printf("; %s %s (%s)", verb, range(denied, "request"), percent(Math.max(denied[0], denied[1]), decided));
        if (!policy.isGlobal()) {
            out.printf(" of %s (%s)", range(keys, "key"), percent(Math.max(keys[0], keys[1]), result.keys.size()));
        }
        out.println(text(findings.doubts(result)));
        if (result.undecided > 0) {
            out.printf("  not decided: %s, the log lacks %s%n", count(result.undecided, "request"), result.lacks());
        }
        if (result.overflows > 0) {
            out.printf("  max-keys is reached: %s shared an overflow bucket%n", count(result.overflows, "request"));
        }
        result.outcomes.forEach((outcome, count) -> {
            if (outcome != Outcome.DENIED) {
                String name = outcome.name().toLowerCase(Locale.ROOT).replace('_', ' ');
                out.printf("  %s: %s%n", name, count(count, "request"));
            }
        });
        for (PolicyResult.DeniedKey key : result.deniedMost(MAX_KEYS)) {
            String format = result.countsAreExact() ? "%,7d" : "at most %,d";
            out.printf(
                    "  " + format + " denied: %s, %s to %s%n",
                    key.count,
                    Terminal.escape(key.name),
                    findings.time(key.first),
                    findings.time(key.last));
        }
        policy.tiers().keySet().forEach(tier -> printSuggestion(out, policy, tier));
        printSuggestion(out, policy, null);
    }

    private void printSuggestion(PrintWriter out, ThrottlePolicy policy, @Nullable String tier) {
        Demand demand = findings.replay().demand(policy.name(), tier);
        if (demand != null && demand.sample() > 0) {
            Suggestion suggestion = findings.suggestion(policy, demand);
            String aim = policy.isGlobal()
                    ? "to deny nothing"
                    : "to touch at most "
                            + percent(Math.round(findings.options().touch() * 1e6), 1_000_000) + " of the keys";
            out.printf("  %s%s: ", tier == null ? "" : tier + ", ", aim);
            if (demand.isTooLittle(policy.isGlobal())) {
                out.printf(
                        "too little traffic, %sin %s of the log (a limit is suggested after ten minutes%s)%n",
                        policy.isGlobal() ? "" : count(demand.keys(), "key") + " ",
                        duration(demand.measured()),
                        policy.isGlobal() ? "" : " with at least 30 keys");
            } else if (suggestion == null) {
                out.printf(
                        "none yet, since each limit takes longer from empty to full than the %s of the log%n",
                        duration(demand.measured()));
            } else {
                out.printf(
                        "%s%s%s%n",
                        yaml(suggestion.spec()),
                        isCalendar(policy) && tier == null ? ", refill: greedy" : "",
                        rest(policy, demand, suggestion));
            }
        }
    }

    /** Returns what a reader must know of a suggestion. */
    private String rest(ThrottlePolicy policy, Demand demand, Suggestion suggestion) {
        List<String> rest = new ArrayList<>();
        if (!policy.isGlobal()) {
            String followed = demand.keys() > demand.sample() ? "followed key" : "key";
            rest.add(String.format(
                    Locale.ROOT, "touches %,d of %s", suggestion.touched().keys(), count(demand.sample(), followed)));
        }
        if (suggestion.outermost()) {
            rest.add("a rate beyond the measured ones may fit better");
        }
        if (findings.refunds(policy)) {
            rest.add("an upper bound, since tokens that refund-on gives back count as used");
        }
        if (isCalendar(policy)) {
            rest.add("for refill: greedy, without a zone; with the refill of a calendar it denies more");
        }
        return rest.isEmpty() ? "" : " (" + String.join("; ", rest) + ")";
    }

    private static String text(List<String> doubts) {
        return doubts.isEmpty() ? "" : "; may be too high: " + String.join("; ", doubts);
    }
}
