package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BackendException;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** When a connection is opened to a server that refused one. The moments are far away from the end of a pause. */
class RefusalsTests {

    private static final long HOUR = Duration.ofHours(1).toNanos();

    private final Refusals refusals = new Refusals();
    private final BackendException refusal = new BackendException("no such user", null, true);
    private final long now = System.nanoTime();

    private void assertPause() {
        assertThatThrownBy(refusals::permit).isSameAs(refusal);
    }

    private void assertNoPause() {
        assertThatCode(refusals::permit).doesNotThrowAnyException();
        assertThatCode(refusals::permit).doesNotThrowAnyException();
    }

    @Test
    void withoutARefusalAnyNumberOfConnectionsIsOpened() {
        assertNoPause();
    }

    @Test
    void aRefusedConnectionHasAPause() {
        refusals.note(refusal, now + HOUR);
        assertPause();
        assertPause();
    }

    @Test
    void afterAPauseOneConnectionIsTried() {
        refusals.note(refusal, now - HOUR);
        refusals.permit();
        refusals.note(refusal, now - HOUR); // of a call that had its connection for long
        refusals.note(refusal, now + HOUR);
        assertPause();
    }

    @Test
    void aConnectionThatWorksEndsThePauseIfItIsYounger() {
        refusals.note(refusal, now + HOUR);
        refusals.noteSuccess(now);
        assertPause();
        refusals.noteSuccess(now + HOUR + 1);
        assertNoPause();
    }

    @Test
    void aStartEndsThePause() {
        refusals.note(refusal, now + HOUR);
        refusals.clear();
        assertNoPause();
    }
}
