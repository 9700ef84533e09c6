package io.ratelimit.web.servlet.rejection;

import io.ratelimit.web.servlet.TestServer;

/** The number of delayed rejections, for tests in other packages. */
public final class WaitingRejections {

    private WaitingRejections() {}

    /** Returns the number of rejections that are delayed or being written. */
    public static int count(TestServer server) {
        return server.bean(DelayedRejections.class).waiting();
    }
}
