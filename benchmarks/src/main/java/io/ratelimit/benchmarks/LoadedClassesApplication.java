package io.ratelimit.benchmarks;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.springframework.boot.SpringApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/**
 * The smallest web application, and the classes that the library loads at the start, without any of its beans: the least that a
 * start with so many classes costs. Classes that the JVM makes for lambdas aren't among them. The directory that the property
 * {@code benchmarks.loaded} names has the classes' names in {@code classes.txt} and their archives in {@code jars.txt}.
 */
@Configuration(proxyBeanMethods = false)
@Import(HelloApplication.class)
public class LoadedClassesApplication {

    public static void main(String[] args) {
        SpringApplication.run(LoadedClassesApplication.class, args);
    }

    @Bean
    Loaded loaded() throws IOException, ClassNotFoundException {
        Path directory = Path.of(System.getProperty("benchmarks.loaded"));
        List<URL> jars = new ArrayList<>();
        for (String jar : Files.readAllLines(directory.resolve("jars.txt"))) {
            jars.add(Path.of(jar).toUri().toURL());
        }
        ClassLoader loader =
                new URLClassLoader(jars.toArray(URL[]::new), getClass().getClassLoader());
        List<Class<?>> classes = new ArrayList<>();
        for (String name : Files.readAllLines(directory.resolve("classes.txt"))) {
            classes.add(Class.forName(name, true, loader));
        }
        return new Loaded(classes);
    }

    record Loaded(List<Class<?>> classes) {}
}
