package io.ratelimit.web.servlet;

import io.ratelimit.key.ip.ClientIp;
import jakarta.servlet.http.HttpServletRequest;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Resolves the client addresses of servlet requests. Logs one warning when forwarding headers arrive from a peer that is
 * not trusted, because all clients of that proxy then share one bucket. Thread-safe.
 */
final class ClientIpResolver {

    private static final Log logger = LogFactory.getLog(ClientIpResolver.class);

    private final ClientIp clientIp;
    private final AtomicBoolean mayWarn = new AtomicBoolean(true);

    ClientIpResolver(ClientIp clientIp) {
        this.clientIp = clientIp;
    }

    /** Returns a resolver that reads forwarding headers of trusted peers only, and so logs no warning. */
    ClientIpResolver withoutWarning() {
        ClientIpResolver silent = new ClientIpResolver(clientIp);
        silent.mayWarn.set(false);
        return silent;
    }

    /**
     * Returns the client of a request, as {@link ClientIp} writes it.
     *
     * @param peer the address of the connection's other end
     */
    String resolve(@Nullable String peer, HttpServletRequest request) {
        if (mayWarn.get() && isForwarded(request) && !clientIp.trusts(peer) && mayWarn.compareAndSet(true, false)) {
            logger.warn("Ignoring X-Forwarded-For and Forwarded headers from peers that"
                    + " 'ratelimit.client-ip.trusted-proxies' doesn't contain: throttle policies use the address of the"
                    + " peer. If one of these peers is your proxy, all its clients share one bucket: add its network to"
                    + " the property. This is logged once");
        }
        return clientIp.resolve(peer, request::getHeaders);
    }

    private static boolean isForwarded(HttpServletRequest request) {
        return request.getHeader("X-Forwarded-For") != null || request.getHeader("Forwarded") != null;
    }
}
