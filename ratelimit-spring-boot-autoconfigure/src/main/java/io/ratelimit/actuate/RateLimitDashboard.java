package io.ratelimit.actuate;

import io.ratelimit.actuate.DashboardReader.DashboardData;
import io.ratelimit.actuate.DashboardReader.DashboardData.Change;
import io.ratelimit.actuate.DecisionHistory.Step;
import io.ratelimit.actuate.RateLimitDashboard.DashboardFiles.DashboardFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.aot.hint.annotation.RegisterReflectionForBinding;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.endpoint.Access;
import org.springframework.boot.actuate.endpoint.EndpointAccessResolver;
import org.springframework.boot.actuate.endpoint.EndpointId;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;
import org.springframework.core.env.Environment;
import org.springframework.core.io.ClassPathResource;
import org.springframework.util.MimeType;
import org.springframework.util.MimeTypeUtils;
import org.springframework.web.util.HtmlUtils;

/**
 * The actuator endpoint that serves a page with the decisions of all policies of this instance. The page is read-only. Its
 * files and data are served below its own path, so the access rules of the page apply to them too.
 *
 * @param demand returns the demand of all policies; null if it isn't measured
 * @param showsKeys whether a caller sees the texts of keys instead of hashes
 */
@RegisterReflectionForBinding({DashboardData.class, DemandData.class})
@WebEndpoint(id = RateLimitDashboard.ID, defaultAccess = Access.READ_ONLY)
record RateLimitDashboard(
        DashboardReader reader,
        @Nullable Supplier<DemandData> demand,
        EndpointPaths paths,
        Predicate<SecurityContext> showsKeys,
        DashboardFiles files) {

    static final String ID = "ratelimitdashboard";

    private static final String DATA = "data";
    private static final String DEMAND = "demand";

    @ReadOperation(produces = "text/html;charset=UTF-8")
    String page() {
        return files.page(HtmlUtils.htmlEscape(paths.dashboard()), reader.instance());
    }

    /**
     * Returns a file of the page, or the page's data, or the demand that its charts show.
     *
     * @param since the last second whose counts the page has
     * @param span {@code hour} for the minutes of the last hour; otherwise the seconds of the last five minutes
     */
    @ReadOperation(produces = {"application/json", "text/javascript", "text/css"})
    WebEndpointResponse<?> file(
            SecurityContext security, @Selector String file, @Nullable Long since, @Nullable String span) {
        if (file.equals(DATA)) {
            long last = since == null ? 0 : Math.max(since, 0);
            DashboardData data = reader.read(
                    "hour".equals(span) ? Step.MINUTE : Step.SECOND,
                    last,
                    paths.change(security),
                    showsKeys.test(security));
            return new WebEndpointResponse<>(data, MimeTypeUtils.APPLICATION_JSON);
        }
        DemandData measured = file.equals(DEMAND) && demand != null ? demand.get() : null;
        if (measured != null) {
            return new WebEndpointResponse<>(measured, MimeTypeUtils.APPLICATION_JSON);
        }
        DashboardFile found = files.get(file);
        return found == null
                ? new WebEndpointResponse<>(WebEndpointResponse.STATUS_NOT_FOUND)
                : new WebEndpointResponse<>(found.text(), found.type());
    }

    /**
     * The paths of the dashboard and of the endpoint that changes limits, and the access to the latter.
     *
     * @param endpoints called with each request, since the paths of endpoints are unknown while they are created
     * @param forAll whether changes for all instances are possible
     */
    record EndpointPaths(ObjectProvider<PathMappedEndpoints> endpoints, EndpointAccessResolver access, boolean forAll) {

        private static final EndpointId DASHBOARD = EndpointId.of(ID);
        private static final EndpointId LIMITS = EndpointId.of(RateLimitsEndpoint.ID);

        /** Returns the dashboard's path below the actuator's base path. */
        String dashboard() {
            String root = endpoints.getObject().getRootPath(DASHBOARD);
            return root == null ? ID : root;
        }

        Change change(SecurityContext security) {
            @Nullable String path = endpoints.getObject().getRootPath(LIMITS);
            boolean writable = access.accessFor(LIMITS, Access.READ_ONLY) == Access.UNRESTRICTED;
            return new Change(path, writable, forAll, security.getPrincipal() != null);
        }
    }

    /**
     * The names of this application and this instance, which tell the pages of several instances apart.
     *
     * @param id a random identifier that changes with each start of the application
     */
    record Identity(
            String id,
            @Nullable String application,
            @Nullable String version,
            @Nullable String host) {

        private static final String PROCESS =
                "process " + ProcessHandle.current().pid();

        static Identity of(Environment environment) {
            return new Identity(
                    UUID.randomUUID().toString(),
                    environment.getProperty("spring.application.name"),
                    environment.getProperty("spring.application.version"),
                    environment.getProperty("HOSTNAME"));
        }

        /** Returns the title of the page, such as {@code shop on web-1 · Rate limits}. */
        String title() {
            String instance = host != null ? "on " + host : PROCESS;
            return (application == null ? "" : application + " ") + instance + " · Rate limits";
        }

        /** Returns a line such as {@code shop 1.2 · on web-1 · process 4711}. */
        String line() {
            List<String> parts = new ArrayList<>();
            parts.add(
                    application == null
                            ? "this instance"
                            : version == null ? application : application + " " + version);
            if (host != null) {
                parts.add("on " + host);
            }
            parts.add(PROCESS);
            return String.join(" · ", parts);
        }
    }

    /** The files of the dashboard's page, read once. They are not in a folder that Spring Boot serves by itself. */
    static final class DashboardFiles {

        private static final MimeType SCRIPT = new MimeType("text", "javascript", StandardCharsets.UTF_8);
        private static final MimeType STYLE = new MimeType("text", "css", StandardCharsets.UTF_8);

        private final String page = read("dashboard.html");
        private final Map<String, DashboardFile> files = Map.of(
                "dashboard.js", new DashboardFile(SCRIPT, read("dashboard.js")),
                "demand.js", new DashboardFile(SCRIPT, read("demand.js")),
                "dashboard.css", new DashboardFile(STYLE, read("dashboard.css")),
                "uplot.js", new DashboardFile(SCRIPT, read("uplot.js")),
                "uplot.css", new DashboardFile(STYLE, read("uplot.css")));

        record DashboardFile(MimeType type, String text) {}

        /**
         * Returns the page. Its path has no trailing slash, so the relative paths of its files begin with its last segment.
         *
         * @param root the page's path below the actuator's base path, escaped for an HTML attribute
         */
        String page(String root, Identity identity) {
            return page.replace("{root}", root)
                    .replace("{name}", root.substring(root.lastIndexOf('/') + 1))
                    .replace("{title}", HtmlUtils.htmlEscape(identity.title()))
                    .replace("{identity}", HtmlUtils.htmlEscape(identity.line()));
        }

        @Nullable
        DashboardFile get(String name) {
            return files.get(name);
        }

        private static String read(String name) {
            try {
                return new ClassPathResource("dashboard/" + name, DashboardFiles.class)
                        .getContentAsString(StandardCharsets.UTF_8);
            } catch (IOException unreadable) {
                throw new UncheckedIOException(unreadable);
            }
        }
    }
}
