package io.ratelimit.key;

import org.springframework.expression.spel.SpelEvaluationException;

/**
 * Is told when something that a policy wants to know couldn't be found out, and what holds instead. Thread-safe, and
 * quick: whoever sends requests may make it happen with each.
 */
@FunctionalInterface
public interface FailureListener {

    /**
     * @param policy its name
     * @param what could not be found out, and what holds instead
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
