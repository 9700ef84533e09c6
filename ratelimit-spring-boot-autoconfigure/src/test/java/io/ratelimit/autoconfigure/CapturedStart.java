package io.ratelimit.autoconfigure;

import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** The base of tests that start applications from YAML and read what they log. */
@ExtendWith(OutputCaptureExtension.class)
abstract class CapturedStart {

    @TempDir
    Path directory;

    CapturedOutput output;

    @BeforeEach
    void capture(CapturedOutput output) {
        this.output = output;
    }
}
