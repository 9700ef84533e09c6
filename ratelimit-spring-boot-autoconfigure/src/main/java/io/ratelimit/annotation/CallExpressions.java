package io.ratelimit.annotation;

import io.ratelimit.annotation.SourceLocation.Signature;
import io.ratelimit.key.ExactArithmetic;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.EvaluationException;
import org.springframework.expression.ParseException;
import org.springframework.expression.spel.SpelNode;
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
 * A parser of the expressions in annotations. Constants and plain arguments need no SpEL at a call. SpEL compiles the
 * other expressions after some calls.
 */
final class CallExpressions {

    private final EvaluationContext shared;
    private final @Nullable ClassLoader classLoader;

    /**
     * @param shared resolves types, beans, properties and methods
     */
    CallExpressions(EvaluationContext shared, @Nullable ClassLoader classLoader) {
        this.shared = shared;
        this.classLoader = classLoader;
    }

    /**
     * Parses an expression and checks the names that it uses.
     *
     * @param parameters the positions of the arguments by name
     * @throws IllegalArgumentException if the text can't be parsed, or uses a name that isn't defined
     */
    CallValue parse(String text, Map<String, Integer> parameters, DeclaredTypes types) {
        SpelExpression parsed = parse(text);
        SpelNode ast = parsed.getAST();
        check(ast, false, false, parameters, types);
        SpelExpression expression = ExactArithmetic.exact(parsed);
        if (ast instanceof VariableReference) {
            return new CallValue.Argument(parameters.getOrDefault(variable(ast), 0));
        }
        if (isConstant(ast)) {
            return new CallValue.Constant(constant(expression));
        }
        return new CallValue.Expression(expression, shared, parameters);
    }

    private @Nullable Object constant(SpelExpression expression) {
        try {
            return expression.getValue(shared);
        } catch (EvaluationException failed) {
            throw new IllegalArgumentException(failed.getMessage(), failed);
        }
    }

    private SpelExpression parse(String text) {
        try {
            return ExactArithmetic.parser(classLoader).parseRaw(text);
        } catch (ParseException | IllegalStateException unreadable) {
            throw new IllegalArgumentException("SpEL can't parse it, " + unreadable.getMessage(), unreadable);
        }
    }

    /**
     * Returns the positions of a method's arguments by the names that an expression may use: {@code p0}, {@code a0} and
     * the names of the parameters. Names of the annotated method win over names of the method itself.
     *
     * @param annotated the method that has the annotation, perhaps of an interface; null if a type has it
     */
    static Map<String, Integer> parameters(Method method, @Nullable Method annotated) {
        Map<String, Integer> positions = new HashMap<>();
        int count = Signature.of(method).parameters().size();
        for (int i = 0; i < count; i++) {
            positions.put("p" + i, i);
            positions.put("a" + i, i);
        }
        addNames(positions, method, count);
        if (annotated != null && annotated.getParameterCount() == method.getParameterCount()) {
            addNames(positions, annotated, count);
        }
        return Map.copyOf(positions);
    }

    private static void addNames(Map<String, Integer> positions, Method method, int count) {
        @Nullable String @Nullable [] names = new DefaultParameterNameDiscoverer().getParameterNames(method);
        for (int i = 0; names != null && i < Math.min(names.length, count); i++) {
            if (names[i] != null) {
                positions.put(names[i], i);
            }
        }
    }

    /** Returns the names of a key's parts: the elements of a literal list, otherwise the whole text. */
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
            return IntStream.range(0, node.getChildCount()).allMatch(i -> isConstant(node.getChild(i)));
        }
        return node instanceof Literal || node instanceof InlineList list && list.isConstant();
    }

    /**
     * @param inElement whether the node is evaluated for each element of a collection, as in {@code #rows.?[size > 1]}. A
     *     name on its own is then a property of the element
     * @param afterDot whether the node is evaluated on the value to the left of a dot
     */
    private static void check(
            SpelNode node, boolean inElement, boolean afterDot, Map<String, Integer> parameters, DeclaredTypes types) {
        boolean hasNoTarget = !inElement && !afterDot;
        if (node instanceof VariableReference) {
            checkVariable(variable(node), inElement, parameters);
        } else if (node instanceof FunctionReference) {
            throw new IllegalArgumentException("the function " + node.toStringAST() + " isn't defined");
        } else if (hasNoTarget && (node instanceof PropertyOrFieldReference || node instanceof MethodReference)) {
            throw new IllegalArgumentException("'" + node.toStringAST()
                    + "' is neither an argument, which is written '#name', nor a text, which is written in quotes");
        }
        boolean elements = inElement || node instanceof Projection || node instanceof Selection;
        for (int i = 0; i < node.getChildCount(); i++) {
            check(node.getChild(i), elements, node instanceof CompoundExpression && i > 0, parameters, types);
        }
        if (node instanceof CompoundExpression) {
            types.check(node, parameters);
        }
    }

    private static void checkVariable(String name, boolean inElement, Map<String, Integer> parameters) {
        if (name.equals("this") && inElement || parameters.containsKey(name)) {
            return;
        }
        boolean hasNames = parameters.keySet().stream().anyMatch(parameter -> !parameter.matches("[ap]\\d+"));
        String names = String.join(", ", parameters.keySet().stream().sorted().toList());
        throw new IllegalArgumentException("the method has no parameter '#" + name + "'"
                + (parameters.isEmpty() ? ", nor any other" : ", only: " + names)
                + (hasNames || parameters.isEmpty()
                        ? ""
                        : ". Names are available if classes are compiled with -parameters"));
    }

    private static String variable(SpelNode node) {
        return node.toStringAST().substring(1);
    }
}
