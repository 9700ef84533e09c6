package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import com.tngtech.archunit.core.domain.JavaMember;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.io.IOException;
import java.lang.reflect.RecordComponent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Public API is a promise: each public type and member is a line of {@code public-api.txt}, so that a change of the
 * API is a changed line. The auto-configuration is left out: what it exports is for Spring Boot.
 */
class PublicApiTests {

    private static final Path PROMISED = Path.of("src/test/resources/public-api.txt");
    private static final Path FOUND = Path.of("target/public-api.txt");

    private static final List<JavaClass> EXPORTED = new ClassFileImporter()
                    .withImportOption(new ImportOption.DoNotIncludeTests())
                    .withImportOption(location -> !location.contains("-tests.jar"))
                    .importPackages("io.ratelimit")
                    .stream()
                    .filter(type -> !type.getPackageName().startsWith("io.ratelimit.autoconfigure"))
                    .filter(PublicApiTests::isExported)
                    .toList();

    /** Members that every object, enum or record has, and members that the compiler adds. */
    private static final Set<String> UNTOLD = Set.of("equals", "hashCode", "toString", "values", "valueOf");

    @Test
    void thePublicApiIsAsRecorded() throws IOException {
        List<String> found =
                EXPORTED.stream().flatMap(PublicApiTests::lines).sorted().toList();
        Files.write(FOUND, found);
        assertThat(found)
                .as("the public API; if the change is meant, copy %s to %s", FOUND, PROMISED)
                .containsExactlyElementsOf(Files.readAllLines(PROMISED));
    }

    @Test
    void publicMembersHaveTypesThatCallersCanName() {
        assertThat(EXPORTED.stream()
                        .flatMap(type -> type.getCodeUnits().stream().filter(member -> isExported(type, member)))
                        .flatMap(member -> Stream.concat(
                                        Stream.of(member.getRawReturnType()), member.getRawParameterTypes().stream())
                                .map(JavaClass::getBaseComponentType)
                                .filter(used -> used.getPackageName().startsWith("io.ratelimit") && !isExported(used))
                                .map(used -> member.getFullName() + " has the type " + used.getSimpleName())))
                .isEmpty();
    }

    private static boolean isExported(JavaClass type) {
        return type.getModifiers().contains(JavaModifier.PUBLIC)
                && type.getEnclosingClass().map(PublicApiTests::isExported).orElse(true);
    }

    private static Stream<String> lines(JavaClass type) {
        return Stream.concat(
                Stream.of(type.getName() + " " + kind(type)),
                Stream.concat(Stream.of(type), hiddenSuperclasses(type))
                        .flatMap(declaring -> declaring.getMembers().stream())
                        .filter(member -> isExported(type, member))
                        .map(member -> type.getName() + " " + signature(member)));
    }

    /** Returns the superclasses that callers can't name, but whose public methods they can call. */
    private static Stream<JavaClass> hiddenSuperclasses(JavaClass type) {
        return type.getAllRawSuperclasses().stream()
                .filter(superclass -> superclass.getPackageName().startsWith("io.ratelimit"))
                .filter(superclass -> !superclass.getModifiers().contains(JavaModifier.PUBLIC));
    }

    private static String kind(JavaClass type) {
        if (type.isRecord()) {
            return Arrays.stream(type.reflect().getRecordComponents())
                    .map(RecordComponent::getName)
                    .collect(Collectors.joining(", ", "record (", ")"));
        }
        String kind = type.isAnnotation()
                ? "annotation"
                : type.isEnum() ? "enum" : type.isInterface() ? "interface" : "class";
        return type.getModifiers().contains(JavaModifier.FINAL) && !type.isEnum() ? "final " + kind : kind;
    }

    private static boolean isExported(JavaClass type, JavaMember member) {
        Set<JavaModifier> modifiers = member.getModifiers();
        boolean isInherited = modifiers.contains(JavaModifier.PROTECTED)
                && !type.getModifiers().contains(JavaModifier.FINAL);
        return (modifiers.contains(JavaModifier.PUBLIC) || isInherited)
                && !modifiers.contains(JavaModifier.SYNTHETIC)
                && !UNTOLD.contains(member.getName());
    }

    private static String signature(JavaMember member) {
        String signature = member instanceof JavaCodeUnit call
                ? call.getName() + names(call.getRawParameterTypes()) + ": "
                        + call.getRawReturnType().getSimpleName()
                : member.getName();
        return member.getModifiers().contains(JavaModifier.STATIC) ? "static " + signature : signature;
    }

    private static String names(List<JavaClass> types) {
        return types.stream().map(JavaClass::getSimpleName).collect(Collectors.joining(", ", "(", ")"));
    }
}
