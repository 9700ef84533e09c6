package io.ratelimit.key;

import org.springframework.expression.spel.SpelEvaluationException;

/**
 * Is told of what a policy wanted to know of a request or a call and could not, such as a cost whose expression failed.
 * Must be thread-safe and quick: a client may be able to cause a failure with each request.
 */
@FunctionalInterface
public interface FailureListener {

    /**
     * @param policy its name
     * @param what could not be told, and what held instead: {@code its cost, which counted as 1}
     * @param why in words that are free of what clients send
     */
    void failed(String policy, String what, String why);

    /** The same by an exception: of it only the type is told, for its message may quote what a client sent. */
    default void failed(String policy, String what, Exception why) {
        String type = why.getClass().getName();
        failed(
                policy,
                what,
                why instanceof SpelEvaluationException expression ? type + " " + expression.getMessageCode() : type);
    }
}
