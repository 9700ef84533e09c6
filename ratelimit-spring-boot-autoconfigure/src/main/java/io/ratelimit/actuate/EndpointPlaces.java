package io.ratelimit.actuate;

import io.ratelimit.actuate.DashboardData.Change;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.Access;
import org.springframework.boot.actuate.endpoint.EndpointAccessResolver;
import org.springframework.boot.actuate.endpoint.EndpointId;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;

/** Where the actuator has the dashboard and the endpoint that changes limits, and whether that may. */
public final class EndpointPlaces {

    private static final EndpointId DASHBOARD = EndpointId.of(RateLimitDashboard.ID);
    private static final EndpointId LIMITS = EndpointId.of(RateLimitsEndpoint.ID);

    private final Supplier<PathMappedEndpoints> endpoints;
    private final EndpointAccessResolver access;

    public EndpointPlaces(Supplier<PathMappedEndpoints> endpoints, EndpointAccessResolver access) {
        this.endpoints = endpoints;
        this.access = access;
    }

    /** The dashboard's path below the actuator's base path. */
    String dashboard() {
        String root = endpoints.get().getRootPath(DASHBOARD);
        return root == null ? RateLimitDashboard.ID : root;
    }

    Change change(SecurityContext security) {
        @Nullable String path = endpoints.get().getRootPath(LIMITS);
        boolean writable = access.accessFor(LIMITS, Access.READ_ONLY) == Access.UNRESTRICTED;
        return new Change(path, writable, security.getPrincipal() != null);
    }
}
