package io.ratelimit.annotation;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.expression.BeanResolver;
import org.springframework.expression.ConstructorResolver;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.IndexAccessor;
import org.springframework.expression.MethodResolver;
import org.springframework.expression.OperatorOverloader;
import org.springframework.expression.PropertyAccessor;
import org.springframework.expression.TypeComparator;
import org.springframework.expression.TypeConverter;
import org.springframework.expression.TypeLocator;
import org.springframework.expression.TypedValue;
import org.springframework.expression.spel.standard.SpelExpression;

/** An attribute of an annotation whose value may depend on the arguments of a call. */
@FunctionalInterface
interface CallValue {

    /** @throws RuntimeException if an expression fails */
    @Nullable
    Object value(@Nullable Object[] arguments);

    record Constant(@Nullable Object value) implements CallValue {

        @Override
        public @Nullable Object value(@Nullable Object[] arguments) {
            return value;
        }
    }

    record Argument(int index) implements CallValue {

        @Override
        public @Nullable Object value(@Nullable Object[] arguments) {
            return arguments[index];
        }
    }

    /** @param shared the context that all calls share, except for the variables */
    record Expression(SpelExpression expression, EvaluationContext shared, Map<String, Integer> parameters)
            implements CallValue {

        @Override
        public @Nullable Object value(@Nullable Object[] arguments) {
            return expression.getValue(new CallContext(shared, parameters, arguments));
        }
    }

    /** The arguments of one call as the variables of an expression. Everything else is delegated to the shared context. */
    record CallContext(
            EvaluationContext shared,
            Map<String, Integer> parameters,
            @Nullable Object[] arguments) implements EvaluationContext {

        @Override
        public @Nullable Object lookupVariable(String name) {
            Integer index = parameters.get(name);
            return index == null ? null : arguments[index];
        }

        @Override
        public void setVariable(String name, @Nullable Object value) {
            throw new UnsupportedOperationException("an argument can't be assigned");
        }

        @Override
        public boolean isAssignmentEnabled() {
            return false;
        }

        @Override
        public TypedValue getRootObject() {
            return TypedValue.NULL;
        }

        @Override
        public List<PropertyAccessor> getPropertyAccessors() {
            return shared.getPropertyAccessors();
        }

        @Override
        public List<IndexAccessor> getIndexAccessors() {
            return shared.getIndexAccessors();
        }

        @Override
        public List<ConstructorResolver> getConstructorResolvers() {
            return shared.getConstructorResolvers();
        }

        @Override
        public List<MethodResolver> getMethodResolvers() {
            return shared.getMethodResolvers();
        }

        @Override
        public @Nullable BeanResolver getBeanResolver() {
            return shared.getBeanResolver();
        }

        @Override
        public TypeLocator getTypeLocator() {
            return shared.getTypeLocator();
        }

        @Override
        public TypeConverter getTypeConverter() {
            return shared.getTypeConverter();
        }

        @Override
        public TypeComparator getTypeComparator() {
            return shared.getTypeComparator();
        }

        @Override
        public OperatorOverloader getOperatorOverloader() {
            return shared.getOperatorOverloader();
        }
    }
}
