package io.ratelimit.key;

import io.ratelimit.key.KeyPart.Availability;
import io.ratelimit.key.expression.Arithmetic;
import io.ratelimit.key.expression.ExpressionCheck;
import java.lang.reflect.Method;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.ParseException;
import org.springframework.expression.spel.standard.SpelExpression;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.expression.spel.support.DataBindingMethodResolver;
import org.springframework.expression.spel.support.DataBindingPropertyAccessor;
import org.springframework.expression.spel.support.SimpleEvaluationContext;
import org.springframework.util.ReflectionUtils;

/**
 * An expression over the facts of a request, in Spring's expression language. It can read the {@link RequestFacts} and
 * nothing else: no types, no constructors, no beans, no reflection. Parsed and checked once, compiled after some use.
 * Thread-safe.
 */
final class RequestExpression {

    private static final Set<String> CHOSEN_BY_CLIENT = Set.of("header", "query", "cookie", "pathVariable", "number");

    private static final SpelExpressionParser PARSER = Arithmetic.parser(RequestExpression.class.getClassLoader());

    /** The second line of defense: {@link ExpressionCheck} has already rejected what this context doesn't support. */
    private static final EvaluationContext CONTEXT = compiled(
                    SimpleEvaluationContext.forPropertyAccessors(DataBindingPropertyAccessor.forReadOnlyAccess())
                            .withMethodResolvers(DataBindingMethodResolver.forInstanceMethodInvocation())
                            .withAssignmentDisabled())
            .build();

    private final String text;
    private final SpelExpression parsed;
    private final Set<String> facts;

    private RequestExpression(String text, SpelExpression parsed, Set<String> facts) {
        this.text = text;
        this.parsed = parsed;
        this.facts = facts;
    }

    /**
     * Parses an expression.
     *
     * @throws IllegalArgumentException if the text is no expression, or uses something other than the facts of a request
     */
    static RequestExpression of(String text) {
        SpelExpression parsed = parse(text);
        return new RequestExpression(text, Arithmetic.exact(parsed), ExpressionCheck.facts(parsed.getAST()));
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

    /** Returns when the facts of the expression are available. */
    Availability availability() {
        return facts.contains("user") || facts.contains("roles") ? Availability.NEEDS_USER : Availability.IMMEDIATE;
    }

    /** Returns whether clients choose all facts of the expression. */
    boolean chosenByClient() {
        return !facts.isEmpty() && CHOSEN_BY_CLIENT.containsAll(facts);
    }

    /** Returns whether the expression has the same value for all requests. */
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

    /**
     * Returns the value for a request.
     *
     * @throws RuntimeException if the evaluation fails
     */
    @Nullable
    Object value(RequestFacts request) {
        try {
            return parsed.getValue(CONTEXT, request);
        } catch (StackOverflowError tooDeep) { // a regular expression may recurse once per character
            throw new IllegalStateException("too deep");
        }
    }

    /**
     * Returns the value for a request as text.
     *
     * @throws RuntimeException if the evaluation fails, or the value is neither text nor number nor boolean
     */
    @Nullable
    String text(RequestFacts request) {
        Object value = value(request);
        if (value == null || value instanceof String || value instanceof Number || value instanceof Boolean) {
            return value == null ? null : value.toString();
        }
        throw new IllegalStateException("The value must be text, a number or a boolean");
    }

    /** Returns the text of the expression. */
    @Override
    public String toString() {
        return text;
    }
}
