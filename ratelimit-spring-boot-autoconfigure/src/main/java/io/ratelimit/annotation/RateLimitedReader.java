package io.ratelimit.annotation;

import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttler;
import io.ratelimit.Waiting;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.MissingKey;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.util.PlaceholderResolutionException;

/** Reads one annotation as it holds for one method of one class, or says what is wrong with it. */
final class RateLimitedReader {

    private static final Map<String, String> EXAMPLES =
            Map.of("rate", "5/1m", "capacity", "10", "cost", "5", "maxWait", "2s");

    private final RateLimitedReading reading;
    private final MergedAnnotation<RateLimited> annotation;
    private final Method method;
    private final Class<?> type;
    private final String place;
    private final Map<String, Integer> parameters;

    /**
     * @param reading what all annotations are read with
     * @param type of the bean
     */
    RateLimitedReader(
            RateLimitedReading reading, MergedAnnotation<RateLimited> annotation, Method method, Class<?> type) {
        this.reading = reading;
        this.annotation = annotation;
        this.method = method;
        this.type = type;
        this.place = "@RateLimited on " + Places.of(type, method);
        this.parameters = CallParameters.of(method, RateLimitedSearch.methodOf(annotation));
    }

    List<MethodCharge> read() {
        CallValue key = expression("key");
        CallValue tier = expression("tier");
        Duration maxWait = maxWait();
        Fallback fallback = fallback();
        return limits().map(limit -> new MethodCharge(
                        place,
                        limit,
                        key == null ? null : new CallKey(place, text("key"), key, limit, reading.current()),
                        cost(limit),
                        tier,
                        maxWait,
                        fallback,
                        reading.current()))
                .toList();
    }

    private Stream<AnnotatedPolicy> limits() {
        String[] names = annotation.getStringArray("policy");
        boolean own = !text("rate").isEmpty();
        if (own && names.length > 0) {
            throw invalid("names a policy and has a rate", "Say one of them: the policy has a rate of its own.");
        } else if (!own && names.length == 0) {
            throw invalid(
                    "names no policy and has no rate, so it would limit nothing",
                    "Name a policy of the configuration, '@RateLimited(\"search\")', or give it a limit of its own,"
                            + " '@RateLimited(rate = \"5/1m\")'.");
        } else if (!own && !(text("name") + text("capacity")).isEmpty()) {
            throw invalid("has a name or a capacity, but no rate", "Add a rate, or leave them to the policy it names.");
        } else if (own && !text("tier").isEmpty()) {
            throw invalid("has a rate and a tier", "Only a policy of the configuration has tiers: name one.");
        }
        return own ? Stream.of(ownLimit()) : Stream.of(names).map(name -> policy(resolve("policy", name)));
    }

    private AnnotatedPolicy policy(String name) {
        AnnotatedPolicy policy = reading.policies().get(name);
        if (policy != null) {
            checkTiers(policy.policy());
            return policy;
        }
        throw new UnknownName(reading, place).of(name);
    }

    private void checkTiers(ThrottlePolicy policy) {
        if (!text("tier").isEmpty() && policy.tiers().isEmpty()) {
            throw invalid(
                    "has a tier, and the throttle policy '" + policy.name() + "' has none",
                    "Define them, as in 'ratelimit.policies." + policy.name() + ".tiers.pro.rate: 6000/1m', or remove"
                            + " the tier.");
        }
    }

    private AnnotatedPolicy ownLimit() {
        BucketSpec spec = valid(
                "'rate' and 'capacity'",
                () -> OwnLimits.spec(text("rate"), text("capacity")),
                "Say 'rate = \"5/1m\", capacity = \"10\"', for example.");
        String key = text("key");
        List<String> parts = key.isEmpty() ? List.of() : CallExpressions.parts(key);
        Throttler throttler = valid(
                "a name",
                () -> throttler(spec, parts),
                "Give it a name of its own, '@RateLimited(name = \"burst\", rate = …)'.");
        return new AnnotatedPolicy(
                throttler,
                new RequestKey(
                        List.of(),
                        MissingKey.CLIENT_IP,
                        reading.failures(),
                        reading.throttlers().listener()),
                RequestCost.of(1),
                reading.failures());
    }

