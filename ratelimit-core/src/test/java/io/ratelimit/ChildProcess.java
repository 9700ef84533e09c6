package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** A separate process of this JVM, for tests of memory. */
public final class ChildProcess {

    private ChildProcess() {}

    /** Runs a main method under an option of the JVM, and returns its output. Fails if the process fails. */
    public static String output(String option, Class<?> main) throws IOException, InterruptedException {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        Process process = new ProcessBuilder(java, option, "-cp", System.getProperty("java.class.path"), main.getName())
                .redirectErrorStream(true)
                .start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(output).isZero();
        return output;
    }
}
