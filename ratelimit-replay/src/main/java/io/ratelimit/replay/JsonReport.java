package io.ratelimit.replay;

import static io.ratelimit.replay.Findings.describe;
import static io.ratelimit.replay.Findings.isCalendar;

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
import java.util.stream.DoubleStream;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.ObjectWriteContext;
import tools.jackson.core.json.JsonFactory;

/** The findings of a replay as JSON, and as a page that shows them. */
final class JsonReport {

    private static final double[] SHARES = {0.5, 0.9, 0.99, 0.999, 1};
    private static final int MAX_KEYS = 50;

    private final Findings findings;
    private final StringWriter text = new StringWriter();
    private final JsonGenerator json = new JsonFactory().createGenerator(ObjectWriteContext.empty(), text);

    JsonReport(Findings findings) {
        this.findings = findings;
    }

    /** Returns the whole result. Moments are in milliseconds since 1970. */
    String json() {
        Replay replay = findings.replay();
        try (json) {
            json.writeStartObject();
            write("files", findings.options().files);
            json.writeStringProperty("format", findings.format().toString());
            json.writeNumberProperty("lines", findings.reader().lines());
            json.writeNumberProperty(
                    "unreadableLines",
                    findings.unread().count() + findings.reader().tooLong());
            json.writeNumberProperty("requests", replay.requests());
            json.writeStringProperty("zone", findings.clock().zone().toString());
            json.writeNumberProperty("first", replay.firstNanos() / 1_000_000);
            json.writeNumberProperty("last", replay.lastNanos() / 1_000_000);
            write("notes", findings.notes());
            write("unreadable", findings.unread().first());
            write("denied", replay.denied());
            write("mayBeTooHigh", findings.doubts());
            json.writeObjectPropertyStart("notDecided");
            findings.notAsked().forEach(json::writeStringProperty);
            json.writeEndObject();
            json.writeNumberProperty("binMillis", replay.bins().widthNanos() / 1_000_000);
            json.writeNumberProperty("binStart", replay.firstNanos() / 1_000_000);
            write("requestBins", replay.bins().counts(0));
            json.writeArrayPropertyStart("policies");
            replay.results().stream().filter(Findings::isDecided).forEach(this::write);
            json.writeEndArray();
            json.writeEndObject();
        }
        return text.append('\n').toString();
    }

    private void write(String name, Iterable<String> texts) {
        json.writeArrayPropertyStart(name);
        texts.forEach(json::writeString);
        json.writeEndArray();
    }

    private void write(String name, long[] numbers) {
        json.writeName(name);
        json.writeArray(numbers, 0, numbers.length);
    }

    private void write(String name, double[] numbers) {
        json.writeName(name);
        json.writeArray(numbers, 0, numbers.length);
    }

    private void write(PolicyResult result) {
        ThrottlePolicy policy = result.policy;
        json.writeStartObject();
        json.writeStringProperty("name", policy.name());
        json.writeStringProperty("limit", describe(policy));
        json.writeBooleanProperty("shadow", policy.mode() == Mode.SHADOW);
        json.writeBooleanProperty("global", policy.isGlobal());
        json.writeNumberProperty("decided", result.decided[PolicyResult.AT_ONCE]);
        write("denied", findings.exact(result.denied));
        write("mayBeTooHigh", findings.doubts(result));
        json.writeNumberProperty("keys", result.keys.size());
        json.writeBooleanProperty("keysAreAll", !result.keys.isFull());
        write("deniedKeys", findings.deniedKeys(result));
        json.writeNumberProperty("notDecided", result.undecided);
        json.writeStringProperty("lacks", result.lacks());
        json.writeNumberProperty("overflows", result.overflows);
        json.writeObjectPropertyStart("outcomes");
        result.outcomes.forEach((outcome, count) -> json.writeNumberProperty(outcome.name(), count));
        json.writeEndObject();
        json.writeArrayPropertyStart("deniedMost");
        for (PolicyResult.DeniedKey key : result.deniedMost(MAX_KEYS)) {
            json.writeStartObject();
            json.writeStringProperty("key", key.name);
            json.writeNumberProperty("denied", key.count);
            json.writeNumberProperty("first", key.first / 1_000_000);
            json.writeNumberProperty("last", key.last / 1_000_000);
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeBooleanProperty("deniedMostIsExact", result.countsAreExact());
        write("deniedBins", findings.replay().bins().counts(result.bin));
        json.writeArrayPropertyStart("demand");
        writeDemand(policy, null);
        policy.tiers().keySet().forEach(tier -> writeDemand(policy, tier));
        json.writeEndArray();
        json.writeEndObject();
    }

    private void writeDemand(ThrottlePolicy policy, @Nullable String tier) {
        Demand demand = findings.replay().demand(policy.name(), tier);
        if (demand == null || demand.sample() == 0) {
            return;
        }
        json.writeStartObject();
        json.writeStringProperty("tier", tier);
        json.writeNumberProperty("sample", demand.sample());
        json.writeNumberProperty("keys", demand.keys());
        json.writeNumberProperty("rate", perMinute(demand.spec().rate()));
        json.writeNumberProperty("capacity", demand.spec().capacity());
        write("shares", SHARES);
        json.writeArrayPropertyStart("rates");
        for (int i = 0; i < demand.rates().size(); i++) {
            int rate = i;
            json.writeStartObject();
            json.writeStringProperty("rate", demand.rates().get(i).toString());
            json.writeNumberProperty("perMinute", perMinute(demand.rates().get(i)));
            write(
                    "capacities",
                    DoubleStream.of(SHARES)
                            .map(share -> demand.quantile(rate, share).capacity())
                            .toArray());
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeNumberProperty("measuredMillis", demand.measured().toMillis());
        json.writeBooleanProperty("refunds", findings.refunds(policy));
        json.writeBooleanProperty("calendar", isCalendar(policy));
        json.writeNumberProperty("touch", findings.options().touch());
        json.writeBooleanProperty("tooLittle", demand.isTooLittle(policy.isGlobal()));
        Suggestion suggestion = findings.suggestion(policy, demand);
        if (suggestion != null) {
            json.writeStringProperty("suggestedRate", suggestion.spec().rate().toString());
            json.writeNumberProperty("suggestedCapacity", suggestion.spec().capacity());
            json.writeNumberProperty("touchedKeys", suggestion.touched().keys());
            json.writeBooleanProperty("outermost", suggestion.outermost());
        }
        json.writeEndObject();
    }

    private static double perMinute(Rate rate) {
        return rate.tokens() * 60e9 / rate.period().toNanos();
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
