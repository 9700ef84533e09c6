package io.ratelimit.replay;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.demand.Demand;
import io.ratelimit.demand.Demand.Suggestion;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.ObjectWriteContext;
import tools.jackson.core.json.JsonFactory;

/** The result of a replay as text, as JSON and as a page. */
final class Report {

    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss", Locale.ROOT);
    private static final double[] SHARES = {0.5, 0.9, 0.99, 0.999, 1};
    private static final int KEYS_IN_TEXT = 5;
    private static final int KEYS = 50;

    private final ReplayOptions options;
    private final LogReader reader;
    private final LogFormat format;
    private final LogClock clock;
    private final UnreadLines unread;
    private final Replay replay;
    private final RateLimitProperties properties;
    private final ZoneId zone;

    Report(
            ReplayOptions options,
            LogReader reader,
            LogFormat format,
            LogClock clock,
            UnreadLines unread,
            Replay replay,
            RateLimitProperties properties) {
        this.options = options;
        this.reader = reader;
        this.format = format;
        this.clock = clock;
        this.unread = unread;
        this.replay = replay;
        this.properties = properties;
        this.zone = clock.zone();
    }

    static String count(long count, String noun) {
        return String.format(Locale.ROOT, "%,d %s%s", count, noun, count == 1 ? "" : "s");
    }

    private static String percent(long part, long whole) {
        double percent = whole == 0 ? 0 : 100.0 * part / whole;
        return percent == 0 ? "0 %" : String.format(Locale.ROOT, percent < 0.01 ? "%.4f %%" : "%.2f %%", percent);
    }

    private String time(long nanos) {
        return TIME.format(Instant.ofEpochSecond(nanos / 1_000_000_000L).atZone(zone));
    }

    private static String duration(Duration duration) {
        Duration shown = duration.compareTo(Duration.ofMinutes(2)) < 0
                ? Duration.ofMillis(duration.toMillis())
                : Duration.ofMinutes(duration.toMinutes());
        return shown.toString().substring(2).replaceAll("([HMS])(?=\\d)", "$1 ").toLowerCase(Locale.ROOT);
    }

    /** Returns a figure as one number, or as two if it depends on when in its second a request began. */
    private static String range(long[] figures, String noun) {
        long min = Math.min(figures[0], figures[1]);
        long max = Math.max(figures[0], figures[1]);
        return min == max ? count(max, noun) : String.format(Locale.ROOT, "%,d to %s", min, count(max, noun));
    }

    /** Returns the figures of both arrangements, which are one if the stamps are exact. */
    private long[] exact(long... figures) {
        return replay.hasExactStamps()
                ? new long[] {figures[PolicyResult.AT_ONCE], figures[PolicyResult.AT_ONCE]}
                : figures;
    }

    private boolean isRange(long[] figures) {
        return !replay.hasExactStamps() && figures[PolicyResult.SPREAD] != figures[PolicyResult.AT_ONCE];
    }

