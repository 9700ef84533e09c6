package io.ratelimit.demand;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;

import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.Test;

class ArchitectureTests {

    @Test
    void demandImportsOnlyTheJdkJSpecifyAndTheCore() {
        classes()
                .should()
                .onlyDependOnClassesThat()
                .resideInAnyPackage("io.ratelimit", "io.ratelimit.demand", "java..", "org.jspecify..")
                .check(new ClassFileImporter()
                        .withImportOption(new ImportOption.DoNotIncludeTests())
                        .importPackages("io.ratelimit.demand"));
    }
}
