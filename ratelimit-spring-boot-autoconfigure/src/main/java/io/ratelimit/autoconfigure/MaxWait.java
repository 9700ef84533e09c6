package io.ratelimit.autoconfigure;

import io.ratelimit.Waiting;
import java.time.Duration;

/**
 * The longest wait of a request. Not a plain duration: Spring would read a number without a unit as milliseconds.
 */
public record MaxWait(Duration duration) {

    /**
     * Reads a wait such as {@code 2s}.
     *
     * @throws IllegalArgumentException if the text is none; the message says what would do
     */
    public static MaxWait of(String text) {
        return new MaxWait(Waiting.maxWait(text));
    }
}
