package io.ratelimit.annotation;

import static java.util.Objects.requireNonNull;

import io.ratelimit.BucketSpec;
import io.ratelimit.Shares;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.annotation.MethodCharge.Written;
import io.ratelimit.annotation.RateLimitedOperation.Fallback;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.annotation.SourceLocation.Signature;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestTier;
import io.ratelimit.policy.RateLimitConfigurationException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.ResolvableType;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.util.PlaceholderResolutionException;

/** A reader of one annotation, as it applies to one method of one class. */
final class RateLimitedReader {

    private static final Map<String, String> EXAMPLES =
            Map.of("rate", "5/1m", "capacity", "10", "inFlight", "2", "cost", "5", "maxWait", "2s");

    private static final Pattern CLASS_TEST = Pattern.compile("(?i)instanceof|class|\\bT\\(");

    private final Context context;
    private final MergedAnnotation<RateLimited> annotation;
    private final SourceLocation location;
    private final Map<String, Integer> parameters;
    private final DeclaredTypes types;

    record Context(AnnotatedLimits limits, CallExpressions expressions, CandidateBeans beans, Current currentRequest) {}

    RateLimitedReader(Context context, MergedAnnotation<RateLimited> annotation, SourceLocation location) {
        this.context = context;
        this.annotation = annotation;
        this.location = location;
        this.parameters = CallExpressions.parameters(location.method(), RateLimitedScanner.annotatedMethod(annotation));
        this.types = new DeclaredTypes(location.method(), testsClasses() ? null : location.type());
    }

    /** Returns the charges of the annotation, one for each of its limits. */
    List<MethodCharge> read() {
        CallValue key = key();
        Written condition = condition();
        Written settle = settle();
        CallValue tier = expression("tier");
        Duration maxWait = maxWait();
        Fallback fallback = fallback();
        List<AnnotatedPolicy> limits = limits().peek(this::checkRate).toList();
        AnnotatedLimits.checkTier(onlyTier(tier, limits.get(0)), limits, location);
        return limits.stream()
                .map(limit -> new MethodCharge(
                        location.annotation(),
                        limit,
                        key == null
                                ? null
                                : new MethodCharge.Key(
                                        text("key"), key, limit.key().ofTexts()),
                        cost(limit, tier),
                        condition,
                        settle,
                        tier,
                        maxWait,
                        fallback,
                        context.currentRequest()))
                .peek(this::checkInFlight)
                .toList();
    }

    private Stream<AnnotatedPolicy> limits() {
        String[] names = annotation.getStringArray("policy");
        boolean hasRate = !text("rate").isEmpty();
        boolean isInline = hasRate || !text("inFlight").isEmpty();
        if (!hasRate && isInline && names.length > 0) {
            throw location.invalid(
                    "has both a policy and an inFlight",
                    "Set 'ratelimit.policies." + names[0] + ".in-flight: " + text("inFlight")
                            + "', and remove the inFlight of the annotation.");
        } else if (isInline && names.length > 0) {
            throw location.invalid("has both a policy and a rate", "Remove one of them: the policy has its own rate.");
        } else if (!isInline && names.length == 0) {
            throw location.invalid(
                    "has neither a policy nor a rate, so it would limit nothing",
                    "Name a policy of the configuration, '@RateLimited(\"search\")', or add a rate,"
                            + " '@RateLimited(rate = \"5/1m\")'.");
        } else if (!hasRate && !text("capacity").isEmpty()
                || !isInline && !text("name").isEmpty()) {
            throw location.invalid(
                    "has a name or a capacity, but no rate",
                    "Add a rate, or remove the name and the capacity: the policy has its own.");
        } else if (isInline && !text("tier").isEmpty()) {
            throw location.invalid(
                    "has both a rate and a tier",
                    "Remove the tier, or name a policy of the configuration: only those have tiers.");
        }
        return isInline ? Stream.of(inlineLimit()) : Stream.of(names).map(name -> policy(resolve("policy", name)));
    }

    /** A cost would have no effect on calls in flight, as in the configuration. */
    private void checkRate(AnnotatedPolicy limit) {
        ThrottlePolicy policy = limit.policy();
        Stream<BucketSpec> specs = Stream.of(
                        Stream.of(policy.spec()),
                        policy.tiers().values().stream(),
                        keyOf(limit).overrides().specs())
                .flatMap(own -> own);
        if (limit.key().limit() == null && specs.noneMatch(BucketSpec::hasRate)) {
            for (String attribute : List.of("cost", "settle")) {
                if (!text(attribute).isEmpty()) {
                    throw location.invalid(
                            "has a " + attribute + ", but '" + policy.name()
                                    + "' has no rate: its limit of calls in flight takes no tokens",
                            "Add a rate to the limit, or remove the " + attribute + ".");
                }
            }
        }
    }

