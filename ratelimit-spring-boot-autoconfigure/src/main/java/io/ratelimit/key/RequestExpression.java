package io.ratelimit.key;

import static io.ratelimit.key.ExpressionCheck.BEAN;
import static java.util.Objects.requireNonNull;

import io.ratelimit.key.KeyPart.Availability;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.MethodResolver;
import org.springframework.expression.ParseException;
import org.springframework.expression.TypedValue;
import org.springframework.expression.spel.standard.SpelExpression;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.expression.spel.support.DataBindingMethodResolver;
import org.springframework.expression.spel.support.DataBindingPropertyAccessor;
import org.springframework.expression.spel.support.SimpleEvaluationContext;
import org.springframework.util.ReflectionUtils;

/**
 * An expression over the facts of a request, in Spring's expression language. It can read the {@link RequestFacts} and
 * {@link KeyResolver} beans, and nothing else: no types, no constructors, no other beans, no reflection. Parsed and checked
 * once, compiled after some use unless it reads a bean. Thread-safe.
 */
final class RequestExpression {

    private static final Set<String> CHOSEN_BY_CLIENT = Set.of("header", "query", "cookie", "pathVariable", "number");

    /** Facts that clients choose too, but that most expressions only test. */
    private static final Set<String> OF_REQUEST = Set.of("path", "method", "contentLength", "endpoint");

    private static final Set<String> UNBOUNDED = Set.of("path", "method", "contentLength");

    private static final SpelExpressionParser PARSER = ExactArithmetic.parser(RequestExpression.class.getClassLoader());

    /** The second line of defense: {@link ExpressionCheck} has already rejected what this context doesn't support. */
    private static final EvaluationContext CONTEXT = context(DataBindingMethodResolver.forInstanceMethodInvocation());

    private final String text;
    private final SpelExpression parsed;
    private final Set<String> facts;
    private final EvaluationContext context;

    private RequestExpression(String text, SpelExpression parsed, Set<String> facts, EvaluationContext context) {
        this.text = text;
        this.parsed = parsed;
        this.facts = facts;
        this.context = context;
    }

    /**
     * Parses an expression. One that reads a bean fails until it {@linkplain #withBeans has it}.
     *
     * @throws IllegalArgumentException if the text is no expression, or uses something other than the facts of a request
     */
    static RequestExpression of(String text) {
        SpelExpression parsed = parse(text);
        return new RequestExpression(
                text, ExactArithmetic.exact(parsed), ExpressionCheck.facts(parsed.getAST()), CONTEXT);
    }

    /** Throws without a cause, because the report of a failed start shows only the message of the root cause. */
    private static SpelExpression parse(String text) {
        try {
            return PARSER.parseRaw(text);
        } catch (ParseException | IllegalStateException | IllegalArgumentException unreadable) {
            String reason =
                    unreadable instanceof ParseException parsing ? parsing.getSimpleMessage() : unreadable.getMessage();
            throw new IllegalArgumentException("'" + text + "' can't be read as an expression: " + reason);
        }
    }

    /** Spring Framework compiles on request since 7.0.9; older versions always compile, and have no such method. */
    private static SimpleEvaluationContext.Builder compiled(SimpleEvaluationContext.Builder context) {
        Method opening = ReflectionUtils.findMethod(SimpleEvaluationContext.Builder.class, "withCompilationSupported");
        if (opening != null) {
            ReflectionUtils.invokeMethod(opening, context);
        }
        return context;
    }

    private static EvaluationContext context(MethodResolver... resolvers) {
        return compiled(SimpleEvaluationContext.forPropertyAccessors(DataBindingPropertyAccessor.forReadOnlyAccess())
                        .withMethodResolvers(resolvers)
                        .withAssignmentDisabled())
                .build();
    }

    /** Returns this expression with its beans; itself if it reads none. */
    RequestExpression withBeans(Function<String, KeyResolver> beans) {
        Map<String, KeyResolver> found = new HashMap<>();
        for (String fact : facts) {
            if (fact.startsWith(BEAN)) {
                found.put(fact.substring(BEAN.length()), beans.apply(fact.substring(BEAN.length())));
            }
        }
        return found.isEmpty()
                ? this
                : new RequestExpression(
                        text,
                        parsed,
                        facts,
                        context(reading(found), DataBindingMethodResolver.forInstanceMethodInvocation()));
    }

    /** Returns the resolver of the function {@code bean('NAME')}. */
    private static MethodResolver reading(Map<String, KeyResolver> beans) {
        return (context, target, name, types) -> target instanceof RequestFacts && name.equals("bean")
                ? (sameContext, facts, arguments) ->
                        new TypedValue(requireNonNull(beans.get(arguments[0])).resolve((RequestFacts) facts))
                : null;
    }

    Availability availability() {
        if (facts.contains("user") || facts.contains("roles") || facts.contains("claim")) {
            return Availability.NEEDS_USER;
        }
        return facts.contains("bean") ? Availability.MAY_CHANGE : Availability.IMMEDIATE;
    }

    /** Returns whether clients choose all facts of the expression, and can make many values of it. */
    boolean chosenByClient() {
        return facts.stream().allMatch(fact -> CHOSEN_BY_CLIENT.contains(fact) || OF_REQUEST.contains(fact))
                && (facts.stream().anyMatch(CHOSEN_BY_CLIENT::contains) || UNBOUNDED.contains(text.strip()));
    }

    boolean isConstant() {
        return facts.isEmpty();
    }

    /** Returns the value of a {@linkplain #isConstant() constant} expression; null if its evaluation fails. */
    @Nullable
    Object constant() {
        try {
            return parsed.getValue(CONTEXT);
        } catch (RuntimeException failure) {
            return null;
        }
    }

    /** @throws RuntimeException if the evaluation fails */
    @Nullable
    Object value(RequestFacts request) {
        try {
            return parsed.getValue(context, request);
        } catch (StackOverflowError tooDeep) { // a regular expression may recurse once per character
            throw new IllegalStateException("too deep");
        }
    }

    /** @throws RuntimeException if the evaluation fails, or the value is neither text nor number nor boolean */
    @Nullable
    String text(RequestFacts request) {
        Object value = value(request);
        if (value == null || value instanceof String || value instanceof Number || value instanceof Boolean) {
            return value == null ? null : value.toString();
        }
        throw new IllegalStateException("The value must be text, a number or a boolean");
    }

    @Override
    public String toString() {
        return text;
    }
}