    /** Places that give the same name on purpose are one. */
    private Throttler throttler(BucketSpec spec, List<String> key) {
        String name = text("name");
        if (!name.isEmpty()) {
            return reading.ownLimits().throttler(name, "", spec, key);
        }
        String bean = reading.beans().nameOf(type);
        return isOnMethod()
                ? reading.ownLimits()
                        .throttler(
                                OwnLimits.nameOf(bean, method.getName()),
                                bean + "." + Places.signature(method),
                                spec,
                                key)
                : reading.ownLimits().throttler(OwnLimits.nameOf(bean), bean, spec, key);
    }

    private boolean isOnMethod() {
        return RateLimitedSearch.methodOf(annotation) != null;
    }

    private @Nullable CallValue cost(AnnotatedPolicy limit) {
        CallValue cost = expression("cost");
        if (cost instanceof CallValue.Constant constant) {
            checkFits(constant, limit);
        }
        return cost;
    }

    private void checkFits(CallValue.Constant cost, AnnotatedPolicy limit) {
        String text = text("cost");
        long tokens = valid(
                "the cost '" + text + "'",
                () -> RequestCost.tokens(cost.value()),
                "Say a number, such as 'cost = \"5\"'.");
        long capacity = limit.policy().spec().capacity();
        if (limit.cost().cut(tokens) > capacity) {
            throw invalid(
                    "has the cost " + text + ", and the capacity of '"
                            + limit.policy().name() + "' is " + capacity + ": no call could ever be allowed",
                    "Say a cost of " + capacity + " at most, or raise the capacity.");
        }
        limit.throttler().checkChanges(new ConstantCost(place, limit.cost().cut(tokens)));
    }

    private @Nullable Duration maxWait() {
        String text = text("maxWait");
        return text.isEmpty()
                ? null
                : valid(
                        "the maxWait '" + text + "'",
                        () -> Waiting.maxWait(text),
                        "Say 'maxWait = \"2s\"', for example, or '0s' for not at all.");
    }

    private @Nullable Fallback fallback() {
        String name = text("fallback");
        if (!name.isEmpty() && (!isOnMethod() || name.equals(method.getName()))) {
            throw invalid(
                    "has the fallback '" + name + "', which can't be for itself or for all methods of a type",
                    "Write the fallback on the methods that it is for, and give it a name of its own.");
        }
        return name.isEmpty()
                ? null
                : valid(
                        "the fallback '" + name + "'",
                        () -> Fallback.find(name, method, type),
                        "Write a method '" + name + "' beside it that has its parameters and returns what it returns.");
    }

    /** What an attribute says, or null if it says nothing. */
    private @Nullable CallValue expression(String attribute) {
        String text = text(attribute);
        return text.isEmpty()
                ? null
                : valid(
                        "the " + attribute + " '" + text + "'",
                        () -> reading.expressions().read(text, parameters),
                        attribute.equals("key") && isOfRequest(text)
                                ? "Parts of the request belong to a policy: 'ratelimit.policies.NAME: { key: " + text
                                        + ", rate: 5/1m, applies-to: annotated }', and '@RateLimited(\"NAME\")'."
                                : "Say an expression over the arguments, such as '#id', '#p0' or '#tenant.id'.");
    }

    /** Whether it would be a part of a policy's key. */
    private boolean isOfRequest(String text) {
        try {
            return !parameters.containsKey(text) && !KeyPart.of(text).name().isEmpty();
        } catch (IllegalArgumentException unknown) {
            return false;
        }
    }

    private <T> T valid(String what, Supplier<T> reader, String action) {
        try {
            return reader.get();
        } catch (IllegalArgumentException wrong) {
            throw new InvalidRateLimitedException(
                    place + " has " + what + " that can't be: " + wrong.getMessage() + ".", action, wrong);
        }
    }

    private InvalidRateLimitedException invalid(String problem, String action) {
        return new InvalidRateLimitedException(place + " " + problem + ".", action);
    }

    private String text(String attribute) {
        return resolve(attribute, annotation.getString(attribute));
    }

    private String resolve(String attribute, String text) {
        try {
            return reading.resolve(text);
        } catch (PlaceholderResolutionException missing) {
            throw missing(attribute, text, missing);
        }
    }

    private InvalidRateLimitedException missing(String attribute, String text, PlaceholderResolutionException missing) {
        String property = missing.getPlaceholder();
        boolean isAll = text.strip().equals("${" + property + "}");
        String fallback = isAll ? EXAMPLES.getOrDefault(attribute, "…") : "…";
        return new InvalidRateLimitedException(
                place + " has the " + attribute + " '" + text + "', and there is no property '" + property + "'.",
                "Define '" + property + "', or say '${" + property + ":" + fallback + "}'.",
                missing);
    }
}
