package io.ratelimit.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodType;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.asm.ClassReader;
import org.springframework.asm.Type;

/** Each class, method and field that our classes refer to exists in the libraries of the oldest Spring Boot. */
class ReferencesTests {

    private static final ClassLoader LOADER = ReferencesTests.class.getClassLoader();

    /** Tags of the constant pool (JVMS 4.4). */
    private static final int CLASS = 7, FIELD = 9, METHOD = 10, INTERFACE_METHOD = 11;

    @ParameterizedTest
    @ValueSource(classes = {Throttlers.class, RateLimitAutoConfiguration.class})
    void existOnTheOldestSpringBoot(Class<?> ofTheArtifact) throws Exception {
        Set<String> missing = new TreeSet<>();
        List<Path> classes = new ArrayList<>();
        int references = 0;
        Path artifact = Path.of(ofTheArtifact
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI());
        if (Files.isDirectory(artifact)) {
            references = addMissing(artifact, classes, missing);
        } else {
            try (var jar = FileSystems.newFileSystem(artifact)) {
                references = addMissing(jar.getPath("/"), classes, missing);
            }
        }

        assertThat(classes).hasSizeGreaterThan(30);
        assertThat(references).isGreaterThan(1000);
        assertThat(missing).isEmpty();
    }

    private static int addMissing(Path root, List<Path> classes, Set<String> missing) throws IOException {
        try (Stream<Path> files = Files.walk(root)) {
            files.filter(file -> file.toString().endsWith(".class")).forEach(classes::add);
        }
        int references = 0;
        for (Path file : classes) {
            try (InputStream in = Files.newInputStream(file)) {
                references += addMissing(new ClassReader(in), missing);
            }
        }
        return references;
    }

    private static int addMissing(ClassReader reader, Set<String> missing) {
        char[] buffer = new char[reader.getMaxStringLength()];
        int references = 0;
        for (int item = 1; item < reader.getItemCount(); item++) {
            int offset = reader.getItem(item);
            if (offset == 0) {
                continue;
            }
            int tag = reader.readByte(offset - 1);
            if (tag == CLASS) {
                references++;
                String owner = reader.readUTF8(offset, buffer);
                if (!isOfSpringdoc(owner) && find(owner) == null) {
                    missing.add(owner);
                }
            } else if (tag == FIELD || tag == METHOD || tag == INTERFACE_METHOD) {
                references++;
                String owner = reader.readClass(offset, buffer);
                int nameAndType = reader.getItem(reader.readUnsignedShort(offset + 2));
                String name = reader.readUTF8(nameAndType, buffer);
                String descriptor = reader.readUTF8(nameAndType + 2, buffer);
                if (!isOfSpringdoc(owner) && !exists(find(owner), name, descriptor)) {
                    missing.add(owner + "." + name + descriptor);
                }
            }
        }
        return references;
    }

    /** Springdoc is no part of Spring Boot, and its classes and the one for it are used only where it is on the class path. */
    private static boolean isOfSpringdoc(String internalName) {
        return internalName.startsWith("org/springdoc/")
                || internalName.startsWith("io/swagger/")
                || internalName.endsWith("/RejectedResponses");
    }

    private static Class<?> find(String internalName) {
        try {
            Type type = Type.getObjectType(internalName);
            while (type.getSort() == Type.ARRAY) {
                type = type.getElementType();
            }
            return type.getSort() == Type.OBJECT ? Class.forName(type.getClassName(), false, LOADER) : Object.class;
        } catch (ClassNotFoundException | LinkageError absent) {
            return null;
        }
    }

    private static boolean exists(Class<?> owner, String name, String descriptor) {
        if (owner == null) {
            return false;
        }
        // The virtual machine itself links these, with any signature.
        if (owner == java.lang.invoke.MethodHandle.class || owner == java.lang.invoke.VarHandle.class) {
            return true;
        }
        try {
            return hierarchy(owner, new LinkedHashSet<>()).stream().anyMatch(type -> declares(type, name, descriptor));
        } catch (LinkageError absent) {
            return false;
        }
    }

    private static Set<Class<?>> hierarchy(Class<?> type, Set<Class<?>> found) {
        if (type != null && found.add(type)) {
            hierarchy(type.getSuperclass(), found);
            Arrays.stream(type.getInterfaces()).forEach(parent -> hierarchy(parent, found));
            found.add(Object.class);
        }
        return found;
    }

    private static boolean declares(Class<?> type, String name, String descriptor) {
        if (!descriptor.startsWith("(")) {
            return Arrays.stream(type.getDeclaredFields())
                    .anyMatch(field -> field.getName().equals(name)
                            && field.getType().descriptorString().equals(descriptor));
        }
        if (name.equals("<init>")) {
            return Arrays.stream(type.getDeclaredConstructors())
                    .anyMatch(constructor -> MethodType.methodType(void.class, constructor.getParameterTypes())
                            .toMethodDescriptorString()
                            .equals(descriptor));
        }
        return Arrays.stream(type.getDeclaredMethods())
                .anyMatch(method -> method.getName().equals(name)
                        && MethodType.methodType(method.getReturnType(), method.getParameterTypes())
                                .toMethodDescriptorString()
                                .equals(descriptor));
    }
}
