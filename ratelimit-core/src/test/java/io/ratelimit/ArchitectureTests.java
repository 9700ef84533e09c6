package io.ratelimit;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;

/** The core stands on the JDK, JSpecify and Caffeine, in one flat package, and one beside it that measures demand. */
class ArchitectureTests {
    private final JavaClasses core = new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages("io.ratelimit");

    @Test
    void theCoreImportsOnlyTheJdkJSpecifyAndCaffeine() {
        classes()
                .should()
                .onlyDependOnClassesThat()
                .resideInAnyPackage("io.ratelimit..", "java..", "org.jspecify..", "com.github.benmanes.caffeine..")
                .check(core);
    }

    @Test
    void theCoreIsOneFlatPackageBesideDemand() {
        classes()
                .should()
                .resideInAnyPackage("io.ratelimit", "io.ratelimit.demand")
                .check(core);
    }

    @Test
    void decisionsDoNotDependOnDemand() {
        noClasses()
                .that()
                .resideInAPackage("io.ratelimit")
                .should()
                .dependOnClassesThat()
                .resideInAPackage("io.ratelimit.demand")
                .check(core);
    }

    /** NullAway ignores packages that aren't marked. */
    @Test
    void everyPackageIsNullMarked() {
        assertThat(core)
                .allMatch(type -> type.getPackage().isAnnotatedWith(NullMarked.class), "is in a @NullMarked package");
    }
}
