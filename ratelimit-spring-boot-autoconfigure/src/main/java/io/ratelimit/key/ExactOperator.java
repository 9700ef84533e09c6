package io.ratelimit.key;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.jspecify.annotations.Nullable;
import org.springframework.expression.TypedValue;
import org.springframework.expression.spel.ExpressionState;
import org.springframework.expression.spel.ast.Operator;
import org.springframework.expression.spel.ast.SpelNodeImpl;

/**
 * An arithmetic operator or a comparison that evaluates each operand once. A whole number that doesn't fit the type of the
 * operands becomes a {@link BigInteger}. Where the value must keep that type, it becomes the type's largest or smallest
 * number. An operation on a missing operand fails; SpEL would use the text {@code null}. All other operands are left to
 * SpEL.
 */
final class ExactOperator extends SpelNodeImpl {

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
        return ExactArithmetic.copy(operator, nodes);
    }

    /** Returns null for operands that are left to SpEL. */
    private @Nullable Object calculate(@Nullable Object left, @Nullable Object right) {
        if (left instanceof Number a && right instanceof Number b) {
            return isWhole(a) && isWhole(b) ? whole(a, b) : decimal(a, b);
        }
        if ((left == null || right == null) && ExactArithmetic.isCalculation(operator)) {
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