    /** Returns why the numbers of denied requests and keys of a policy may be too high; empty if nothing was denied. */
    private List<String> doubts(PolicyResult result) {
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
    private List<String> doubts() {
        return replay.results().stream()
                .filter(result -> result.policy.mode() != Mode.SHADOW)
                .flatMap(result -> doubts(result).stream())
                .distinct()
                .toList();
    }

    private static String text(List<String> doubts) {
        return doubts.isEmpty() ? "" : "; may be too high: " + String.join("; ", doubts);
    }

    private long[] deniedKeys(PolicyResult result) {
        return exact(result.keys.marked(1 << PolicyResult.SPREAD), result.keys.marked(1 << PolicyResult.AT_ONCE));
    }

    private static boolean isDecided(PolicyResult result) {
        return result.decided[PolicyResult.AT_ONCE] > 0 || result.undecided == 0;
    }

    /** Returns what was noticed about the log, one sentence each. */
    private List<String> notes() {
        List<String> notes = new ArrayList<>(reader.problems());
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

    /** Returns the policies that weren't asked, with the reason. */
    private Map<String, String> notAsked() {
        Map<String, String> reasons = new LinkedHashMap<>();
        properties.policies().forEach((name, policy) -> {
            if (policy.appliesTo() == RateLimitProperties.AppliesTo.ANNOTATED) {
                reasons.put(name, "limits calls of methods, which a log doesn't contain");
            } else if (policy.mode() == Mode.OFF || properties.mode() == Mode.OFF) {
                reasons.put(name, "is off");
            }
        });
        replay.results().stream()
                .filter(result -> !isDecided(result))
                .forEach(result -> reasons.put(result.policy.name(), "the log lacks " + result.lacks()));
        return reasons;
    }

    String text() {
        StringWriter text = new StringWriter();
        PrintWriter out = new PrintWriter(text);
        out.printf("%s: %s, ", String.join(", ", options.files), count(reader.lines(), "line"));
        out.printf("%s from %s to ", count(replay.requests(), "request"), time(replay.firstNanos()));
        out.printf("%s %s%n", time(replay.lastNanos()), zone);
        notes().forEach(note -> out.printf("  %s.%n", note));
        unread.first().forEach(line -> out.printf("  %s%n", line));
        replay.results().stream().filter(Report::isDecided).forEach(result -> print(out, result));
        notAsked().forEach((name, reason) -> out.printf("%n%s: not decided, %s.%n", name, reason));
        long[] denied = replay.denied();
        String share = percent(Math.max(denied[0], denied[1]), replay.requests());
        out.printf("%nDenied in all: %s, %s%s.%n", range(denied, "request"), share, text(doubts()));
        return text.toString();
    }

    private void print(PrintWriter out, PolicyResult result) {
        ThrottlePolicy policy = result.policy;
        long decided = result.decided[PolicyResult.AT_ONCE];
        long[] denied = exact(result.denied);
        long[] keys = deniedKeys(result);
        String verb = policy.mode() == Mode.SHADOW ? "would deny" : "denies";
        out.printf("%n%s: %s%n  asked by %s", policy.name(), describe(policy), count(decided, "request"));
        if (!policy.isGlobal()) {
            out.printf(" of %s%s", result.keys.isFull() ? "more than " : "", count(result.keys.size(), "key"));
        }
        out.printf("; %s %s (%s)", verb, range(denied, "request"), percent(Math.max(denied[0], denied[1]), decided));
        if (!policy.isGlobal()) {
            out.printf(" of %s (%s)", range(keys, "key"), percent(Math.max(keys[0], keys[1]), result.keys.size()));
        }
        out.println(text(doubts(result)));
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
        for (PolicyResult.DeniedKey key : result.deniedMost(KEYS_IN_TEXT)) {
            String format = result.countsAreExact() ? "%,7d" : "at most %,d";
            out.printf("  " + format + " denied: %s, %s to %s%n", key.count, key.name, time(key.first), time(key.last));
        }
        policy.tiers().keySet().forEach(tier -> printSuggestion(out, policy, tier));
        printSuggestion(out, policy, null);
    }

    private void printSuggestion(PrintWriter out, ThrottlePolicy policy, @Nullable String tier) {
        Demand demand = replay.demand(policy.name(), tier);
        Suggestion suggestion = demand == null ? null : demand.suggest(options.touch, options.within);
        if (demand != null && demand.sample() > 0) {
            String aim = policy.isGlobal()
                    ? "to deny nothing"
                    : "to touch at most " + percent(Math.round(options.touch * 1e6), 1_000_000) + " of the keys";
            out.printf("  %s%s: ", tier == null ? "" : tier + ", ", aim);
            if (suggestion == null) {
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
        if (properties.refunds(policy)) {
            rest.add("an upper bound, since tokens that refund-on gives back count as used");
        }
        if (isCalendar(policy)) {
            rest.add("for refill: greedy, without a zone; with the refill of a calendar it denies more");
        }
        return rest.isEmpty() ? "" : " (" + String.join("; ", rest) + ")";
    }

    /** Returns whether the demand, which is measured for greedy refill, is that of a policy with another refill. */
    private static boolean isCalendar(ThrottlePolicy policy) {
        return policy.spec().refill() == BucketSpec.Refill.CALENDAR;
    }

    private static String describe(ThrottlePolicy policy) {
        return (policy.isGlobal() ? "one bucket" : "key " + String.join(", ", policy.key())) + ", "
                + yaml(policy.spec()) + (policy.mode() == Mode.SHADOW ? ", mode: shadow" : "");
    }

    private static String yaml(BucketSpec spec) {
        return "rate: " + spec.rate() + ", capacity: " + spec.capacity()
                + (spec.refill() == BucketSpec.Refill.GREEDY
                        ? ""
                        : ", refill: " + spec.refill().name().toLowerCase(Locale.ROOT))
                + (spec.refill() == BucketSpec.Refill.CALENDAR ? ", zone: " + spec.zone() : "");
    }

    /** Returns the whole result. Moments are in milliseconds since 1970. */
    private Map<String, Object> tree() {
        Map<String, Object> tree = new LinkedHashMap<>();
        tree.put("files", options.files);
        tree.put("format", format.toString());
        tree.put("lines", reader.lines());
        tree.put("unreadableLines", unread.count() + reader.tooLong());
        tree.put("requests", replay.requests());
        tree.put("zone", zone.toString());
        tree.put("first", replay.firstNanos() / 1_000_000);
        tree.put("last", replay.lastNanos() / 1_000_000);
        tree.put("notes", notes());
        tree.put("unreadable", unread.first());
        tree.put("denied", replay.denied());
        tree.put("mayBeTooHigh", doubts());
        tree.put("notDecided", notAsked());
        tree.put("binMillis", replay.bins().widthNanos() / 1_000_000);
        tree.put("binStart", replay.firstNanos() / 1_000_000);
        tree.put("requestBins", replay.bins().counts(0));
        List<Object> policies = new ArrayList<>();
        for (PolicyResult result : replay.results()) {
            if (isDecided(result)) {
                policies.add(tree(result));
            }
        }
        tree.put("policies", policies);
        return tree;
    }

    private Map<String, Object> tree(PolicyResult result) {
        ThrottlePolicy policy = result.policy;
        Map<String, Object> tree = new LinkedHashMap<>();
        tree.put("name", policy.name());
        tree.put("limit", describe(policy));
        tree.put("shadow", policy.mode() == Mode.SHADOW);
        tree.put("global", policy.isGlobal());
        tree.put("decided", result.decided[PolicyResult.AT_ONCE]);
        tree.put("denied", exact(result.denied));
        tree.put("mayBeTooHigh", doubts(result));
        tree.put("keys", result.keys.size());
        tree.put("keysAreAll", !result.keys.isFull());
        tree.put("deniedKeys", deniedKeys(result));
        tree.put("notDecided", result.undecided);
        tree.put("lacks", result.lacks());
        tree.put("overflows", result.overflows);
        Map<String, Object> outcomes = new LinkedHashMap<>();
        result.outcomes.forEach((outcome, count) -> outcomes.put(outcome.name(), count));
        tree.put("outcomes", outcomes);
        List<Object> keys = new ArrayList<>();
        for (PolicyResult.DeniedKey key : result.deniedMost(KEYS)) {
            Map<String, Object> denied = new LinkedHashMap<>();
            denied.put("key", key.name);
            denied.put("denied", key.count);
            denied.put("first", key.first / 1_000_000);
            denied.put("last", key.last / 1_000_000);
            keys.add(denied);
        }
        tree.put("deniedMost", keys);
        tree.put("deniedMostIsExact", result.countsAreExact());
        tree.put("deniedBins", replay.bins().counts(result.bin));
        List<Object> demands = new ArrayList<>();
        addDemand(demands, policy, null);
        policy.tiers().keySet().forEach(tier -> addDemand(demands, policy, tier));
        tree.put("demand", demands);
        return tree;
    }

    private void addDemand(List<Object> demands, ThrottlePolicy policy, @Nullable String tier) {
        Demand demand = replay.demand(policy.name(), tier);
        if (demand == null || demand.sample() == 0) {
            return;
        }
        Map<String, Object> tree = new LinkedHashMap<>();
        tree.put("tier", tier);
        tree.put("sample", demand.sample());
        tree.put("keys", demand.keys());
        tree.put("rate", perMinute(demand.spec().rate()));
        tree.put("capacity", demand.spec().capacity());
        tree.put("shares", SHARES);
        List<Object> rates = new ArrayList<>();
        for (int i = 0; i < demand.rates().size(); i++) {
            double[] capacities = new double[SHARES.length];
            for (int j = 0; j < SHARES.length; j++) {
                capacities[j] = demand.quantile(i, SHARES[j]).capacity();
            }
            Map<String, Object> rate = new LinkedHashMap<>();
            rate.put("rate", demand.rates().get(i).toString());
            rate.put("perMinute", perMinute(demand.rates().get(i)));
            rate.put("capacities", capacities);
            rates.add(rate);
        }
        tree.put("rates", rates);
        tree.put("measuredMillis", demand.measured().toMillis());
        tree.put("refunds", properties.refunds(policy));
        tree.put("calendar", isCalendar(policy));
        tree.put("touch", options.touch);
        Suggestion suggestion = demand.suggest(options.touch, options.within);
        if (suggestion != null) {
            tree.put("suggestedRate", suggestion.spec().rate().toString());
            tree.put("suggestedCapacity", suggestion.spec().capacity());
            tree.put("touchedKeys", suggestion.touched().keys());
            tree.put("outermost", suggestion.outermost());
        }
        demands.add(tree);
    }

    private static double perMinute(Rate rate) {
        return rate.tokens() * 60e9 / rate.period().toNanos();
    }

    String json() {
        StringWriter text = new StringWriter();
        try (JsonGenerator generator = new JsonFactory().createGenerator(ObjectWriteContext.empty(), text)) {
            write(generator, tree());
        }
        return text.append('\n').toString();
    }

    private static void write(JsonGenerator generator, @Nullable Object value) {
        if (value instanceof Map<?, ?> map) {
            generator.writeStartObject();
            map.forEach((name, each) -> {
                generator.writeName(name.toString());
                write(generator, each);
            });
            generator.writeEndObject();
        } else if (value instanceof Iterable<?> list) {
            generator.writeStartArray();
            list.forEach(each -> write(generator, each));
            generator.writeEndArray();
        } else if (value instanceof long[] numbers) {
            generator.writeArray(numbers, 0, numbers.length);
        } else if (value instanceof double[] numbers) {
            generator.writeArray(numbers, 0, numbers.length);
        } else if (value instanceof Double number) {
            generator.writeNumber(number);
        } else if (value instanceof Number number) {
            generator.writeNumber(number.longValue());
        } else if (value instanceof Boolean truth) {
            generator.writeBoolean(truth);
        } else if (value == null) {
            generator.writeNull();
        } else {
            generator.writeString(value.toString());
        }
    }

    /** Returns a page that needs nothing else. The data can't end the script that holds them. */
    String html() {
        try (InputStream template = Report.class.getResourceAsStream("report.html")) {
            String page = new String(template.readAllBytes(), StandardCharsets.UTF_8);
            return page.replace("{{data}}", json().strip().replace("<", "\\u003c"));
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }
}
