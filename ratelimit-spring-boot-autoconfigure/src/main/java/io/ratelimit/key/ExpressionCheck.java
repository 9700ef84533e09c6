package io.ratelimit.key;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.ast.CompoundExpression;
import org.springframework.expression.spel.ast.Elvis;
import org.springframework.expression.spel.ast.InlineList;
import org.springframework.expression.spel.ast.Literal;
import org.springframework.expression.spel.ast.MethodReference;
import org.springframework.expression.spel.ast.OpAnd;
import org.springframework.expression.spel.ast.OpDivide;
import org.springframework.expression.spel.ast.OpEQ;
import org.springframework.expression.spel.ast.OpGE;
import org.springframework.expression.spel.ast.OpGT;
import org.springframework.expression.spel.ast.OpLE;
import org.springframework.expression.spel.ast.OpLT;
import org.springframework.expression.spel.ast.OpMinus;
import org.springframework.expression.spel.ast.OpModulus;
import org.springframework.expression.spel.ast.OpMultiply;
import org.springframework.expression.spel.ast.OpNE;
import org.springframework.expression.spel.ast.OpOr;
import org.springframework.expression.spel.ast.OpPlus;
import org.springframework.expression.spel.ast.OperatorBetween;
import org.springframework.expression.spel.ast.OperatorMatches;
import org.springframework.expression.spel.ast.OperatorNot;
import org.springframework.expression.spel.ast.PropertyOrFieldReference;
import org.springframework.expression.spel.ast.StringLiteral;
import org.springframework.expression.spel.ast.Ternary;

/** Holds a parsed expression to the facts of a request: whatever isn't named here is refused. */
final class ExpressionCheck {

    private static final List<String> PROPERTIES =
            List.of("method", "path", "endpoint", "ip", "user", "roles", "contentLength");
    private static final List<String> FUNCTIONS = List.of("header", "query", "cookie", "pathVariable", "number");

    /** Of texts and collections. None that depends on the machine's language, and none that makes much of little. */
    private static final List<String> METHODS = List.of(
            "contains",
            "endsWith",
            "equalsIgnoreCase",
            "indexOf",
            "isBlank",
            "isEmpty",
            "length",
            "size",
            "startsWith",
            "strip",
            "substring");

    private static final Set<Class<?>> OPERATORS = Set.of(
            OpAnd.class,
            OpOr.class,
            OperatorNot.class,
            OpEQ.class,
            OpNE.class,
            OpLT.class,
            OpLE.class,
            OpGT.class,
            OpGE.class,
            OpPlus.class,
            OpMinus.class,
            OpMultiply.class,
            OpDivide.class,
            OpModulus.class,
            OperatorBetween.class,
            Ternary.class,
            Elvis.class,
            InlineList.class);

    private static final String THERE_ARE = ": there are " + String.join(", ", PROPERTIES)
            + ", header('NAME'), query('NAME'), cookie('NAME'), pathVariable('NAME')"
            + " and number(TEXT)";

    private final Set<String> facts = new HashSet<>();

    private ExpressionCheck() {}

    /**
     * The facts that an expression asks for.
     *
     * @throws IllegalArgumentException if it asks for anything else
     */
    static Set<String> facts(SpelNode expression) {
        ExpressionCheck check = new ExpressionCheck();
        check.node(expression);
        return Set.copyOf(check.facts);
    }

    private void node(SpelNode node) {
        if (node instanceof PropertyOrFieldReference property) {
            fact(PROPERTIES.contains(property.getName()), property.getName());
        } else if (node instanceof MethodReference function) {
            function(function);
        } else if (node instanceof CompoundExpression chain) {
            chain(chain);
        } else if (node instanceof OperatorMatches matches) {
            matches(matches);
        } else if (OPERATORS.contains(node.getClass())) {
            numbers(node);
            children(node);
        } else if (!(node instanceof Literal)) {
            throw new IllegalArgumentException(
                    "'" + node.toStringAST() + "' can't be used in an expression of a policy,"
                            + " which sees the facts of the request alone" + THERE_ARE);
        }
    }

    private void children(SpelNode node) {
        for (int i = 0; i < node.getChildCount(); i++) {
            node(node.getChild(i));
        }
    }

    /** SpEL fails with such, which would be as if nothing were asked for. */
    private static void numbers(SpelNode node) {
        boolean comparison = node instanceof OpLT
                || node instanceof OpLE
                || node instanceof OpGT
                || node instanceof OpGE
                || node instanceof OpEQ
                || node instanceof OpNE;
        boolean withNumber = false;
        for (int i = 0; i < node.getChildCount(); i++) {
            withNumber |= node.getChild(i) instanceof Literal literal
                    && !(literal instanceof StringLiteral)
                    && literal.getLiteralValue().getValue() instanceof Number;
        }
        for (int i = 0; i < node.getChildCount(); i++) {
            if (isText(node.getChild(i)) && (Arithmetic.isOfNumbers(node) || comparison && withNumber)) {
                String text = node.getChild(i).toStringAST();
                throw new IllegalArgumentException("'" + text + "' is text, and '" + node.toStringAST()
                        + "' needs a number: say number(" + text + ")");
            }
        }
    }

    private static boolean isText(SpelNode node) {
        return node instanceof StringLiteral
                || node instanceof PropertyOrFieldReference property
                        && !property.getName().equals("contentLength")
                || node instanceof MethodReference function
                        && !function.getName().equals("number");
    }

    private void fact(boolean known, String name) {
        if (!known) {
            throw new IllegalArgumentException("A request has no '" + name + "'" + THERE_ARE);
        }
        facts.add(name);
    }

    private void function(MethodReference function) {
        String name = function.getName();
        fact(FUNCTIONS.contains(name), function.getChildCount() == 0 ? name + "()" : name);
        if (function.getChildCount() != 1) {
            String example = name.equals("number") ? "number(query('rows'))" : name + "('a')";
            throw new IllegalArgumentException("'" + name + "' takes one argument, as in " + example);
        }
        children(function);
    }

    /** {@code user.startsWith('a')}: what comes after the first dot is asked of a value, not of the request. */
    private void chain(CompoundExpression chain) {
        node(chain.getChild(0));
        for (int i = 1; i < chain.getChildCount(); i++) {
            SpelNode link = chain.getChild(i);
            if (!(link instanceof MethodReference method) || !METHODS.contains(method.getName())) {
                throw new IllegalArgumentException("'" + link.toStringAST() + "' can't be asked of a value: there are "
                        + String.join("(), ", METHODS) + "()");
            }
            children(link);
        }
    }

    /** A pattern that a client could choose might take for ever. */
    private void matches(OperatorMatches matches) {
        if (!(matches.getChild(1) instanceof StringLiteral pattern)) {
            throw new IllegalArgumentException(
                    "'" + matches.toStringAST() + "' must have its pattern written out, as in user matches 'a.*'");
        }
        try {
            Pattern.compile(String.valueOf(pattern.getLiteralValue().getValue()));
        } catch (PatternSyntaxException unreadable) {
            throw new IllegalArgumentException(
                    "'" + matches.toStringAST() + "' has no pattern: " + unreadable.getDescription());
        }
        node(matches.getChild(0));
    }
}