    /** Calls must report their end. */
    private void checkInFlight(MethodCharge charge) {
        if (!charge.limitsInFlight()) {
            return;
        }
        ResolvableType result = ResolvableType.forMethodReturnType(location.method(), location.type());
        if (CallResult.hidesEnd(result)) {
            throw location.invalid(
                    "limits the calls in flight, but the method returns a " + result
                            + ", which doesn't report its completion",
                    "Return a CompletableFuture. If the method handles requests, a policy with 'in-flight' and 'paths'"
                            + " counts them until their responses are complete.");
        }
        Class<?> replacement = CallResult.replacement(result.resolve(Object.class));
        if (replacement != null) {
            throw location.invalid(
                    "limits the calls in flight, but the method returns a " + result
                            + ", and the result that reports its completion has the type " + replacement.getName(),
                    "Change the return type to " + replacement.getName() + ".");
        }
    }

    private AnnotatedPolicy policy(String name) {
        AnnotatedPolicy policy = context.limits().policy(name, location);
        Shares shares = policy.policy().shares();
        if (shares != null) {
            checkShares(name);
        }
        Duration maxWait = maxWait();
        if (maxWait != null && !maxWait.isZero() && !policy.policy().lease().isZero()) {
            throw location.invalid(
                    "has a maxWait, but the throttle policy '" + name
                            + "' has a lease, by which an instance decides calls by itself and in no order",
                    "Remove the maxWait, or 'ratelimit.policies." + name + ".lease'.");
        }
        if (!text("tier").isEmpty() && policy.policy().tiers().isEmpty() && (shares == null || shares.each() != null)) {
            throw location.invalid(
                    "has a tier, but the throttle policy '" + name + "' has no tiers",
                    "Define tiers, as in 'ratelimit.policies." + name
                            + ".tiers.pro.rate: 6000/1m', or remove the tier.");
        }
        return policy;
    }

    private void checkShares(String policy) {
        for (String attribute : List.of("key", "maxWait")) {
            if (!text(attribute).isEmpty()) {
                throw location.invalid(
                        "has a " + attribute + ", but the throttle policy '" + policy
                                + "' is one bucket with guaranteed shares, which has no other key or wait than the policy's",
                        "Remove '" + attribute + "'. The share of a call is selected by 'ratelimit.policies." + policy
                                + ".guaranteed.key', and one with a name by 'tier'.");
            }
        }
    }

    private AnnotatedPolicy inlineLimit() {
        BucketSpec spec = valid(
                "limit",
                () -> AnnotatedLimits.spec(text("rate"), text("capacity"), text("inFlight")),
                "Write a rate and a capacity such as 'rate = \"5/1m\", capacity = \"10\"', or 'inFlight = \"2\"'.");
        String key = text("key");
        List<String> parts = key.isEmpty() ? List.of() : CallExpressions.parts(key);
        try {
            return valid(
                    "name",
                    () -> inlineLimit(spec, parts),
                    "Add a different name, as in '@RateLimited(name = \"burst\", rate = …)'.");
        } catch (UnsupportedOperationException elsewhere) {
            throw location.invalid(
                    "limits the calls in flight, which its backend doesn't count",
                    "Define a policy in memory, 'ratelimit.policies.NAME: { in-flight: " + spec.inFlight()
                            + ", backend: local, applies-to: annotated }', and write '@RateLimited(\"NAME\")'."
                            + " With a store of your own, implement RegisterStore instead.",
                    elsewhere);
        }
    }

    private AnnotatedPolicy inlineLimit(BucketSpec spec, List<String> key) {
        String name = text("name");
        if (!name.isEmpty()) {
            return context.limits().inline(name, "", spec, key);
        }
        String bean = context.beans().nameOf(location.type());
        return isOnMethod()
                ? context.limits()
                        .inline(
                                AnnotatedLimits.nameOf(bean, location.method().getName()),
                                bean + "." + location.signature(),
                                spec,
                                key)
                : context.limits().inline(AnnotatedLimits.nameOf(bean), bean, spec, key);
    }

    private boolean isOnMethod() {
        return RateLimitedScanner.annotatedMethod(annotation) != null;
    }

    private @Nullable CallValue cost(AnnotatedPolicy limit, @Nullable CallValue tier) {
        CallValue cost = expression("cost");
        if (cost instanceof CallValue.Constant constant) {
            String text = text("cost");
            long tokens = valid(
                    "cost '" + text + "'",
                    () -> RequestCost.tokens(constant.value()),
                    "Write a number, such as 'cost = \"5\"'.");
            ConstantCost fixed = new ConstantCost(limit.cost().capped(tokens), onlyTier(tier, limit), location);
            fixed.check(text, limit.policy(), keyOf(limit).overrides());
            limit.throttler().checkChanges(fixed);
        }
        return cost;
    }

    private RequestKey keyOf(AnnotatedPolicy limit) {
        return text("key").isEmpty() ? limit.key() : limit.key().ofTexts();
    }

    /** Returns the one tier of all calls; an empty text if they have none, and null if they may be in any. */
    private static @Nullable String onlyTier(@Nullable CallValue tier, AnnotatedPolicy limit) {
        return tier instanceof CallValue.Constant constant
                ? RequestTier.name(String.valueOf(constant.value()))
                : tier == null && limit.key().tier() == null ? "" : null;
    }

