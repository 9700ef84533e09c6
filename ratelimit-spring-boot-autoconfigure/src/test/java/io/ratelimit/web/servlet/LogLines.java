package io.ratelimit.web.servlet;

import java.util.List;
import org.springframework.boot.test.system.CapturedOutput;

/** The lines of the captured log. */
public final class LogLines {

    private LogLines() {}

    /** Returns the messages of one logger, by its simple name, without time, level and thread. */
    public static List<String> of(CapturedOutput output, String logger) {
        return output.getOut()
                .lines()
                .filter(line -> line.contains(logger))
                .map(line -> line.replaceFirst("^.*? : ", ""))
                .toList();
    }
}
