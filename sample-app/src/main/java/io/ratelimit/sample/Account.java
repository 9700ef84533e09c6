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

    private static final String SCHEME = "Basic"; // and any character behind it

    @Override
    public @Nullable String resolve(RequestFacts request) {
        String header = request.header("Authorization");
        String trimmed = header == null ? "" : header.trim();
        if (trimmed.length() <= SCHEME.length() || !trimmed.regionMatches(true, 0, SCHEME, 0, SCHEME.length())) {
            return null;
        }
        byte[] login = Base64.getDecoder().decode(trimmed.substring(SCHEME.length() + 1));
        String text = new String(login, StandardCharsets.UTF_8);
        return text.substring(0, Math.max(text.indexOf(':'), 0));
    }
}
