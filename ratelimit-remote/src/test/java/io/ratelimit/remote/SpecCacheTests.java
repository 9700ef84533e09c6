package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class SpecCacheTests {

    private final AtomicInteger computed = new AtomicInteger();
    private final SpecCache<Integer, String> texts = new SpecCache<>(number -> {
        computed.incrementAndGet();
        return "n" + number;
    });

    @Test
    void eachValueIsComputedOnce() {
        assertThat(texts.get(1)).isEqualTo("n1");
        assertThat(texts.get(1)).isSameAs(texts.get(1));
        assertThat(computed).hasValue(1);
    }

    @Test
    void theSizeIsLimitedHoweverManySpecsThereAre() {
        for (int i = 0; i < 5 * SpecCache.MAX_SIZE; i++) {
            assertThat(texts.get(i)).isEqualTo("n" + i);
            assertThat(texts.size()).isBetween(1, SpecCache.MAX_SIZE);
        }
    }
}
