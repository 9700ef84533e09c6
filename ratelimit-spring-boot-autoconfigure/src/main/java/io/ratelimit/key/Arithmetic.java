package io.ratelimit.key;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.jspecify.annotations.Nullable;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.TypedValue;
import org.springframework.expression.spel.ExpressionState;
import org.springframework.expression.spel.SpelNode;
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
import org.springframework.expression.spel.ast.Ternary;

/**
 * Works out expressions with numbers that a client can make large. SpEL's whole numbers wrap around: 2,147,484 rows at
 * 1,000 tokens each would come to less than one token. Here they are as large as they are. And a sum with something that
 * is missing fails, where SpEL sometimes makes the text {@code null} of it. All else is left to SpEL.
 */
public final class Arithmetic {

    /** Clients choose the digits: beyond these a number is no cost any more. */
    private static final int MOST_BITS = 4096;

    private Arithmetic() {}

    /** Whether an expression reckons. */
    public static boolean isIn(SpelNode node) {
        boolean found = node instanceof OpPlus || isOfNumbers(node);
        for (int i = 0; i < node.getChildCount() && !found; i++) {
            found = isIn(node.getChild(i));
        }
        return found;
    }

    static boolean isOfNumbers(SpelNode node) {
        return node instanceof OpMinus
                || node instanceof OpMultiply
                || node instanceof OpDivide
                || node instanceof OpModulus;
    }

    /**
     * What an expression comes to.
     *
     * @throws RuntimeException if that can't be told
     */
    public static @Nullable Object value(SpelNode expression, EvaluationContext context, @Nullable Object root) {
        return value(expression, new ExpressionState(context, new TypedValue(root)));
    }

    private static @Nullable Object value(SpelNode node, ExpressionState state) {
        if (node instanceof Ternary) {
            return value(node.getChild(isTrue(node.getChild(0), state) ? 1 : 2), state);
        } else if (node instanceof OpAnd) {
            return isTrue(node.getChild(0), state) && isTrue(node.getChild(1), state);
        } else if (node instanceof OpOr) {
            return isTrue(node.getChild(0), state) || isTrue(node.getChild(1), state);
        } else if (node instanceof Operator operator && operator.getChildCount() == 2 && isIn(node)) {
            return operate(operator, state);
        }
        return node.getValue(state);
    }

    private static boolean isTrue(SpelNode node, ExpressionState state) {
        if (value(node, state) instanceof Boolean value) {
            return value;
        }
        throw new IllegalStateException("a part of it is neither true nor false");
    }

    private static @Nullable Object operate(Operator node, ExpressionState state) {
        Object left = value(node.getChild(0), state);
        Object right = value(node.getChild(1), state);
        if (left instanceof Number a && right instanceof Number b) {
            Object result = isWhole(a) && isWhole(b) ? whole(node, integer(a), integer(b)) : decimal(node, a, b);
            return result == null ? node.getValue(state) : result;
        }
        if ((left == null || right == null) && (node instanceof OpPlus || isOfNumbers(node))) {
            throw new IllegalStateException("a part of it is missing");
        }
        return node.getValue(state);
    }

    private static boolean isWhole(Number number) {
        return !(number instanceof Double || number instanceof Float || number instanceof BigDecimal);
    }

    private static BigInteger integer(Number number) {
        return number instanceof BigInteger large ? large : BigInteger.valueOf(number.longValue());
    }

    private static @Nullable Object whole(Operator node, BigInteger a, BigInteger b) {
        if (node instanceof OpPlus) {
            return a.add(b);
        } else if (node instanceof OpMinus) {
            return a.subtract(b);
        } else if (node instanceof OpMultiply) {
            return checked(a.multiply(b));
        } else if (node instanceof OpDivide) {
            return a.divide(b);
        } else if (node instanceof OpModulus) {
            return a.remainder(b);
        }
        return comparison(node, a.compareTo(b));
    }

    private static BigInteger checked(BigInteger product) {
        if (product.bitLength() > MOST_BITS) {
            throw new ArithmeticException("too large");
        }
        return product;
    }

    private static @Nullable Object decimal(Operator node, Number left, Number right) {
        double a = left.doubleValue();
        double b = right.doubleValue();
        if (node instanceof OpPlus) {
            return a + b;
        } else if (node instanceof OpMinus) {
            return a - b;
        } else if (node instanceof OpMultiply) {
            return a * b;
        } else if (node instanceof OpDivide) {
            return a / b;
        } else if (node instanceof OpModulus) {
            return a % b;
        }
        return comparison(node, Double.compare(a, b));
    }

    private static @Nullable Boolean comparison(Operator node, int order) {
        if (node instanceof OpLT) {
            return order < 0;
        } else if (node instanceof OpLE) {
            return order <= 0;
        } else if (node instanceof OpGT) {
            return order > 0;
        } else if (node instanceof OpGE) {
            return order >= 0;
        } else if (node instanceof OpEQ) {
            return order == 0;
        }
        return node instanceof OpNE ? order != 0 : null;
    }
}
