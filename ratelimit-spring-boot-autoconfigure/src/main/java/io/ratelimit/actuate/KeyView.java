package io.ratelimit.actuate;

import io.ratelimit.Keys;
import io.ratelimit.ThrottlePolicy;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A key as an operator sees it.
 *
 * @param hash the same for the same key until the application ends
 * @param parts the texts of its parts; null where keys must not be shown
 * @param missing the names of those parts that were missing, so that their text is what stands in; null for none, or
 *     where keys must not be shown
 * @param tier that its bucket is in, if it is in one
 */
public record KeyView(
        String hash,
        @Nullable List<String> parts,
        @Nullable List<String> missing,
        @Nullable String tier) {

    /**
     * @param key as it is composed
     * @param shown whether its text is
     */
    static KeyView of(ThrottlePolicy policy, String key, String hash, boolean shown) {
        List<String> parts = Keys.parts(key);
        List<String> missing = IntStream.range(0, parts.size())
                .filter(i -> Keys.isStandIn(parts.get(i)))
                .mapToObj(i -> i < policy.key().size() ? policy.key().get(i) : "part " + (i + 1))
                .toList();
        String tier = Keys.tier(key);
        return new KeyView(
                hash,
                shown ? parts.stream().map(KeyView::text).toList() : null,
                shown && !missing.isEmpty() ? missing : null,
                ThrottlePolicy.isName(tier) ? tier : null);
    }

    /** Half of a surrogate pair, as an expression that cuts texts may leave it, is nothing that JSON can have. */
    private static String text(String part) {
        return new String(Keys.text(part).getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
    }
}
