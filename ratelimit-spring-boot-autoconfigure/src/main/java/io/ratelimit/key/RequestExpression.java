package io.ratelimit.key;

import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.ParseException;
import org.springframework.expression.spel.SpelCompilerMode;
import org.springframework.expression.spel.SpelParserConfiguration;
import org.springframework.expression.spel.standard.SpelExpression;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.expression.spel.support.DataBindingMethodResolver;
import org.springframework.expression.spel.support.DataBindingPropertyAccessor;
import org.springframework.expression.spel.support.SimpleEvaluationContext;

/**
 * What a policy works out of a request in Spring's expression language. It sees the {@link RequestFacts} and nothing
 * else: no types, no constructors, no beans, no reflection. Parsed and checked once, compiled after some use.
 * Thread-safe.
 */
public final class RequestExpression {

    private static final SpelExpressionParser PARSER = new SpelExpressionParser(
            new SpelParserConfiguration(SpelCompilerMode.MIXED, RequestExpression.class.getClassLoader()));

    /** The check of the parsed expression is the fence; that this context can do little is the second. */
    private static final EvaluationContext CONTEXT = SimpleEvaluationContext.forPropertyAccessors(
                    DataBindingPropertyAccessor.forReadOnlyAccess())
            .withMethodResolvers(DataBindingMethodResolver.forInstanceMethodInvocation())
            .withAssignmentDisabled()
            .withCompilationSupported()
            .build();

    private final String text;
    private final SpelExpression parsed;
    private final Set<String> facts;
    private final boolean reckons;

    private RequestExpression(String text, SpelExpression parsed, Set<String> facts) {
        this.text = text;
        this.parsed = parsed;
        this.facts = facts;
        this.reckons = Arithmetic.isIn(parsed.getAST());
    }

    /**
     * @throws IllegalArgumentException if the text can't be read, or asks for what isn't there; the message says what is
     */
    public static RequestExpression of(String text) {
        SpelExpression parsed = parse(text);
        return new RequestExpression(text, parsed, ExpressionCheck.facts(parsed.getAST()));
    }

    /** Without the cause: the report of a failed start says but the first of all. */
    private static SpelExpression parse(String text) {
        try {
            return PARSER.parseRaw(text);
        } catch (ParseException | IllegalStateException | IllegalArgumentException unreadable) {
            String reason =
                    unreadable instanceof ParseException parsing ? parsing.getSimpleMessage() : unreadable.getMessage();
            throw new IllegalArgumentException("'" + text + "' can't be read as an expression: " + reason);
        }
    }

    /** From when on it can be told. */
    public Known known() {
        return facts.contains("user") || facts.contains("roles") ? Known.WITH_USER : Known.AT_ONCE;
    }

    /** Whether it asks for nothing but what clients can choose. */
    boolean chosenByClient() {
        return !facts.isEmpty()
                && Set.of("header", "query", "cookie", "pathVariable", "number").containsAll(facts);
    }

    /** Whether it is the same for all requests. */
    boolean isConstant() {
        return facts.isEmpty();
    }

    /** What it is for all requests, if it {@linkplain #isConstant() is the same}; null where it can't be told. */
    @Nullable
    Object constant() {
        try {
            return reckons ? Arithmetic.value(parsed.getAST(), CONTEXT, null) : parsed.getValue(CONTEXT);
        } catch (RuntimeException failure) {
            return null;
        }
    }

    /**
     * What it is for a request.
     *
     * @throws RuntimeException if it can't be told
     */
    @Nullable
    Object value(RequestFacts request) {
        try {
            return reckons ? Arithmetic.value(parsed.getAST(), CONTEXT, request) : parsed.getValue(CONTEXT, request);
        } catch (StackOverflowError tooDeep) { // as a regular expression may go into a text that is long
            throw new IllegalStateException("too deep");
        }
    }

    /**
     * What it is for a request, as text.
     *
     * @throws RuntimeException if it can't be told, or is neither text nor number nor boolean
     */
    @Nullable
    String text(RequestFacts request) {
        Object value = value(request);
        if (value == null || value instanceof String || value instanceof Number || value instanceof Boolean) {
            return value == null ? null : value.toString();
        }
        throw new IllegalStateException("The value must be text, a number or a boolean");
    }

    /** As it is written. */
    @Override
    public String toString() {
        return text;
    }
}
