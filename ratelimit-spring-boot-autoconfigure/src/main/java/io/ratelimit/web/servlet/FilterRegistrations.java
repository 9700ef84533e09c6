package io.ratelimit.web.servlet;

import io.ratelimit.policy.Phase;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.web.servlet.rejection.Rejections;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.EnumSet;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ApplicationContext;

/**
 * Registers the filters, of the application's server and of a management server, at the same places in the chain.
 *
 * <p>The early filter stands where a rejection costs least: before {@code FormContentFilter} (-9900), which reads the whole
 * body of a PUT, PATCH or DELETE form into memory. It stands behind {@code HiddenHttpMethodFilter} (-10000), which may
 * change the method, and behind {@code ForwardedHeaderFilter}, which may change the address. Where
 * {@code spring.security.filter.order} is lower still, the early filter stands right before Spring Security.
 */
record FilterRegistrations(RateLimitProperties properties, ApplicationContext application) {

    static final String BEFORE_AUTHENTICATION = "rateLimitFilterBeforeAuthentication";
    static final String AFTER_AUTHENTICATION = "rateLimitFilterAfterAuthentication";
    static final String DISPATCHES = "rateLimitDispatchFilter";

    private static final int BEFORE_FORM_CONTENT = -9950;

    /**
     * A request that the container answers itself comes by its error dispatch only, and one that a filter in front forwards
     * or suspends by a forward or an asynchronous dispatch. A container includes only what a request that came writes.
     */
    private static final EnumSet<DispatcherType> ON_ENTRY = EnumSet.complementOf(EnumSet.of(DispatcherType.INCLUDE));

    private static final EnumSet<DispatcherType> LATER =
            EnumSet.of(DispatcherType.ASYNC, DispatcherType.FORWARD, DispatcherType.ERROR);

    /** The default of {@code SecurityFilterProperties}, a class that exists only with Spring Security. */
    private static final int DEFAULT_SECURITY_FILTER_ORDER = -100;

    FilterRegistrationBean<RateLimitFilter> beforeAuthentication(ServerLimits.Late limits) {
        int order = Math.min(BEFORE_FORM_CONTENT, beforeSecurity());
        return registration(
                new RateLimitFilter(Phase.BEFORE_AUTHENTICATION, limits), BEFORE_AUTHENTICATION, order, ON_ENTRY);
    }

    FilterRegistrationBean<RateLimitFilter> afterAuthentication(ServerLimits.Late limits) {
        return registration(
                new RateLimitFilter(Phase.AFTER_AUTHENTICATION, limits), AFTER_AUTHENTICATION, orderAfter(), ON_ENTRY);
    }

    FilterRegistrationBean<DispatchFilter> dispatches(ServerLimits.Late limits) {
        return registration(new DispatchFilter(limits), DISPATCHES, beforeSecurity(), LATER);
    }

    private static <T extends Filter> FilterRegistrationBean<T> registration(
            T filter, String name, int order, EnumSet<DispatcherType> dispatches) {
        FilterRegistrationBean<T> registration = new FilterRegistrationBean<>(filter);
        registration.setName(name);
        registration.setOrder(order);
        registration.setDispatcherTypes(dispatches);
        registration.setAsyncSupported(true);
        return registration;
    }

    private int orderAfter() {
        int before = beforeSecurity();
        Integer written = properties.filter().afterAuthenticationOrder();
        boolean secured = application.containsBean("springSecurityFilterChain");
        int last = secured ? before + 1 : before;
        if (written != null && written <= last) {
            throw new InvalidConfigurationPropertyValueException(
                    "ratelimit.filter.after-authentication-order",
                    written,
                    "The order must be greater than " + last + (secured ? ", the order of" : ", the last order before")
                            + " Spring Security, but was " + written
                            + ": policies after authentication would run before it. Set it to " + (last + 1)
                            + " or more.");
        }
        return written == null ? before + 2 : written;
    }

    /** Returns the order right before Spring Security, or before its default place where it is missing. */
    private int beforeSecurity() {
        String property = "spring.security.filter.order";
        int order = application.getEnvironment().getProperty(property, Integer.class, DEFAULT_SECURITY_FILTER_ORDER);
        if (order == Integer.MIN_VALUE || order == Integer.MAX_VALUE) {
            throw new InvalidConfigurationPropertyValueException(
                    property,
                    order,
                    "The filters of the limits run right before and right after Spring Security, so its order must leave"
                            + " room for them: set it to " + (order < 0 ? order + 1 : order - 1) + ".");
        }
        return order - 1;
    }

    /**
     * The filter for all dispatches of a request but the first and includes. It writes delayed rejections when their requests
     * are dispatched again, and passes none of these requests on. It stands before Spring Security: the request has passed
     * everything behind it once.
     *
     * <p>It also rejects requests whose dispatch ends with a denied or interrupted call, as after a forward to a servlet that
     * isn't Spring MVC's. The container would log the exception with its stack trace before other filters see it.
     *
     * <p>No record: its hash code, which the container needs, would be composed at the start, for two milliseconds.
     */
    static final class DispatchFilter implements Filter {

        private final ServerLimits.Late limits;

        DispatchFilter(ServerLimits.Late limits) {
            this.limits = limits;
        }

        @Override
        public void doFilter(ServletRequest servletRequest, ServletResponse servletResponse, FilterChain chain)
                throws IOException, ServletException {
            HttpServletRequest request = (HttpServletRequest) servletRequest;
            HttpServletResponse response = (HttpServletResponse) servletResponse;
            Rejections rejections = limits.get().rejections();
            RequestLedger async =
                    request.getDispatcherType() == DispatcherType.ASYNC ? RequestLedger.find(request) : null;
            Throwable failure = null;
            if (async != null) {
                async.dispatch();
            }
            try {
                if (!rejections.writeDelayed(request, response)) {
                    chain.doFilter(request, response);
                }
            } catch (ServletException | RuntimeException thrown) {
                failure = thrown;
                if (!rejections.rejectCall(request, response, thrown, () -> leave(request))) {
                    throw thrown;
                }
            } catch (IOException | Error thrown) {
                failure = thrown;
                throw thrown;
            } finally {
                if (async != null && !request.isAsyncStarted()) {
                    noteEnd(async, failure);
                }
            }
        }

        private static void leave(HttpServletRequest request) {
            RequestLedger ledger = RequestLedger.find(request);
            if (ledger != null) {
                ledger.leave();
            }
        }

        /** Records the end of an asynchronous dispatch. */
        private static void noteEnd(RequestLedger ledger, @Nullable Throwable failure) {
            ledger.leave(); // Tomcat completes no request whose connection broke during the dispatch
            ledger.course().noteHandledLater();
            if (failure != null) {
                ledger.course().noteFailure(failure);
            }
        }
    }
}
