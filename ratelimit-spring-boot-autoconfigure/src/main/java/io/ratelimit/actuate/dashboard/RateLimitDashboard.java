package io.ratelimit.actuate.dashboard;

import io.ratelimit.actuate.RateLimitsEndpoint;
import io.ratelimit.actuate.dashboard.DashboardData.Change;
import io.ratelimit.actuate.dashboard.DashboardFiles.DashboardFile;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.Access;
import org.springframework.boot.actuate.endpoint.EndpointAccessResolver;
import org.springframework.boot.actuate.endpoint.EndpointId;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;
import org.springframework.util.MimeTypeUtils;
import org.springframework.web.util.HtmlUtils;

/**
 * The actuator endpoint that serves a page with the decisions of all policies of this instance. The page is read-only. Its
 * files and data are served below its own path, so the access rules of the page apply to them too.
 */
@WebEndpoint(id = RateLimitDashboard.ID, defaultAccess = Access.READ_ONLY)
public final class RateLimitDashboard {

    static final String ID = "ratelimitdashboard";

    private static final String DATA = "data";

    private final DashboardFiles files = new DashboardFiles();
    private final DashboardReader reader;
    private final EndpointPaths paths;
    private final Predicate<SecurityContext> showsKeys;

    /**
     * @param endpoints called with each request, since the paths of endpoints are unknown while they are created
     * @param showsKeys whether a caller sees the texts of keys instead of hashes
     */
    public RateLimitDashboard(
            DashboardReader reader,
            Supplier<PathMappedEndpoints> endpoints,
            EndpointAccessResolver access,
            Predicate<SecurityContext> showsKeys) {
        this.reader = reader;
        this.paths = new EndpointPaths(endpoints, access);
        this.showsKeys = showsKeys;
    }

    /** Returns the page. */
    @ReadOperation(produces = "text/html;charset=UTF-8")
    String page() {
        return files.page(HtmlUtils.htmlEscape(paths.dashboard()));
    }

    /**
     * Returns a file of the page, or the page's data.
     *
     * @param since the last second whose counts the page has
     */
    @ReadOperation(produces = {"application/json", "text/javascript", "text/css"})
    WebEndpointResponse<?> file(SecurityContext security, @Selector String file, @Nullable Long since) {
        if (file.equals(DATA)) {
            long last = since == null ? 0 : Math.max(since, 0);
            DashboardData data = reader.read(last, paths.change(security), showsKeys.test(security));
            return new WebEndpointResponse<>(data, MimeTypeUtils.APPLICATION_JSON);
        }
        DashboardFile found = files.get(file);
        return found == null
                ? new WebEndpointResponse<>(WebEndpointResponse.STATUS_NOT_FOUND)
                : new WebEndpointResponse<>(found.text(), found.type());
    }

    /** The paths of the dashboard and of the endpoint that changes limits, and the access to the latter. */
    private record EndpointPaths(Supplier<PathMappedEndpoints> endpoints, EndpointAccessResolver access) {

        private static final EndpointId DASHBOARD = EndpointId.of(ID);
        private static final EndpointId LIMITS = EndpointId.of(RateLimitsEndpoint.ID);

        /** Returns the dashboard's path below the actuator's base path. */
        String dashboard() {
            String root = endpoints.get().getRootPath(DASHBOARD);
            return root == null ? ID : root;
        }

        Change change(SecurityContext security) {
            @Nullable String path = endpoints.get().getRootPath(LIMITS);
            boolean writable = access.accessFor(LIMITS, Access.READ_ONLY) == Access.UNRESTRICTED;
            return new Change(path, writable, security.getPrincipal() != null);
        }
    }
}
