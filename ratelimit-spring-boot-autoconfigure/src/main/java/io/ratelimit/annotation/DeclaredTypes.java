package io.ratelimit.annotation;

import io.ratelimit.annotation.MethodCharge.Key;
import io.ratelimit.annotation.SourceLocation.Signature;
import io.ratelimit.policy.RateLimitConfigurationException;
import java.lang.reflect.Field;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletionStage;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.NativeDetector;
import org.springframework.core.ResolvableType;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.ast.PropertyOrFieldReference;
import org.springframework.expression.spel.ast.VariableReference;
import org.springframework.expression.spel.support.ReflectivePropertyAccessor;
import org.springframework.util.ClassUtils;
import org.springframework.util.StringUtils;

/**
 * The types that a method declares for its arguments and its result. They show a property that no value has, such as
 * {@code #tenant.idd}, before a call fails. A type is judged only if its values have no further properties: a final class,
 * or a class of the application that nothing marks as a base of others.
 *
 * @param application a class of the application; null if only final classes are judged
 */
record DeclaredTypes(Method method, @Nullable Class<?> application) {

    private static final Getters GETTERS = new Getters();

    private static final Set<String> METHODS_OF_OBJECT =
            Set.of("getClass", "hashCode", "toString", "notify", "notifyAll", "wait", "equals");

    /**
     * Checks the properties that follow a variable with dots.
     *
     * @param compound an expression whose parts are joined by dots
     * @param positions the positions of the arguments by name; the result comes after the last
     * @throws IllegalArgumentException if no value has one of the properties
     */
    void check(SpelNode compound, Map<String, Integer> positions) {
        Integer position = compound.getChild(0) instanceof VariableReference variable
                ? positions.get(variable.toStringAST().substring(1))
                : null;
        if (position == null || NativeDetector.inNativeImage()) { // there, reflection finds less than the class has
            return;
        }
        try {
            check(compound, type(position));
        } catch (TypeNotPresentException | LinkageError incomplete) {
            return; // an optional library is missing, so the type can't be judged
        }
    }

    /**
     * Checks an argument that is the key of a call.
     *
     * @throws IllegalArgumentException if no value of its type is a text, or a list or an array of texts
     */
    void checkKey(int position) {
        Class<?> declared = type(position);
        Class<?> type = declared == null ? Object.class : ClassUtils.resolvePrimitiveIfNecessary(declared);
        if (Modifier.isFinal(type.getModifiers())
                && !type.isArray()
                && !Collection.class.isAssignableFrom(type)
                && !Key.isTextType(type)) {
            throw new IllegalArgumentException(type.getName() + " isn't a text, so each call would lack its key");
        }
    }

    private void check(SpelNode compound, @Nullable Class<?> variable) {
        Class<?> type = variable;
        for (int i = 1; i < compound.getChildCount(); i++) {
            if (type == null
                    || !(compound.getChild(i) instanceof PropertyOrFieldReference property)
                    || !isComplete(ClassUtils.resolvePrimitiveIfNecessary(type))) {
                return;
            }
            type = GETTERS.type(property.getName(), ClassUtils.resolvePrimitiveIfNecessary(type));
        }
    }

    private @Nullable Class<?> type(int position) {
        return position < method.getParameterCount()
                ? certain(method.getGenericParameterTypes()[position], method.getParameterTypes()[position])
                : result();
    }

    private @Nullable Class<?> result() {
        Signature signature = Signature.of(method);
        if (signature.suspends()) {
            ResolvableType continuation = ResolvableType.forMethodParameter(method, method.getParameterCount() - 1);
            return continuation.hasUnresolvableGenerics() ? null : signature.result();
        }
        ResolvableType type = ResolvableType.forMethodReturnType(method);
        if (CompletionStage.class.isAssignableFrom(method.getReturnType())) {
            type = type.as(CompletionStage.class);
        } else if (!CallResult.isMono(method.getReturnType())) {
            return certain(method.getGenericReturnType(), method.getReturnType());
        }
        return type.hasUnresolvableGenerics() ? null : type.getGeneric().resolve();
    }

    /** Returns the class; null if it is only the bound of a type variable. */
    private static @Nullable Class<?> certain(Type generic, Class<?> type) {
        return generic instanceof TypeVariable ? null : type;
    }

    /** Returns whether values of the type have no properties beyond those of the class. */
    private boolean isComplete(Class<?> type) {
        if (type.isArray() || type == Optional.class || Map.class.isAssignableFrom(type)) {
            return false; // SpEL reads some of their contents like properties
        }
        return Modifier.isFinal(type.getModifiers())
                || application != null
                        && domain(type).equals(domain(application))
                        && !Modifier.isAbstract(type.getModifiers())
                        && !type.isSealed()
                        && !type.isEnum()
                        && !Throwable.class.isAssignableFrom(type);
    }

    /** Returns the first two names of the package, such as {@code com.example}: those of an organization or of a program. */
    private static String domain(Class<?> type) {
        return Stream.of(type.getPackageName().split("\\.")).limit(2).collect(Collectors.joining("."));
    }

    /** The getters and fields that SpEL finds in a class. */
    private static final class Getters extends ReflectivePropertyAccessor {

        @Nullable
        Class<?> type(String name, Class<?> type) {
            Member property = find(name, type);
            if (property == null) {
                Set<String> names = names(type);
                throw new IllegalArgumentException(type.getName() + " has no property '" + name + "'"
                        + RateLimitConfigurationException.nearest(name, names)
                                .map(nearest -> ": did you mean '" + nearest + "'?")
                                .orElse(names.isEmpty() ? ", nor any other" : ", only: " + String.join(", ", names)));
            }
            return property instanceof Method getter
                    ? certain(getter.getGenericReturnType(), getter.getReturnType())
                    : certain(((Field) property).getGenericType(), ((Field) property).getType());
        }

        private @Nullable Member find(String name, Class<?> type) {
            Method getter = findGetterForProperty(name, type, false);
            return getter != null ? getter : findField(name, type, false);
        }

        private Set<String> names(Class<?> type) {
            Stream<String> getters = Arrays.stream(type.getMethods())
                    .map(Method::getName)
                    .filter(name -> !METHODS_OF_OBJECT.contains(name))
                    .map(name -> name.matches("(get|is)\\p{Lu}.*")
                            ? StringUtils.uncapitalizeAsProperty(name.replaceFirst("get|is", ""))
                            : name);
            Stream<String> fields = Arrays.stream(type.getFields()).map(Field::getName);
            return Stream.concat(getters, fields)
                    .filter(name -> find(name, type) != null)
                    .collect(Collectors.toCollection(TreeSet::new));
        }
    }
}
