package io.ratelimit.autoconfigure.web.servlet;

import org.springframework.beans.factory.BeanFactory;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.thread.Threading;
import org.springframework.core.env.Environment;

/**
 * The threads that a servlet container has for all requests together.
 *
 * @param container its name
 * @param property that sets them
 * @param most as many there are at most
 */
record ContainerThreads(String container, String property, int most) {

    private static final int DEFAULT = 200;

    /** Those of the server that Spring Boot starts; of another, as many as servers have by default. */
    static ContainerThreads of(BeanFactory beans, Environment environment) {
        boolean jetty = beans.containsBean("jettyServletWebServerFactory");
        String property = jetty ? "server.jetty.threads.max" : "server.tomcat.threads.max";
        int most = Threading.VIRTUAL.isActive(environment)
                ? Integer.MAX_VALUE
                : Binder.get(environment).bind(property, Integer.class).orElse(DEFAULT);
        return new ContainerThreads(jetty ? "Jetty" : "Tomcat", property, most);
    }
}
