package io.ratelimit.web.servlet;

import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.web.servlet.rejection.Rejections;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;

/** The limits of one server: the application's, or that of a management server with a port of its own. */
record ServerLimits(Throttlers throttlers, RequestPolicies policies, Rejections rejections, OpenRequests openRequests) {

    /** The limits for beans that are created before them, such as filters. Looked up once, with the first request. Thread-safe. */
    static final class Late {

        private final BeanFactory beans;
        private volatile @Nullable ServerLimits found;

        Late(BeanFactory beans) {
            this.beans = beans;
        }

        ServerLimits get() {
            ServerLimits limits = found;
            if (limits == null) {
                limits = new ServerLimits(
                        beans.getBean(Throttlers.class),
                        beans.getBean(RequestPolicies.class),
                        beans.getBean(Rejections.class),
                        new OpenRequests(beans.getBean(TimeSource.class)));
                found = limits;
            }
            return limits;
        }
    }
}
