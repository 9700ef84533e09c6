package io.ratelimit.redis;

import io.lettuce.core.RedisBusyException;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisLoadingException;
import io.ratelimit.BackendException;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

/** Tells apart why Redis failed. */
final class RedisFailures {

    /** What Redis answers while it comes, goes, or is busy: an outage, which ends by itself. */
    private static final List<String> PASSING =
            List.of("TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "MOVED", "ASK", "BUSY", "LOADING", "UNBLOCKED");

    private RedisFailures() {}

    /** The failure of a call, as the caller of a store sees it. */
    static BackendException of(Throwable failure) {
        Throwable cause = failure;
        while ((cause instanceof ExecutionException || cause instanceof CompletionException)
                && cause.getCause() != null) {
            cause = cause.getCause();
        }
        if (cause instanceof BackendException known) {
            return known;
        }
        String message = "Redis failed: " + cause.getMessage();
        return isAnswer(cause) ? new MisconfiguredRedisException(message, cause) : new BackendException(message, cause);
    }

    private static boolean isAnswer(Throwable cause) {
        return cause instanceof RedisCommandExecutionException
                && !(cause instanceof RedisBusyException || cause instanceof RedisLoadingException)
                && PASSING.stream().noneMatch(word -> startsWith(cause, word));
    }

    /** Whether it is an error of Redis's own that begins with the word. */
    static boolean startsWith(Throwable cause, String word) {
        return String.valueOf(cause.getMessage()).startsWith(word);
    }

    /** Whether the keys of a script lie on more than one node of a cluster. */
    static boolean isCrossSlot(Throwable failure) {
        return failure instanceof RedisCommandExecutionException && startsWith(failure, "CROSSSLOT");
    }
}
