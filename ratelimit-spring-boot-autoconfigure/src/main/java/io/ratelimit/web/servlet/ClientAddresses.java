package io.ratelimit.web.servlet;

import io.ratelimit.key.ClientIp;
import jakarta.servlet.http.HttpServletRequest;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Tells the clients of servlet requests, and says once in the log that forwarding headers come from where none is
 * trusted: then all clients of a proxy are one. Thread-safe.
 */
public final class ClientAddresses {

    private static final Log logger = LogFactory.getLog(ClientAddresses.class);

    private final ClientIp clientIp;
    private final AtomicBoolean mayWarn;

    public ClientAddresses(ClientIp clientIp) {
        this.clientIp = clientIp;
        this.mayWarn = new AtomicBoolean(true);
    }

    /**
     * The client of a request, as {@link ClientIp} has it.
     *
     * @param peer the address that the request came from
     */
    String client(@Nullable String peer, HttpServletRequest request) {
        if (mayWarn.get() && isForwarded(request) && !clientIp.trusts(peer) && mayWarn.compareAndSet(true, false)) {
            logger.warn(
                    "Requests come with X-Forwarded-For or Forwarded from peers that 'ratelimit.client-ip.trusted-proxies'"
                            + " doesn't name, so they are ignored: throttle policies count by the address of the peer. If one of"
                            + " them is your proxy, all its clients share one bucket: name the network it is in. This is logged once");
        }
        return clientIp.of(peer, request::getHeaders);
    }

    private static boolean isForwarded(HttpServletRequest request) {
        return request.getHeader("X-Forwarded-For") != null || request.getHeader("Forwarded") != null;
    }
}
