package io.ratelimit.key;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.core.NativeDetector;
import org.springframework.expression.TypedValue;
import org.springframework.expression.spel.ExpressionState;
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

    /** Returns whether the node is an operator that calculates. */
    private static boolean isCalculation(SpelNode node) {
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

    /** Returns a node that is the same but for its children. */
    private static SpelNodeImpl copy(SpelNodeImpl node, SpelNodeImpl... children) {
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

    /**
     * An arithmetic operator or a comparison that evaluates each operand once. A whole number that doesn't fit the type of the
     * operands becomes a {@link BigInteger}. Where the value must keep that type, it becomes the type's largest or smallest
     * number. An operation on a missing operand fails; SpEL would use the text {@code null}. All other operands are left to
     * SpEL.
     */
    private static final class ExactOperator extends SpelNodeImpl {

        /** Bounds the work that clients can cause; a larger number behaves like infinity. */
        private static final int MAX_BITS = 4096;

        private static final BigInteger MAX = BigInteger.ONE.shiftLeft(MAX_BITS);

        private final Operator operator;
        private final boolean typed;

        /** @param typed whether a whole number must keep the type of the operands */
        ExactOperator(Operator operator, boolean typed, SpelNodeImpl... operands) {
            super(operator.getStartPosition(), operator.getEndPosition(), operands);
            this.operator = operator;
            this.typed = typed;
        }

        @Override
        public TypedValue getValueInternal(ExpressionState state) {
            TypedValue[] operands = new TypedValue[children.length];
            for (int i = 0; i < operands.length; i++) {
                operands[i] = children[i].getValueInternal(state);
            }
            Object first = operands[0].getValue();
            Object result = operands.length == 1
                    ? calculate(0, first) // a sign
                    : calculate(first, operands[1].getValue());
            return result == null ? spelOperator(operands).getTypedValue(state) : new TypedValue(result);
        }

        private SpelNodeImpl spelOperator(TypedValue[] operands) {
            SpelNodeImpl[] nodes = new SpelNodeImpl[operands.length];
            for (int i = 0; i < nodes.length; i++) {
                nodes[i] = new Operand(operands[i]);
            }
            return copy(operator, nodes);
        }

        /** Returns null for operands that are left to SpEL. */
        private @Nullable Object calculate(@Nullable Object left, @Nullable Object right) {
            if (left instanceof Number a && right instanceof Number b) {
                return isWhole(a) && isWhole(b) ? whole(a, b) : decimal(a, b);
            }
            if ((left == null || right == null) && isCalculation(operator)) {
                throw new IllegalStateException("an operand is missing");
            }
            return null;
        }

        private static boolean isWhole(Number number) {
            return !(number instanceof Double || number instanceof Float || number instanceof BigDecimal);
        }

        private static BigInteger integer(Number number) {
            return number instanceof BigInteger large ? large : BigInteger.valueOf(number.longValue());
        }

        private Object whole(Number left, Number right) {
            BigInteger a = integer(left);
            BigInteger b = integer(right);
            return switch (operator.getOperatorName()) {
                case "+" -> fitted(a.add(b), left, right);
                case "-" -> fitted(a.subtract(b), left, right);
                case "*" -> fitted(product(a, b), left, right);
                case "/" -> fitted(a.divide(b), left, right);
                case "%" -> fitted(a.remainder(b), left, right);
                case "^" -> power(a, b, left, right);
                default -> comparison(a.compareTo(b));
            };
        }

        private static BigInteger product(BigInteger a, BigInteger b) {
            if (a.bitLength() + b.bitLength() <= MAX_BITS) {
                return a.multiply(b);
            }
            int sign = a.signum() * b.signum();
            return sign == 0 ? BigInteger.ZERO : sign > 0 ? MAX : MAX.negate();
        }

        private Object power(BigInteger a, BigInteger b, Number left, Number right) {
            boolean isSmall =
                    b.signum() >= 0 && b.bitLength() < Integer.SIZE && (long) a.bitLength() * b.intValue() <= MAX_BITS;
            return isSmall ? fitted(a.pow(b.intValue()), left, right) : Math.pow(a.doubleValue(), b.doubleValue());
        }

        /** The result in the type that it would have in SpEL, if it fits. */
        private Number fitted(BigInteger result, Number left, Number right) {
            if (left instanceof BigInteger || right instanceof BigInteger) {
                return result;
            }
            boolean isInt = isInt(left) && isInt(right);
            if (result.bitLength() >= (isInt ? Integer.SIZE : Long.SIZE)) {
                if (!typed) {
                    return result;
                }
                result = BigInteger.valueOf(
                        result.signum() > 0
                                ? isInt ? Integer.MAX_VALUE : Long.MAX_VALUE
                                : isInt ? Integer.MIN_VALUE : Long.MIN_VALUE);
            }
            return isInt ? (Number) result.intValue() : (Number) result.longValue();
        }

        private static boolean isInt(Number number) {
            return number instanceof Integer || number instanceof Short || number instanceof Byte;
        }

        private Object decimal(Number left, Number right) {
            double a = left.doubleValue();
            double b = right.doubleValue();
            return switch (operator.getOperatorName()) {
                case "+" -> fitted(a + b, left, right);
                case "-" -> fitted(a - b, left, right);
                case "*" -> fitted(a * b, left, right);
                case "/" -> fitted(a / b, left, right);
                case "%" -> fitted(a % b, left, right);
                case "^" -> fitted(Math.pow(a, b), left, right);
                default -> comparison(Double.compare(a, b));
            };
        }

        private Number fitted(double result, Number left, Number right) {
            if (typed && (left instanceof BigDecimal || right instanceof BigDecimal) && Double.isFinite(result)) {
                return BigDecimal.valueOf(result);
            }
            boolean isDouble = !typed || left instanceof Double || right instanceof Double;
            return isDouble || !Double.isFinite(result) ? (Number) result : (Number) (float) result;
        }

        private boolean comparison(int order) {
            return switch (operator.getOperatorName()) {
                case "<" -> order < 0;
                case "<=" -> order <= 0;
                case ">" -> order > 0;
                case ">=" -> order >= 0;
                case "==" -> order == 0;
                default -> order != 0;
            };
        }

        @Override
        public String toStringAST() {
            return operator.toStringAST();
        }

        private static final class Operand extends SpelNodeImpl {

            private final TypedValue value;

            Operand(TypedValue value) {
                super(0, 0);
                this.value = value;
            }

            @Override
            public TypedValue getValueInternal(ExpressionState state) {
                return value;
            }

            @Override
            public String toStringAST() {
                return "operand";
            }
        }
    }
}
