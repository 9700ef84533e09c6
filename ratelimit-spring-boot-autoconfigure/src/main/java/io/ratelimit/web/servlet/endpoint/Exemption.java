package io.ratelimit.web.servlet.endpoint;

import io.ratelimit.annotation.RateLimitExempt;
import java.lang.reflect.AnnotatedElement;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;

/**
 * The contribution of an endpoint to the exemption of a request.
 *
 * @param exempt whether the endpoint's handler is exempt
 * @param certain whether path and method suffice to reach the endpoint; otherwise another endpoint may get the request
 * @param handler whether the endpoint has a handler
 */
record Exemption(boolean exempt, boolean certain, boolean handler) {

    /** The contribution of a handler that isn't exempt. */
    static final Exemption NONE = new Exemption(false, true, true);

    /** The contribution of files and of Spring MVC's own responses: they do no work, so other endpoints decide. */
    static final Exemption NO_HANDLER = new Exemption(false, false, false);

    static Exemption of(RequestMappingInfo mapping, HandlerMethod handler) {
        boolean exempt = isOn(handler.getMethod()) || isOn(handler.getBeanType());
        return new Exemption(exempt, isCertain(mapping), true);
    }

    private static boolean isOn(AnnotatedElement element) {
        return MergedAnnotations.from(element, SearchStrategy.TYPE_HIERARCHY).isPresent(RateLimitExempt.class);
    }

    private static boolean isCertain(RequestMappingInfo mapping) {
        return mapping.getParamsCondition().isEmpty()
                && mapping.getHeadersCondition().isEmpty()
                && mapping.getConsumesCondition().isEmpty()
                && mapping.getProducesCondition().isEmpty()
                && mapping.getVersionCondition().isEmpty()
                && mapping.getCustomCondition() == null;
    }

    /** Returns this contribution without the exemption, for an endpoint behind unknown endpoints. */
    Exemption withoutExemption() {
        return new Exemption(false, certain, handler);
    }
}
