package io.ratelimit.web.servlet;

import org.junit.jupiter.api.extension.RegisterExtension;

/** Guaranteed shares in memory. */
class SharesTests extends SharesHttpContract {

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    @Override
    TestServer server() {
        return server;
    }
}
