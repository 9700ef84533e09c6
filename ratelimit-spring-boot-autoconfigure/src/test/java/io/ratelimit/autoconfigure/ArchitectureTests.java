package io.ratelimit.autoconfigure;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.ArchRule;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;

/** The allowed imports of each package. A rule about a missing package holds. */
class ArchitectureTests {
    private static final String CORE = "io.ratelimit";
    private static final String DEMAND = "io.ratelimit.demand";
    private static final String KEY = "io.ratelimit.key";
    private static final String KEY_IP = "io.ratelimit.key.ip";
    private static final String POLICY = "io.ratelimit.policy";
    private static final String CHANGE = "io.ratelimit.change";
    private static final String ANNOTATION = "io.ratelimit.annotation";
    private static final String WEB_SERVLET = "io.ratelimit.web.servlet";
    private static final String ENDPOINT = "io.ratelimit.web.servlet.endpoint";
    private static final String REJECTION = "io.ratelimit.web.servlet.rejection";
    private static final String REMOTE = "io.ratelimit.remote";
    private static final String LEASE = "io.ratelimit.remote.lease";
    private static final String IN_FLIGHT = "io.ratelimit.remote.inflight";
    private static final String REDIS = "io.ratelimit.redis";
    private static final String JDBC = "io.ratelimit.jdbc";
    private static final String ACTUATE = "io.ratelimit.actuate";
    private static final String AUTOCONFIGURE = "io.ratelimit.autoconfigure..";

    private static final JavaClasses CLASSES = new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .withImportOption(location -> !location.contains("-tests.jar"))
            .importPackages(CORE);

    @Test
    void everyClassHasAPackageThatTheRulesCover() {
        holds(classes()
                .should()
                .resideInAnyPackage(
                        CORE,
                        DEMAND,
                        KEY,
                        KEY_IP,
                        POLICY,
                        CHANGE,
                        ANNOTATION,
                        WEB_SERVLET,
                        ENDPOINT,
                        REJECTION,
                        REMOTE,
                        LEASE,
                        IN_FLIGHT,
                        REDIS,
                        JDBC,
                        ACTUATE,
                        AUTOCONFIGURE));
    }

    @Test
    void aPackageImportsOfOursOnlyTheAllowedPackages() {
        holds(importsOfOursOnly(CORE));
        holds(importsOfOursOnly(DEMAND, CORE));
        holds(importsOfOursOnly(KEY_IP, CORE));
        holds(importsOfOursOnly(KEY, CORE, KEY_IP));
        holds(importsOfOursOnly(POLICY, CORE, REMOTE, KEY, KEY_IP));
        holds(importsOfOursOnly(CHANGE, CORE));
        holds(importsOfOursOnly(ANNOTATION, CORE, KEY, POLICY));
        holds(importsOfOursOnly(ENDPOINT, CORE, KEY, ANNOTATION));
        holds(importsOfOursOnly(REJECTION, CORE, KEY, ANNOTATION, POLICY, ENDPOINT));
        holds(importsOfOursOnly(WEB_SERVLET, CORE, KEY, KEY_IP, ANNOTATION, POLICY, ENDPOINT, REJECTION));
        holds(importsOfOursOnly(LEASE, CORE));
        holds(importsOfOursOnly(IN_FLIGHT, CORE));
        holds(importsOfOursOnly(REMOTE, CORE, LEASE, IN_FLIGHT));
        holds(importsOfOursOnly(REDIS, CORE, REMOTE, LEASE, IN_FLIGHT));
        holds(importsOfOursOnly(JDBC, CORE, REMOTE, LEASE));
        holds(importsOfOursOnly(ACTUATE, CORE, DEMAND, REMOTE, KEY, POLICY, CHANGE, ANNOTATION, WEB_SERVLET, ENDPOINT));
    }

    @Test
    void aLibraryStandsOnlyOnTheAllowedOnes() {
        holds(importsOnly(CORE, CORE, "com.github.benmanes.caffeine.."));
        holds(importsOnly(DEMAND, CORE, DEMAND));
        holds(importsOnly(KEY + "..", CORE, KEY + "..", "org.springframework..", "org.apache.commons.logging.."));
    }

    @Test
    void aTechnologyIsImportedOnlyWhereItBelongs() {
        holds(isImportedOnlyBy(List.of(WEB_SERVLET + "..", ACTUATE), "jakarta.servlet.."));
        holds(isImportedOnlyBy(List.of(KEY, WEB_SERVLET + ".."), "org.springframework.security.."));
        holds(isImportedOnlyBy(REDIS, "io.lettuce.."));
        holds(isImportedOnlyBy(JDBC, "java.sql..", "javax.sql.."));
        holds(isImportedOnlyBy(AUTOCONFIGURE, "org.springframework.jdbc..", "org.springframework.boot.jdbc.."));
        holds(isImportedOnlyBy(AUTOCONFIGURE, "org.springframework.data.redis.."));
        holds(noClasses()
                .that()
                .haveNameNotMatching(".*\\.RateLimit(Meters|MicrometerAutoConfiguration)(\\$.*)?")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage("io.micrometer.core.."));
        holds(isImportedOnlyBy(
                List.of(ACTUATE + "..", WEB_SERVLET),
                "org.springframework.boot.actuate..",
                "org.springframework.boot.health.."));
    }

    @Test
    void noPackageImportsTheAutoConfiguration() {
        holds(noClasses()
                .that()
                .resideOutsideOfPackage(AUTOCONFIGURE)
                .should()
                .dependOnClassesThat()
                .resideInAPackage(AUTOCONFIGURE));
    }

    @Test
    void noSliceImportsTheAutoConfigurationOfAnother() {
        for (JavaClass type : CLASSES) {
            if (type.getSimpleName().endsWith("AutoConfiguration")) {
                holds(noClasses()
                        .that()
                        .resideOutsideOfPackages(type.getPackageName(), AUTOCONFIGURE)
                        .should()
                        .dependOnClassesThat()
                        .haveFullyQualifiedName(type.getName()));
            }
        }
    }

    @Test
    void onlyReadersImportTheProperties() {
        holds(noClasses()
                .that()
                .resideOutsideOfPackages(POLICY, AUTOCONFIGURE)
                .and()
                .haveNameNotMatching(
                        ".*(AutoConfiguration|ContextConfiguration|Reader|Registrations|RejectedResponses)(\\$.*)?")
                .should()
                .dependOnClassesThat()
                .haveFullyQualifiedName(POLICY + ".RateLimitProperties"));
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

    /** @param others the packages beside those of the JDK and JSpecify */
    private static ArchRule importsOnly(String name, String... others) {
        return classes()
                .that()
                .resideInAPackage(name)
                .should()
                .onlyDependOnClassesThat(
                        resideInAnyPackage("java..", "org.jspecify..").or(resideInAnyPackage(others)));
    }

    private static ArchRule isImportedOnlyBy(String name, String... technology) {
        return isImportedOnlyBy(List.of(name), technology);
    }

    private static ArchRule isImportedOnlyBy(List<String> names, String... technology) {
        String[] importers =
                Stream.concat(names.stream(), Stream.of(AUTOCONFIGURE)).toArray(String[]::new);
        return noClasses()
                .that()
                .resideOutsideOfPackages(importers)
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(technology);
    }

    private static void holds(ArchRule rule) {
        rule.allowEmptyShould(true).check(CLASSES);
    }
}
