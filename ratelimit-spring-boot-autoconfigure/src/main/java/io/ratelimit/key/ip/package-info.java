/** The address of a client behind trusted proxies. Start at {@link io.ratelimit.key.ip.ClientIp}. */
@NullMarked
package io.ratelimit.key.ip;

import org.jspecify.annotations.NullMarked;
