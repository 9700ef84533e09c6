package io.ratelimit;

import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The part of {@link BucketStoreContract} for the {@link Vectors}: every store gives their answers. */
public abstract class BucketStoreVectorsContract extends VectorRuns {

    @Override
    protected abstract void setWallClock(Instant now);

    @Test
    void aStoreGivesTheAnswersOfTheVectors() {
        Vectors.withoutCalendar().forEach(this::run);
    }

    /** Each has its own store, because a calendar never returns to an earlier period. */
    @ParameterizedTest
    @MethodSource("byCalendar")
    void aStoreGivesTheAnswersOfTheVectorsByTheCalendar(Vectors.Sequence sequence) {
        run(sequence);
    }

    static List<Named<Vectors.Sequence>> byCalendar() {
        return Vectors.byCalendar().stream()
                .map(sequence -> Named.of(sequence.name(), sequence))
                .toList();
    }
}
