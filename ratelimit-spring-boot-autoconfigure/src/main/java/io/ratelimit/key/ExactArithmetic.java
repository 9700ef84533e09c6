package io.ratelimit.key;

import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.core.NativeDetector;
import org.springframework.expression.spel.SpelCompilerMode;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.SpelParserConfiguration;
import org.springframework.expression.spel.ast.CompoundExpression;
import org.springframework.expression.spel.ast.Elvis;
import org.springframework.expression.spel.ast.Indexer;
import org.springframework.expression.spel.ast.InlineList;
import org.springframework.expression.spel.ast.InlineMap;
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
import org.springframework.expression.spel.ast.Operator;
import org.springframework.expression.spel.ast.OperatorBetween;
import org.springframework.expression.spel.ast.OperatorInstanceof;
import org.springframework.expression.spel.ast.OperatorMatches;
import org.springframework.expression.spel.ast.OperatorNot;
import org.springframework.expression.spel.ast.OperatorPower;
import org.springframework.expression.spel.ast.Projection;
import org.springframework.expression.spel.ast.Selection;
import org.springframework.expression.spel.ast.SpelNodeImpl;
import org.springframework.expression.spel.ast.Ternary;
import org.springframework.expression.spel.standard.SpelExpression;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.util.ConcurrentLruCache;

/**
 * Arithmetic of expressions in which whole numbers, which a client can make large, don't overflow. In SpEL, 2,147,484 rows at
 * 1,000 tokens each come to less than one token. In a rebuilt expression each operator is an {@link ExactOperator},
 * at any depth; all other nodes remain SpEL's own.
 */
public final class ExactArithmetic {

    private static final SpelParserConfiguration INTERPRETED =
            new SpelParserConfiguration(SpelCompilerMode.OFF, ExactArithmetic.class.getClassLoader());

    /** A native image can't load a class that the compiler of expressions has made. */
    private static final SpelCompilerMode MODE =
            NativeDetector.inNativeImage() ? SpelCompilerMode.OFF : SpelCompilerMode.MIXED;

    @FunctionalInterface
    private interface NodeFactory {
        SpelNodeImpl create(int start, int end, SpelNodeImpl... children);
    }

    private static final Map<Class<?>, NodeFactory> CALCULATIONS = Map.of(
            OpPlus.class, OpPlus::new,
            OpMinus.class, OpMinus::new,
            OpMultiply.class, OpMultiply::new,
            OpDivide.class, OpDivide::new,
            OpModulus.class, OpModulus::new,
            OperatorPower.class, OperatorPower::new);

    private static final Map<Class<?>, NodeFactory> COMPARISONS = Map.of(
            OpLT.class, OpLT::new,
            OpLE.class, OpLE::new,
            OpGT.class, OpGT::new,
            OpGE.class, OpGE::new,
            OpEQ.class, OpEQ::new,
            OpNE.class, OpNE::new);

    private static final Map<Class<?>, NodeFactory> OTHERS = Map.of(
            OpAnd.class, OpAnd::new,
            OpOr.class, OpOr::new,
            OperatorBetween.class, OperatorBetween::new,
            OperatorMatches.class, ExactArithmetic::matches,
            OperatorInstanceof.class, OperatorInstanceof::new,
            Ternary.class, Ternary::new,
            Elvis.class, Elvis::new,
            InlineList.class, InlineList::new,
            InlineMap.class, InlineMap::new,
            CompoundExpression.class, CompoundExpression::new);

    private static final List<Map<Class<?>, NodeFactory>> FACTORIES = List.of(CALCULATIONS, COMPARISONS, OTHERS);

    private ExactArithmetic() {}

    /** Returns a parser of expressions that are compiled after some use, but never in a native image. */
    public static SpelExpressionParser parser(@Nullable ClassLoader classLoader) {
        return new SpelExpressionParser(new SpelParserConfiguration(MODE, classLoader));
    }

    /**
     * Returns the expression with exact operators; the same instance if it calculates nothing.
     *
     * @throws IllegalArgumentException if a node that can't be rebuilt contains a calculation
     */
    public static SpelExpression exact(SpelExpression expression) {
        SpelNodeImpl ast = (SpelNodeImpl) expression.getAST();
        SpelNodeImpl exact = exact(ast, false);
        return exact == ast ? expression : new SpelExpression(expression.getExpressionString(), exact, INTERPRETED);
    }

    /**
     * @param typed whether the value must keep its Java type, such as the argument of a method
     */
    private static SpelNodeImpl exact(SpelNodeImpl node, boolean typed) {
        boolean calculates = isCalculation(node);
        boolean changed = false;
        SpelNodeImpl[] children = new SpelNodeImpl[node.getChildCount()];
        for (int i = 0; i < children.length; i++) {
            SpelNodeImpl child = (SpelNodeImpl) node.getChild(i);
            children[i] = exact(child, isTyped(node, i, typed));
            changed |= children[i] != child;
        }
        if (calculates || changed && isComparison(node)) {
            return new ExactOperator((Operator) node, typed, children);
        }
        return changed ? copy(node, children) : node;
    }

    static boolean isComparison(SpelNode node) {
        return COMPARISONS.containsKey(node.getClass());
    }

    /** Returns whether the operator needs numbers: {@code +} takes texts as well. */
    static boolean isOfNumbers(SpelNode node) {
        return isCalculation(node) && !(node instanceof OpPlus);
    }

    static boolean isCalculation(SpelNode node) {
        return CALCULATIONS.containsKey(node.getClass())
                && !(node instanceof OpMinus minus && minus.isNegativeNumberLiteral());
    }

    private static boolean isTyped(SpelNode parent, int child, boolean typed) {
        if (parent instanceof MethodReference || parent instanceof Indexer) {
            return true;
        } else if (parent instanceof CompoundExpression) {
            return child == 0;
        } else if (parent instanceof Ternary) {
            return typed && child > 0;
        }
        return typed && (parent instanceof Elvis || isCalculation(parent));
    }

    static SpelNodeImpl copy(SpelNodeImpl node, SpelNodeImpl... children) {
        int start = node.getStartPosition();
        int end = node.getEndPosition();
        for (Map<Class<?>, NodeFactory> factories : FACTORIES) {
            NodeFactory factory = factories.get(node.getClass());
            if (factory != null) {
                return factory.create(start, end, children);
            }
        }
        if (node instanceof MethodReference method) {
            return new MethodReference(method.isNullSafe(), method.getName(), start, end, children);
        } else if (node instanceof OperatorNot) {
            return new OperatorNot(start, end, children[0]);
        } else if (node instanceof Indexer) {
            return new Indexer(node.isNullSafe(), start, end, children[0]);
        } else if (node instanceof Projection) {
            return new Projection(node.isNullSafe(), start, end, children[0]);
        } else if (node instanceof Selection) {
            return new Selection(node.isNullSafe(), variant(node), start, end, children[0]);
        }
        throw new IllegalArgumentException(
                "'" + node.toStringAST() + "' can't contain a calculation: its whole numbers would overflow");
    }

    private static SpelNodeImpl matches(int start, int end, SpelNodeImpl... children) {
        return new OperatorMatches(
                new ConcurrentLruCache<>(OperatorMatches.MAX_PATTERN_CACHE_SIZE, Pattern::compile),
                start,
                end,
                children);
    }

    /** Returns the variant of a selection, which only its text contains. */
    private static int variant(SpelNode selection) {
        return switch (selection.toStringAST().charAt(0)) {
            case '^' -> Selection.FIRST;
            case '$' -> Selection.LAST;
            default -> Selection.ALL;
        };
    }
}
