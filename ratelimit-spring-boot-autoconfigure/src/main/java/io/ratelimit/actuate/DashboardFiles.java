package io.ratelimit.actuate;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.util.MimeType;

/** The files that the dashboard's page consists of, read once. They are not where a server would serve them by itself. */
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
     * The page, which has no slash at its end: its files are below the last part of its path.
     *
     * @param root its path below the actuator's base path, as text of an attribute
     */
    String page(String root) {
        return page.replace("{root}", root).replace("{here}", root.substring(root.lastIndexOf('/') + 1));
    }

    @Nullable
    DashboardFile get(String name) {
        return files.get(name);
    }

    private static String read(String name) {
        try (InputStream file = DashboardFiles.class.getResourceAsStream("dashboard/" + name)) {
            if (file == null) {
                throw new IllegalStateException(name + " is not in the jar");
            }
            return new String(file.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }
}