    private @Nullable Written condition() {
        CallValue condition = expression("condition");
        if (condition instanceof CallValue.Constant constant && !(constant.value() instanceof Boolean)) {
            throw location.invalid(
                    "has the condition '" + text("condition") + "', which is neither true nor false",
                    "Write an expression over the arguments, such as 'condition = \"#rows > 100\"'.");
        }
        return condition == null ? null : new Written(text("condition"), condition);
    }

    /** The result is one more argument after those of the method. */
    private @Nullable Written settle() {
        String text = text("settle");
        if (text.isEmpty()) {
            return null;
        }
        Class<?> type = Signature.of(location.method()).result();
        String result = CallResult.withoutValue(type);
        if (result != null) {
            throw location.invalid(
                    "has a settle, but the method returns " + result,
                    "Return the value that shows the actual cost, or a CompletableFuture or a Mono of it.");
        }
        Map<String, Integer> names = new HashMap<>(parameters);
        names.put("result", location.method().getParameterCount());
        CallValue settle = requireNonNull(expression("settle", names));
        if (settle instanceof CallValue.Constant constant) {
            valid(
                    "settle '" + text + "'",
                    () -> RequestCost.tokens(constant.value()),
                    "Write an expression over the result, such as 'settle = \"#result.usage.totalTokens\"'.");
        }
        return new Written(text, settle);
    }

    private @Nullable Duration maxWait() {
        String text = text("maxWait");
        return text.isEmpty()
                ? null
                : valid(
                        "maxWait '" + text + "'",
                        () -> ThrottlePolicy.parseMaxWait(text),
                        "Write a duration such as 'maxWait = \"2s\"', or '0s' for no wait.");
    }

    private @Nullable Fallback fallback() {
        String name = text("fallback");
        Method method = location.method();
        if (name.isEmpty()) {
            return null;
        } else if (!isOnMethod()) {
            throw location.invalid(
                    "has the fallback '" + name + "', but stands on a type",
                    "Put the annotation with the fallback on each method of the type.");
        } else if (name.equals(method.getName())) {
            throw location.invalid(
                    "has the method itself as the fallback '" + name + "'",
                    "Give the fallback method a different name.");
        }
        return valid(
                "fallback '" + name + "'",
                () -> Fallback.find(name, method, location.type()),
                "Add a method '" + name + "' to the class, with the same parameters and the same return type.");
    }

    private @Nullable CallValue key() {
        CallValue key = expression("key");
        if (key instanceof CallValue.Argument argument) {
            valid(
                    "key '" + text("key") + "'",
                    () -> {
                        types.checkKey(argument.index());
                        return key;
                    },
                    "Write the property that is the key, such as '" + text("key") + ".id'.");
        }
        return key;
    }

    private @Nullable CallValue expression(String attribute) {
        return expression(attribute, parameters);
    }

    private @Nullable CallValue expression(String attribute, Map<String, Integer> names) {
        String text = text(attribute);
        return text.isEmpty()
                ? null
                : valid(
                        attribute + " '" + text + "'",
                        () -> context.expressions().parse(text, names, types),
                        attribute.equals("key") && isPartOfRequest(text)
                                ? "Only policies have keys made from the request: define 'ratelimit.policies.NAME: { key: "
                                        + text + ", rate: 5/1m, applies-to: annotated }', and write"
                                        + " '@RateLimited(\"NAME\")'."
                                : "Write an expression over the arguments, such as '#id', '#p0' or '#tenant.id'.");
    }

    /** Returns whether an expression tests the class of a value, which may then have properties that are not declared. */
    private boolean testsClasses() {
        return Stream.of("key", "cost", "condition", "settle", "tier")
                .anyMatch(attribute -> CLASS_TEST.matcher(text(attribute)).find());
    }

    private boolean isPartOfRequest(String text) {
        try {
            return !parameters.containsKey(text) && !KeyPart.of(text).name().isEmpty();
        } catch (IllegalArgumentException unknown) {
            return false;
        }
    }

    private <T> T valid(String attribute, Supplier<T> reader, String action) {
        try {
            return reader.get();
        } catch (IllegalArgumentException wrong) {
            throw location.invalid("has an invalid " + attribute + ": " + wrong.getMessage(), action, wrong);
        }
    }

    private String text(String attribute) {
        return resolve(attribute, annotation.getString(attribute));
    }

    private String resolve(String attribute, String text) {
        try {
            String resolved = context.beans().factory().resolveEmbeddedValue(text);
            return resolved == null ? "" : resolved.strip();
        } catch (PlaceholderResolutionException missing) {
            throw missing(attribute, text, missing);
        }
    }

    private RateLimitConfigurationException missing(
            String attribute, String text, PlaceholderResolutionException missing) {
        String property = missing.getPlaceholder();
        boolean isWholeText = text.strip().equals("${" + property + "}");
        String example = isWholeText ? EXAMPLES.getOrDefault(attribute, "…") : "…";
        return location.invalid(
                "has the " + attribute + " '" + text + "', but there is no property '" + property + "'",
                "Define '" + property + "', or write a default: '${" + property + ":" + example + "}'.",
                missing);
    }
}
