package io.ratelimit.autoconfigure;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.ArchRule;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.ConfigurationProperties;

/** Who may import what. A rule about a package that is not there yet holds. */
class ArchitectureTests {
    private static final String CORE = "io.ratelimit";
    private static final String KEY = "io.ratelimit.key";
    private static final String ANNOTATION = "io.ratelimit.annotation";
    private static final String WEB_SERVLET = "io.ratelimit.web.servlet";
    private static final String REDIS = "io.ratelimit.redis";
    private static final String MICROMETER = "io.ratelimit.micrometer";
    private static final String ACTUATE = "io.ratelimit.actuate";
    private static final String LOGGING = "io.ratelimit.logging";
    private static final String AUTOCONFIGURE = "io.ratelimit.autoconfigure..";

    private static final JavaClasses CLASSES = new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages(CORE);

    @Test
    void everyClassHasAPackageThatTheRulesKnow() {
        holds(classes()
                .should()
                .resideInAnyPackage(
                        CORE, KEY, ANNOTATION, WEB_SERVLET, REDIS, MICROMETER, ACTUATE, LOGGING, AUTOCONFIGURE));
    }

    @Test
    void aPackageImportsOfOursOnlyWhatItMay() {
        holds(importsOfOursOnly(CORE));
        holds(importsOfOursOnly(KEY, CORE));
        holds(importsOfOursOnly(ANNOTATION, CORE, KEY));
        holds(importsOfOursOnly(WEB_SERVLET, CORE, KEY, ANNOTATION));
        holds(importsOfOursOnly(REDIS, CORE));
        holds(importsOfOursOnly(MICROMETER, CORE));
        holds(importsOfOursOnly(ACTUATE, CORE));
        holds(importsOfOursOnly(LOGGING, CORE));
    }

    @Test
    void keysStandOnTheCoreAndSpring() {
        holds(classes()
                .that()
                .resideInAPackage(KEY)
                .should()
                .onlyDependOnClassesThat()
                .resideInAnyPackage(CORE, KEY, "java..", "org.jspecify..", "org.springframework.."));
    }

    @Test
    void aTechnologyIsImportedOnlyWhereItBelongs() {
        holds(isImportedOnlyBy(WEB_SERVLET, "jakarta.servlet.."));
        holds(isImportedOnlyBy(WEB_SERVLET, "org.springframework.security.."));
        holds(isImportedOnlyBy(REDIS, "org.springframework.data.redis..", "io.lettuce.."));
        holds(isImportedOnlyBy(MICROMETER, "io.micrometer.core.."));
        holds(isImportedOnlyBy(ACTUATE, "org.springframework.boot.actuate..", "org.springframework.boot.health.."));
    }

    @Test
    void nobodyImportsTheAutoConfiguration() {
        holds(noClasses()
                .that()
                .resideOutsideOfPackage(AUTOCONFIGURE)
                .should()
                .dependOnClassesThat()
                .resideInAPackage(AUTOCONFIGURE));
    }

    @Test
    void propertiesNeverLeaveTheAutoConfiguration() {
        holds(classes()
                .that()
                .haveSimpleNameEndingWith("Properties")
                .or()
                .areAnnotatedWith(ConfigurationProperties.class)
                .should()
                .resideInAPackage(AUTOCONFIGURE));
    }

    @Test
    void noPackagesFormACycle() {
        holds(slices().matching("io.ratelimit.(**)").should().beFreeOfCycles());
    }

    /** NullAway passes over what is not marked. */
    @Test
    void everyPackageIsNullMarked() {
        assertThat(CLASSES)
                .allMatch(type -> type.getPackage().isAnnotatedWith(NullMarked.class), "is in a @NullMarked package");
    }

    private static ArchRule importsOfOursOnly(String name, String... others) {
        return classes()
                .that()
                .resideInAPackage(name)
                .should()
                .onlyDependOnClassesThat(not(resideInAPackage(CORE + ".."))
                        .or(resideInAPackage(name))
                        .or(resideInAnyPackage(others)));
    }

    private static ArchRule isImportedOnlyBy(String name, String... technology) {
        return noClasses()
                .that()
                .resideOutsideOfPackages(name, AUTOCONFIGURE)
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(technology);
    }

    private static void holds(ArchRule rule) {
        rule.allowEmptyShould(true).check(CLASSES);
    }
}
