package io.ratelimit.key;

import org.springframework.expression.spel.SpelEvaluationException;

/**
 * A listener for facts of a request or a call that a policy couldn't determine, such as a cost whose expression failed.
 * Implementations must be thread-safe and fast: a client may be able to cause a failure with each request.
 */
@FunctionalInterface
public interface FailureListener {

    /**
     * Reports a failure.
     *
     * @param fact the fact and the value that replaced it, such as {@code its cost, which counted as 1}
     * @param reason the reason, without text that a client sent
     */
    void failed(String policy, String fact, String reason);

    /** Reports a failure by its exception. Reports only the type, because the message may quote text that a client sent. */
    default void failed(String policy, String fact, Throwable failure) {
        String type = failure.getClass().getName();
        failed(
                policy,
                fact,
                failure instanceof SpelEvaluationException expression
                        ? type + " " + expression.getMessageCode()
                        : type);
    }
}
