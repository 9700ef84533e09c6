package io.ratelimit.start;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;

/** A directory with an application as start.spring.io makes it, without its build. */
record EmptyProject(Path directory) {

    private static final String APPLICATION = """
            package com.example.demo;

            @org.springframework.boot.autoconfigure.SpringBootApplication
            public class DemoApplication {}
            """;

    static EmptyProject in(Path directory) throws IOException {
        EmptyProject project = new EmptyProject(directory);
        project.write("src/main/java/com/example/demo/DemoApplication.java", APPLICATION);
        return project;
    }

    void write(String file, String text) throws IOException {
        Path path = directory.resolve(file);
        Files.createDirectories(requireNonNull(path.getParent()));
        Files.writeString(path, text);
    }

    /** Starts the application. Time stands still, so that no token comes back however long requests take. */
    ConfigurableApplicationContext start() throws Exception {
        ClassLoader classes = compile();
        Class<?> main = classes.loadClass("com.example.demo.DemoApplication");
        return with(classes, () -> {
            SpringApplication application = new SpringApplication(main);
            application.addInitializers(
                    context -> context.getBeanFactory().registerSingleton("time", new ManualTimeSource()));
            return application.run("--server.port=0");
        });
    }

    /** Runs all tests, of which there is at least one. */
    TestExecutionSummary test() throws Exception {
        LauncherDiscoveryRequest tests = LauncherDiscoveryRequestBuilder.request()
                .selectors(DiscoverySelectors.selectPackage("com.example.demo"))
                .build();
        return with(compile(), () -> {
            SummaryGeneratingListener listener = new SummaryGeneratingListener();
            LauncherFactory.create().execute(tests, listener);
            return listener.getSummary();
        });
    }

    private ClassLoader compile() throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        Path classes = Files.createTempDirectory(directory, "classes");
        StringWriter errors = new StringWriter();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
            List<String> options = List.of("-parameters", "-d", classes.toString());
            assertThat(compiler.getTask(errors, files, null, options, null, files.getJavaFileObjects(sources()))
                            .call())
                    .as(errors.toString())
                    .isTrue();
        }
        Path resources = directory.resolve("src/main/resources");
        return new URLClassLoader(
                new URL[] {classes.toUri().toURL(), resources.toUri().toURL()}, EmptyProject.class.getClassLoader());
    }

    private File[] sources() throws IOException {
        try (Stream<Path> files = Files.walk(directory.resolve("src"))) {
            return files.filter(file -> file.toString().endsWith(".java"))
                    .map(Path::toFile)
                    .toArray(File[]::new);
        }
    }

    private static <T> T with(ClassLoader classes, Callable<T> work) throws Exception {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(classes);
        try {
            return work.call();
        } finally {
            thread.setContextClassLoader(before);
        }
    }
}
