package io.ratelimit.actuate.dashboard;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.util.MimeType;

/** The files of the dashboard's page, read once. They are not in a folder that Spring Boot serves by itself. */
final class DashboardFiles {

    private static final MimeType SCRIPT = new MimeType("text", "javascript", StandardCharsets.UTF_8);
    private static final MimeType STYLE = new MimeType("text", "css", StandardCharsets.UTF_8);

    private final String page = read("dashboard.html");
    private final Map<String, DashboardFile> files = Map.of(
            "dashboard.js", new DashboardFile(SCRIPT, read("dashboard.js")),
            "dashboard.css", new DashboardFile(STYLE, read("dashboard.css")),
            "uplot.js", new DashboardFile(SCRIPT, read("uplot.js")),
            "uplot.css", new DashboardFile(STYLE, read("uplot.css")));

    record DashboardFile(MimeType type, String text) {}

    /**
     * Returns the page. Its path has no trailing slash, so the relative paths of its files begin with its last segment.
     *
     * @param root the page's path below the actuator's base path, escaped for an HTML attribute
     */
    String page(String root) {
        return page.replace("{root}", root).replace("{name}", root.substring(root.lastIndexOf('/') + 1));
    }

    @Nullable
    DashboardFile get(String name) {
        return files.get(name);
    }

    private static String read(String name) {
        try (InputStream file = DashboardFiles.class.getResourceAsStream(name)) {
            if (file == null) {
                throw new IllegalStateException(name + " is not in the jar");
            }
            return new String(file.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }
}
