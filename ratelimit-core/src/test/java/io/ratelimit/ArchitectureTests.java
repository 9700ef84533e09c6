package io.ratelimit;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;

/** The core stands on the JDK, JSpecify and Caffeine, in one flat package. */
class ArchitectureTests {

    private static final JavaClasses CORE = new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages("io.ratelimit");

    @Test
    void theCoreImportsOnlyTheJdkJSpecifyAndCaffeine() {
        classes()
                .should()
                .onlyDependOnClassesThat()
                .resideInAnyPackage("io.ratelimit..", "java..", "org.jspecify..", "com.github.benmanes.caffeine..")
                .check(CORE);
    }

    @Test
    void theCoreIsOneFlatPackage() {
        classes().should().resideInAPackage("io.ratelimit").check(CORE);
    }

    /** NullAway ignores packages that aren't marked. */
    @Test
    void everyPackageIsNullMarked() {
        assertThat(CORE)
                .allMatch(type -> type.getPackage().isAnnotatedWith(NullMarked.class), "is in a @NullMarked package");
    }
}
