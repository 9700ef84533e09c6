package io.ratelimit.autoconfigure;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** The base of tests that start applications from YAML and read what they log. */
@ExtendWith(OutputCaptureExtension.class)
public abstract class CapturedStart {

    static final String SUMMARY = "INFO Rate limits: ";

    @TempDir
    public Path directory;

    public CapturedOutput output;

    @BeforeEach
    public void capture(CapturedOutput output) {
        this.output = output;
    }

    static List<String> withoutSummary(List<String> log) {
        return log.stream().filter(line -> !line.startsWith(SUMMARY)).toList();
    }
}
