package io.ratelimit.sample;

import io.ratelimit.key.KeyResolver;
import io.ratelimit.key.RequestFacts;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.jspecify.annotations.Nullable;
import org.springframework.stereotype.Component;

/**
 * The name of the account that a client tries to log in to with HTTP Basic, before the password is checked. Read as Spring
 * Security reads it. A client that can't be read has none, and then its address alone counts.
 */
@Component
class Account implements KeyResolver {

    private static final String SCHEME = "Basic ";

    @Override
    public @Nullable String resolve(RequestFacts request) {
        String header = request.header("Authorization");
        if (header == null || !header.trim().regionMatches(true, 0, SCHEME, 0, SCHEME.length())) {
            return null;
        }
        byte[] login = Base64.getDecoder().decode(header.trim().substring(SCHEME.length()));
        String text = new String(login, StandardCharsets.UTF_8);
        return text.substring(0, Math.max(text.indexOf(':'), 0));
    }
}
