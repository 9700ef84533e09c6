package io.ratelimit.annotation;

import io.ratelimit.key.Arithmetic;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.EvaluationException;
import org.springframework.expression.ParseException;
import org.springframework.expression.spel.SpelCompilerMode;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.SpelParserConfiguration;
import org.springframework.expression.spel.ast.CompoundExpression;
import org.springframework.expression.spel.ast.FunctionReference;
import org.springframework.expression.spel.ast.InlineList;
import org.springframework.expression.spel.ast.Literal;
import org.springframework.expression.spel.ast.MethodReference;
import org.springframework.expression.spel.ast.Operator;
import org.springframework.expression.spel.ast.Projection;
import org.springframework.expression.spel.ast.PropertyOrFieldReference;
import org.springframework.expression.spel.ast.Selection;
import org.springframework.expression.spel.ast.VariableReference;
import org.springframework.expression.spel.standard.SpelExpression;
import org.springframework.expression.spel.standard.SpelExpressionParser;

/**
 * Reads the expressions of annotations, once. What is the same for all calls, and what is an argument as it is, needs no
 * SpEL later; the others are compiled when they have been in use for a while.
 */
final class CallExpressions {

    private final SpelExpressionParser parser;
    private final EvaluationContext shared;

    /**
     * @param shared resolves types, beans, properties and methods
     */
    CallExpressions(EvaluationContext shared, @Nullable ClassLoader classLoader) {
        this.parser = new SpelExpressionParser(new SpelParserConfiguration(SpelCompilerMode.MIXED, classLoader));
        this.shared = shared;
    }

    /**
     * @param parameters the places of the arguments by name
     * @throws IllegalArgumentException if it can't be read, or names what isn't there
     */
    CallValue read(String text, Map<String, Integer> parameters) {
        SpelExpression expression = parse(text);
        SpelNode ast = expression.getAST();
        check(ast, false, false, parameters);
        if (ast instanceof VariableReference) {
            return new CallValue.Argument(parameters.getOrDefault(variable(ast), 0));
        }
        if (isConstant(ast)) {
            return new CallValue.Constant(value(expression));
        }
        return Arithmetic.isIn(ast)
                ? arguments -> Arithmetic.value(ast, new CallContext(shared, parameters, arguments), null)
                : arguments -> expression.getValue(new CallContext(shared, parameters, arguments));
    }

    private @Nullable Object value(SpelExpression expression) {
        try {
            return expression.getValue(shared);
        } catch (EvaluationException failed) {
            throw new IllegalArgumentException(failed.getMessage(), failed);
        }
    }

    private SpelExpression parse(String text) {
        try {
            return parser.parseRaw(text);
        } catch (ParseException | IllegalStateException unreadable) {
            throw new IllegalArgumentException("it can't be read as SpEL, " + unreadable.getMessage(), unreadable);
        }
    }

    /** The names of the parts of a key, as far as can be told: the elements of a list, or else the whole. */
    static List<String> parts(String text) {
        SpelNode ast = new SpelExpressionParser().parseRaw(text).getAST();
        return ast instanceof InlineList && ast.getChildCount() > 0
                ? IntStream.range(0, ast.getChildCount())
                        .mapToObj(i -> ast.getChild(i).toStringAST())
                        .toList()
                : List.of(text);
    }

    private static boolean isConstant(SpelNode node) {
        if (node instanceof Operator) {
            for (int i = 0; i < node.getChildCount(); i++) {
                if (!isConstant(node.getChild(i))) {
                    return false;
                }
            }
            return true;
        }
        return node instanceof Literal || node instanceof InlineList list && list.isConstant();
    }

    /**
     * @param ofElement whether this is asked of each element of a collection, as in {@code #rows.?[size > 1]}: then a name
     *     that stands alone is a property of the element
     * @param behindDot whether this is asked of what is before it
     */
    private static void check(SpelNode node, boolean ofElement, boolean behindDot, Map<String, Integer> parameters) {
        boolean lonely = !ofElement && !behindDot;
        if (node instanceof VariableReference) {
            checkVariable(variable(node), ofElement, parameters);
        } else if (node instanceof FunctionReference) {
            throw new IllegalArgumentException("it calls the function " + node.toStringAST() + ", and there are none");
        } else if (lonely && (node instanceof PropertyOrFieldReference || node instanceof MethodReference)) {
            throw new IllegalArgumentException("it has '" + node.toStringAST()
                    + "', which belongs to nothing: an argument is written '#name', and a text in quotes");
        }
        boolean elements = ofElement || node instanceof Projection || node instanceof Selection;
        for (int i = 0; i < node.getChildCount(); i++) {
            check(node.getChild(i), elements, node instanceof CompoundExpression && i > 0, parameters);
        }
    }

    private static void checkVariable(String name, boolean ofElement, Map<String, Integer> parameters) {
        if (name.equals("this") && ofElement || parameters.containsKey(name)) {
            return;
        }
        boolean named = parameters.keySet().stream().anyMatch(known -> !known.matches("[ap]\\d+"));
        String there = String.join(", ", parameters.keySet().stream().sorted().toList());
        throw new IllegalArgumentException("it has '#" + name + "', and the method has no parameter of that name"
                + (parameters.isEmpty() ? ", nor any other" : "; it has: " + there)
                + (named || parameters.isEmpty()
                        ? ""
                        : ". Names are known where classes are compiled with -parameters"));
    }

    private static String variable(SpelNode node) {
        return node.toStringAST().substring(1);
    }
}
