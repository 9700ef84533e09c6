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
import org.springframework.expression.spel.ast.OpMinus;
import org.springframework.expression.spel.ast.OpOr;
import org.springframework.expression.spel.ast.OperatorBetween;
import org.springframework.expression.spel.ast.OperatorMatches;
import org.springframework.expression.spel.ast.OperatorNot;
import org.springframework.expression.spel.ast.OperatorPower;
import org.springframework.expression.spel.ast.PropertyOrFieldReference;
import org.springframework.expression.spel.ast.StringLiteral;
import org.springframework.expression.spel.ast.Ternary;

/** Checks that an expression uses only the facts of a request. Rejects everything that this class doesn't list. */
final class ExpressionCheck {

    private static final List<String> PROPERTIES =
            List.of("method", "path", "endpoint", "ip", "user", "roles", "contentLength");
    private static final List<String> FUNCTIONS =
            List.of("header", "query", "cookie", "pathVariable", "claim", "number", "bean");

    /** Methods of texts and collections; none depends on the default locale, and none returns more than it receives. */
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

    /** Operators beside those of {@link ExactArithmetic}, of which all but the power can be used. */
    private static final Set<Class<?>> OPERATORS = Set.of(
            OpAnd.class,
            OpOr.class,
            OperatorNot.class,
            OpMinus.class, // also before a number
            OperatorBetween.class,
            Ternary.class,
            Elvis.class,
            InlineList.class);

    /** The prefix of the facts that are beans. */
    static final String BEAN = "bean:";

    private static final String FACTS = String.join(", ", PROPERTIES)
            + ", header('NAME'), query('NAME'), cookie('NAME'), pathVariable('NAME')"
            + ", claim('NAME'), bean('NAME') and number(TEXT)";

    private final Set<String> facts = new HashSet<>();

    private ExpressionCheck() {}

    /**
     * Returns the names of the facts that an expression uses. For a bean it is the name behind {@value #BEAN}.
     *
     * @throws IllegalArgumentException if the expression uses anything else
     */
    static Set<String> facts(SpelNode expression) {
        ExpressionCheck check = new ExpressionCheck();
        check.checkNode(expression);
        return Set.copyOf(check.facts);
    }

    private void checkNode(SpelNode node) {
        if (node instanceof PropertyOrFieldReference property) {
            addFact(PROPERTIES.contains(property.getName()), property.getName());
        } else if (node instanceof MethodReference function) {
            checkFunction(function);
        } else if (node instanceof CompoundExpression chain) {
            checkChain(chain);
        } else if (node instanceof OperatorMatches matches) {
            checkPattern(matches);
        } else if (isOperator(node)) {
            checkOperands(node);
            checkChildren(node);
        } else if (!(node instanceof Literal)) {
            throw new IllegalArgumentException(
                    "'" + node.toStringAST() + "' can't be used in an expression of a policy,"
                            + " which can use only the facts of a request: " + FACTS);
        }
    }

    private static boolean isOperator(SpelNode node) {
        return OPERATORS.contains(node.getClass())
                || ExactArithmetic.isComparison(node)
                || ExactArithmetic.isCalculation(node) && !(node instanceof OperatorPower);
    }

    private void checkChildren(SpelNode node) {
        for (int i = 0; i < node.getChildCount(); i++) {
            checkNode(node.getChild(i));
        }
    }

    /** Rejects a text where an operator needs a number. SpEL would fail for each request, and the default would apply. */
    private static void checkOperands(SpelNode node) {
        boolean hasNumber = false;
        for (int i = 0; i < node.getChildCount(); i++) {
            hasNumber |= node.getChild(i) instanceof Literal literal
                    && !(literal instanceof StringLiteral)
                    && literal.getLiteralValue().getValue() instanceof Number;
        }
        for (int i = 0; i < node.getChildCount(); i++) {
            if (isText(node.getChild(i))
                    && (ExactArithmetic.isOfNumbers(node) || ExactArithmetic.isComparison(node) && hasNumber)) {
                String text = node.getChild(i).toStringAST();
                throw new IllegalArgumentException("'" + text + "' is text, and '" + node.toStringAST()
                        + "' needs a number: write number(" + text + ")");
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

    private void addFact(boolean exists, String name) {
        if (!exists) {
            throw new IllegalArgumentException("A request has no '" + name + "'; its facts are " + FACTS);
        }
        facts.add(name);
    }

    private void checkFunction(MethodReference function) {
        String name = function.getName();
        addFact(FUNCTIONS.contains(name), function.getChildCount() == 0 ? name + "()" : name);
        if (function.getChildCount() != 1) {
            String example = name.equals("number") ? "number(query('rows'))" : name + "('a')";
            throw new IllegalArgumentException("'" + name + "' takes one argument, as in " + example);
        }
        if (name.equals("bean")) {
            addBean(function.getChild(0));
        }
        checkChildren(function);
    }

    /** Rejects a name that depends on the request: the start has to find the bean. */
    private void addBean(SpelNode name) {
        if (!(name instanceof StringLiteral text)) {
            throw new IllegalArgumentException("'bean' takes the name of a bean in quotes, but was "
                    + name.toStringAST() + ": write bean('trial')");
        }
        facts.add(BEAN + text.getLiteralValue().getValue());
    }

    /** Checks a chain such as {@code user.startsWith('a')}: a fact, followed by methods of its value. */
    private void checkChain(CompoundExpression chain) {
        checkNode(chain.getChild(0));
        for (int i = 1; i < chain.getChildCount(); i++) {
            SpelNode link = chain.getChild(i);
            if (!(link instanceof MethodReference method) || !METHODS.contains(method.getName())) {
                throw new IllegalArgumentException("'" + link.toStringAST()
                        + "' can't be called on a value; the methods are " + String.join("(), ", METHODS) + "()");
            }
            checkChildren(link);
        }
    }

    /** Rejects a pattern that depends on the request: a client could choose one whose evaluation never ends. */
    private void checkPattern(OperatorMatches matches) {
        if (!(matches.getChild(1) instanceof StringLiteral pattern)) {
            throw new IllegalArgumentException(
                    "'" + matches.toStringAST() + "' must have a pattern in quotes: write user matches 'a.*'");
        }
        try {
            Pattern.compile(String.valueOf(pattern.getLiteralValue().getValue()));
        } catch (PatternSyntaxException unreadable) {
            throw new IllegalArgumentException(
                    "'" + matches.toStringAST() + "' has an invalid pattern: " + unreadable.getDescription());
        }
        checkNode(matches.getChild(0));
    }
}
