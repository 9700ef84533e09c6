package io.ratelimit;

/** Denials as sentences. */
final class DenialText {

    private DenialText() {}

    /** Returns the sentence of {@link Decision#describe}. */
    static String of(Decision decision, String subject) {
        String retry = ", please retry after "
                + decision.retryAfter().plusNanos(999_999).toMillis() + " ms.";
        return switch (decision.outcome()) {
            case ALLOWED -> throw new IllegalStateException("the " + subject + " is allowed");
            case NEVER_FITS ->
                "The " + subject + " can never be allowed" + policy(decision, " by ")
                        + ", it costs more than the limit.";
            case MISSING_KEY ->
                "The " + subject + " is denied" + policy(decision, " by ") + ", it lacks the key of the limit.";
            case TOO_MANY_IN_FLIGHT -> "Too many " + subject + "s are in flight" + policy(decision, " for ") + retry;
            case TOO_LONG -> "The " + subject + " would have to wait too long" + policy(decision, " for ") + retry;
            case QUEUE_FULL -> "Too many " + subject + "s already wait" + policy(decision, " for ") + retry;
            case BACKEND_FAILED -> "The limit" + policy(decision, " of ") + " can't be checked at the moment" + retry;
            default -> "The " + subject + " is throttled" + policy(decision, " by ") + retry;
        };
    }

    private static String policy(Decision decision, String preposition) {
        return decision.answers().isEmpty()
                ? ""
                : preposition + "'" + decision.decisiveDenial().policy().name() + "' policy";
    }
}
