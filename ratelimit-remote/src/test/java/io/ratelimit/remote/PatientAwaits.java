package io.ratelimit.remote;

import io.ratelimit.BackendException;
import java.time.Duration;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Lets a test wait two minutes for what happens in the background, as machines that build are busy. */
public final class PatientAwaits implements BeforeAllCallback {

    @Override
    public void beforeAll(ExtensionContext context) {
        Awaitility.setDefaultTimeout(Duration.ofMinutes(2));
    }

    /** Tests a storage until its server answers in time, since a busy machine may be too slow. Mistakes aren't repeated. */
    public static void awaitSelfTest(Storage storage) {
        Awaitility.await()
                .pollDelay(Duration.ZERO)
                .atMost(Duration.ofMinutes(2))
                .ignoreExceptionsMatching(
                        failure -> failure instanceof BackendException late && !late.isMisconfiguration())
                .until(() -> {
                    storage.selfTest();
                    return true;
                });
    }
}
