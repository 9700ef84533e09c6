package io.ratelimit.redis;

import io.lettuce.core.RedisCommandExecutionException;
import io.ratelimit.BackendException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Tells apart why Redis failed. */
final class RedisFailures {

    /** What Redis answers while it comes, goes, or is busy: an outage, which ends by itself. */
    private static final List<String> PASSING =
            List.of("TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "MOVED", "ASK", "BUSY", "LOADING", "UNBLOCKED");

    private RedisFailures() {}

    /** The failure of a call, as the caller of a store sees it: an error that Redis answered says most. */
    static BackendException of(Throwable failure) {
        Throwable innermost = failure;
        for (Throwable cause = failure; cause != null; cause = reason(cause)) {
            if (cause instanceof BackendException known) {
                return known;
            }
            if (cause instanceof RedisCommandExecutionException) {
                return ofAnswer(cause);
            }
            innermost = cause;
        }
        return new BackendException("Redis failed: " + innermost, innermost);
    }

    /** Where the nodes of a cluster don't tell who they are, each has its own reason. */
    private static @Nullable Throwable reason(Throwable failure) {
        return failure.getCause() == null && failure.getSuppressed().length > 0
                ? failure.getSuppressed()[0]
                : failure.getCause();
    }

    private static BackendException ofAnswer(Throwable error) {
        String message = "Redis failed: " + error.getMessage();
        return PASSING.stream().anyMatch(word -> startsWith(error, word))
                ? new BackendException(message, error)
                : new MisconfiguredRedisException(message, error);
    }

    /** Whether it is an error of Redis's own that begins with the word. */
    static boolean startsWith(Throwable cause, String word) {
        return String.valueOf(cause.getMessage()).startsWith(word);
    }

    /** Whether it is a replica that was asked, which before Redis 7 stands at the end of a script's error. */
    static boolean isReadOnly(Throwable failure) {
        return failure instanceof RedisCommandExecutionException
                && String.valueOf(failure.getMessage()).contains("READONLY");
    }

    /** Whether the keys of a script lie on more than one node of a cluster. */
    static boolean isCrossSlot(Throwable failure) {
        return failure instanceof RedisCommandExecutionException && startsWith(failure, "CROSSSLOT");
    }
}
