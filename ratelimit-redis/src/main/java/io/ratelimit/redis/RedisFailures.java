package io.ratelimit.redis;

import io.lettuce.core.RedisCommandExecutionException;
import io.ratelimit.BackendException;
import io.ratelimit.remote.Deadline.CongestedException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The conversion of failures into exceptions of the core, by their reasons. */
final class RedisFailures {

    /** Errors of Redis while it starts, stops or is busy. They are outages, which end by themselves. */
    private static final List<String> TEMPORARY =
            List.of("TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "BUSY", "LOADING", "UNBLOCKED");

    /** Errors of a node of a cluster that hasn't the key. */
    private static final List<String> REDIRECTIONS = List.of("MOVED", "ASK ");

    /** Messages of Lettuce when more commands are on their way than it may send. */
    private static final List<String> QUEUE_FULL =
            List.of("Request queue size exceeded", "Internal stack size exceeded");

    private RedisFailures() {}

    /**
     * Returns the exception for the failure of a call. An error that Redis answered is preferred to other causes. If this process
     * lacks memory, stack or a thread, it is no failure of Redis.
     */
    static BackendException of(Throwable failure) {
        Throwable innermost = failure;
        for (Throwable cause = failure; cause != null; cause = reason(cause)) {
            if (cause instanceof BackendException converted) {
                return converted;
            }
            if (cause instanceof RedisCommandExecutionException) {
                return ofErrorReply(cause);
            }
            innermost = cause;
        }
        Throwable last = innermost;
        if (last instanceof VirtualMachineError) {
            return new CongestedException(last.toString(), last);
        }
        return QUEUE_FULL.stream().anyMatch(words -> startsWith(last, words))
                ? new CongestedException("too many commands were on their way to Redis", last)
                : new BackendException("Redis failed: " + text(last), last);
    }

    /** Returns the message of a failure, without the types of Lettuce and Netty, which operators don't know. */
    private static String text(Throwable failure) {
        String type = failure.getClass().getName();
        String message = failure.getMessage();
        boolean library = type.startsWith("io.lettuce.") || type.startsWith("io.netty.");
        return library && message != null ? message : failure.toString();
    }

    /** Returns the cause of a failure. If no node of a cluster returns the topology, each has its own suppressed failure. */
    private static @Nullable Throwable reason(Throwable failure) {
        return failure.getCause() == null && failure.getSuppressed().length > 0
                ? failure.getSuppressed()[0]
                : failure.getCause();
    }

    /** Other errors are due to the configuration or the data of Redis, and don't end by themselves. */
    private static BackendException ofErrorReply(Throwable error) {
        boolean temporary = TEMPORARY.stream().anyMatch(word -> startsWith(error, word));
        String advice = isRedirection(error)
                ? ". This server is a node of a cluster: configure the cluster by 'spring.data.redis.cluster.nodes'"
                : "";
        return new BackendException("Redis failed: " + error.getMessage() + advice, error, !temporary);
    }

    /** Returns whether a node of a cluster has named another node. A client of the cluster follows that, within limits. */
    static boolean isRedirection(Throwable error) {
        return error instanceof RedisCommandExecutionException
                && REDIRECTIONS.stream().anyMatch(word -> startsWith(error, word));
    }

    /** Returns the failure of a client of a cluster that was redirected too often, as while a slot is being moved. */
    static BackendException redirectedTooOften(Throwable redirection) {
        return new BackendException("Redis failed: " + redirection.getMessage(), redirection);
    }

    static boolean startsWith(Throwable cause, String word) {
        return String.valueOf(cause.getMessage()).startsWith(word);
    }

    /** Returns whether Redis has discarded a transaction because it rejected a command of it. No key is watched then. */
    static boolean isDiscarded(BackendException failed) {
        return failed.getCause() instanceof RedisCommandExecutionException error && startsWith(error, "EXECABORT");
    }

    /** Returns whether a replica answered. Before Redis 7 a script's error ends with READONLY. */
    static boolean isReadOnly(Throwable failure) {
        return failure instanceof RedisCommandExecutionException
                && String.valueOf(failure.getMessage()).contains("READONLY");
    }

    /** Returns whether the keys of a script are on more than one node of a cluster. */
    static boolean isCrossSlot(Throwable failure) {
        return failure instanceof RedisCommandExecutionException && startsWith(failure, "CROSSSLOT");
    }
}
