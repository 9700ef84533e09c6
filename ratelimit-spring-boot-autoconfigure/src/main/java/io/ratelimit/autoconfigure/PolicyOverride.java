package io.ratelimit.autoconfigure;

import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy.Mode;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Keys of a policy for which something else holds.
 *
 * @param keys each a text, or a list of as many texts as the policy's key has parts; networks where the part is ip
 * @param rate the tokens that come back to their buckets, and how fast
 * @param capacity the most tokens that their buckets hold; by default the tokens of the rate
 * @param mode in place of a rate: off, if they are free, or shadow
 */
public record PolicyOverride(
        @DefaultValue List<List<Text>> keys,
        @Nullable Rate rate,
        @Nullable Long capacity,
        @Nullable Mode mode) {

    /** A text that no comma splits, unlike one that is bound as a list. */
    public record Text(String text) {}
}
