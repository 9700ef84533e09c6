package io.ratelimit.key;

import org.springframework.expression.spel.SpelEvaluationException;

/** Why something failed, without the exception's message: that may quote what a client sent. */
final class Reason {

    private Reason() {}

    static String of(Exception failure) {
        String type = failure.getClass().getName();
        return failure instanceof SpelEvaluationException expression ? type + " " + expression.getMessageCode() : type;
    }
}
