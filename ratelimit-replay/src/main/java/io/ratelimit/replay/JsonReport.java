package io.ratelimit.replay;

import static io.ratelimit.replay.Findings.describe;
import static io.ratelimit.replay.Findings.isCalendar;
import static io.ratelimit.replay.Findings.isDecided;

import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.demand.Demand;
import io.ratelimit.demand.Demand.Suggestion;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.ObjectWriteContext;
import tools.jackson.core.json.JsonFactory;

/** The findings of a replay as JSON, and as a page that shows them. */
final class JsonReport {

    private static final double[] SHARES = {0.5, 0.9, 0.99, 0.999, 1};
    private static final int MAX_KEYS = 50;

    private final Findings findings;

    JsonReport(Findings findings) {
        this.findings = findings;
    }

    /** Returns the whole result. Moments are in milliseconds since 1970. */
    private Map<String, Object> tree() {
        Map<String, Object> tree = new LinkedHashMap<>();
        tree.put("files", findings.options().files);
        tree.put("format", findings.format().toString());
        tree.put("lines", findings.reader().lines());
        tree.put(
                "unreadableLines", findings.unread().count() + findings.reader().tooLong());
        tree.put("requests", findings.replay().requests());
        tree.put("zone", findings.clock().zone().toString());
        tree.put("first", findings.replay().firstNanos() / 1_000_000);
        tree.put("last", findings.replay().lastNanos() / 1_000_000);
        tree.put("notes", findings.notes());
        tree.put("unreadable", findings.unread().first());
        tree.put("denied", findings.replay().denied());
        tree.put("mayBeTooHigh", findings.doubts());
        tree.put("notDecided", findings.notAsked());
        tree.put("binMillis", findings.replay().bins().widthNanos() / 1_000_000);
        tree.put("binStart", findings.replay().firstNanos() / 1_000_000);
        tree.put("requestBins", findings.replay().bins().counts(0));
        List<Object> policies = new ArrayList<>();
        for (PolicyResult result : findings.replay().results()) {
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
        tree.put("denied", findings.exact(result.denied));
        tree.put("mayBeTooHigh", findings.doubts(result));
        tree.put("keys", result.keys.size());
        tree.put("keysAreAll", !result.keys.isFull());
        tree.put("deniedKeys", findings.deniedKeys(result));
        tree.put("notDecided", result.undecided);
        tree.put("lacks", result.lacks());
        tree.put("overflows", result.overflows);
        Map<String, Object> outcomes = new LinkedHashMap<>();
        result.outcomes.forEach((outcome, count) -> outcomes.put(outcome.name(), count));
        tree.put("outcomes", outcomes);
        List<Object> keys = new ArrayList<>();
        for (PolicyResult.DeniedKey key : result.deniedMost(MAX_KEYS)) {
            Map<String, Object> denied = new LinkedHashMap<>();
            denied.put("key", key.name);
            denied.put("denied", key.count);
            denied.put("first", key.first / 1_000_000);
            denied.put("last", key.last / 1_000_000);
            keys.add(denied);
        }
        tree.put("deniedMost", keys);
        tree.put("deniedMostIsExact", result.countsAreExact());
        tree.put("deniedBins", findings.replay().bins().counts(result.bin));
        List<Object> demands = new ArrayList<>();
        addDemand(demands, policy, null);
        policy.tiers().keySet().forEach(tier -> addDemand(demands, policy, tier));
        tree.put("demand", demands);
        return tree;
    }

    private void addDemand(List<Object> demands, ThrottlePolicy policy, @Nullable String tier) {
        Demand demand = findings.replay().demand(policy.name(), tier);
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
        tree.put("refunds", findings.refunds(policy));
        tree.put("calendar", isCalendar(policy));
        tree.put("touch", findings.options().touch());
        tree.put("tooLittle", demand.isTooLittle(policy.isGlobal()));
        Suggestion suggestion = findings.suggestion(policy, demand);
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
        try (InputStream template = JsonReport.class.getResourceAsStream("report.html")) {
            String page = new String(template.readAllBytes(), StandardCharsets.UTF_8);
            return page.replace("{{data}}", json().strip().replace("<", "\\u003c"));
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }
}
