package io.ratelimit.actuate;

import io.ratelimit.actuate.DashboardFiles.DashboardFile;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.Access;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;
import org.springframework.util.MimeTypeUtils;
import org.springframework.web.util.HtmlUtils;

/**
 * A page that shows all policies of this instance as they decide, and changes nothing. All that belongs to it is served
 * below its own path, and so by the rules that hold for it.
 */
@WebEndpoint(id = RateLimitDashboard.ID, defaultAccess = Access.READ_ONLY)
public final class RateLimitDashboard {

    static final String ID = "ratelimitdashboard";

    private static final String DATA = "data";

    private final DashboardFiles files = new DashboardFiles();
    private final DashboardReader reader;
    private final EndpointPlaces places;
    private final Predicate<SecurityContext> showsKeys;

    /**
     * @param showsKeys who sees keys, and not what stands for them
     */
    public RateLimitDashboard(DashboardReader reader, EndpointPlaces places, Predicate<SecurityContext> showsKeys) {
        this.reader = reader;
        this.places = places;
        this.showsKeys = showsKeys;
    }

    /** The page. */
    @ReadOperation(produces = "text/html;charset=UTF-8")
    public String page() {
        return files.page(HtmlUtils.htmlEscape(places.dashboard()));
    }

    /**
     * A file of the page, or the data that it shows.
     *
     * @param since the last second that the page has the data of
     */
    @ReadOperation(produces = {"application/json", "text/javascript", "text/css"})
    public WebEndpointResponse<?> file(SecurityContext security, @Selector String file, @Nullable Long since) {
        if (file.equals(DATA)) {
            long last = since == null ? 0 : Math.max(since, 0);
            DashboardData data = reader.read(last, places.change(security), showsKeys.test(security));
            return new WebEndpointResponse<>(data, MimeTypeUtils.APPLICATION_JSON);
        }
        DashboardFile known = files.get(file);
        return known == null
                ? new WebEndpointResponse<>(WebEndpointResponse.STATUS_NOT_FOUND)
                : new WebEndpointResponse<>(known.text(), known.type());
    }
}
