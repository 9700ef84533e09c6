package io.ratelimit.web.servlet;

import io.ratelimit.annotation.RateLimitExempt;
import java.lang.reflect.AnnotatedElement;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;

/**
 * What an endpoint says to whether a request is free.
 *
 * @param exempt whether its handler is
 * @param certain whether path and method are enough to reach it; otherwise another endpoint may get the request
 * @param handler whether it has a handler at all
 */
record Exemption(boolean exempt, boolean certain, boolean handler) {

    /** Not exempt. */
    static final Exemption NONE = new Exemption(false, true, true);

    /** Files, and answers that Spring MVC gives itself: they cost nothing, so they leave it to the others. */
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

    /** The same where anything may come before it. */
    Exemption blinded() {
        return new Exemption(false, certain, handler);
    }
}
