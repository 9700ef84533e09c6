package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class PerSpecTests {

    private final AtomicInteger worked = new AtomicInteger();
    private final PerSpec<Integer, String> texts = new PerSpec<>(number -> {
        worked.incrementAndGet();
        return "n" + number;
    });

    @Test
    void eachIsWorkedOutOnce() {
        assertThat(texts.of(1)).isEqualTo("n1");
        assertThat(texts.of(1)).isSameAs(texts.of(1));
        assertThat(worked).hasValue(1);
    }

    @Test
    void limitsThatChangeForEverTakeNoMoreMemory() {
        for (int i = 0; i < 5 * PerSpec.MOST; i++) {
            assertThat(texts.of(i)).isEqualTo("n" + i);
            assertThat(texts.size()).isBetween(1, PerSpec.MOST);
        }
    }
}
