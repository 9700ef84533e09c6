package io.ratelimit.web.servlet.rejection;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.webmvc.autoconfigure.error.ErrorViewResolver;
import org.springframework.http.HttpStatus;
import org.springframework.web.servlet.ModelAndView;
import org.springframework.web.servlet.View;
import org.springframework.web.servlet.ViewResolver;

/**
 * The application's own error pages, such as the view {@code error/429}, for rejected requests of browsers. Thread-safe.
 *
 * <p>The views are rendered outside of Spring MVC's servlet, since a rejected request doesn't reach it.
 */
final class ErrorPages {

    private static final Log logger = LogFactory.getLog(ErrorPages.class);

    private final List<ErrorViewResolver> pages;
    private final List<ViewResolver> views;
    private final AtomicBoolean failed = new AtomicBoolean();

    ErrorPages(List<ErrorViewResolver> pages, List<ViewResolver> views) {
        this.pages = List.copyOf(pages);
        this.views = List.copyOf(views);
    }

    /**
     * Writes the application's page for a status. The first page that fails is reported in the log.
     *
     * @param model the attributes of the view
     * @return false if the application has no page for the status, or the page failed; the response is then unchanged, or
     *     committed
     */
    boolean write(HttpServletRequest request, HttpServletResponse response, int code, Map<String, Object> model) {
        HttpStatus status = HttpStatus.resolve(code);
        if (status == null) {
            return false;
        }
        try {
            return write(request, response, status, model);
        } catch (Exception failure) {
            if (failed.compareAndSet(false, true)) {
                logger.warn(
                        "The application's error page for " + code + " failed; rejections use the built-in page",
                        failure);
            }
            if (response.isCommitted()) {
                return true;
            }
            response.resetBuffer();
            return false;
        }
    }

    private boolean write(
            HttpServletRequest request, HttpServletResponse response, HttpStatus status, Map<String, Object> model)
            throws Exception {
        for (ErrorViewResolver resolver : pages) {
            ModelAndView page = resolver.resolveErrorView(request, status, model);
            View view = page == null ? null : view(page, request.getLocale());
            if (page != null && view != null) {
                view.render(page.getModel(), request, response);
                return true;
            }
        }
        return false;
    }

    private @Nullable View view(ModelAndView page, Locale locale) throws Exception {
        String name = page.getViewName();
        if (name == null) {
            return page.getView();
        }
        for (ViewResolver resolver : views) {
            View view = resolver.resolveViewName(name, locale);
            if (view != null) {
                return view;
            }
        }
        return null;
    }
}
